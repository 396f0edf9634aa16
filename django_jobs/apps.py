"""The app's configuration: checks, and the discovery of job functions."""

from __future__ import annotations

import os
import sys

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class DjangoJobsConfig(AppConfig):
    """Registers the checks and imports the ``jobs`` and ``tasks`` modules of all apps."""

    name = "django_jobs"
    verbose_name = _("Jobs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import what defines jobs: a process that has not imported a function can't run it."""
        from django_jobs import checks  # noqa: F401 - registers itself

        autodiscover_modules("jobs", "tasks")
        if sys.argv[1:2] == ["runserver"]:
            from django_jobs.worker import embedded

            if embedded.is_wanted(sys.argv, os.environ):
                embedded.start()
