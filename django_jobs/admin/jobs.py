"""The jobs."""

from __future__ import annotations

from django.contrib import admin
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from django_jobs.admin.overview import OverviewPage
from django_jobs.models import Job


@admin.register(Job)
class JobAdmin(OverviewPage):
    """The newest first; by state, by name."""

    list_display = (
        "id",
        "name",
        "short_arguments",
        "queue_name",
        "state",
        "attempts",
        "error_class",
        "created_at",
    )
    list_display_links = ("id", "name")
    list_filter = ("state",)
    search_fields = ("=id", "=name")
    search_help_text = _("The id, or the whole name, of a job.")
    ordering = ("-id",)

    @admin.display(description=_("arguments"))
    def short_arguments(self, job: Job) -> str:
        """The arguments in one short line."""
        parts = [repr(value) for value in job.args] if isinstance(job.args, list) else [str(job.args)]
        if isinstance(job.kwargs, dict):
            parts += [f"{name}={value!r}" for name, value in job.kwargs.items()]
        return Truncator(", ".join(parts)).chars(60)

    @admin.display(description=_("attempt"))
    def attempts(self, job: Job) -> str:
        """Which attempt of how many."""
        return f"{job.attempt}/{job.max_attempts}"
