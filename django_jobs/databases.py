"""Which database holds the jobs."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections, router

from django_jobs import conf


def jobs_database(using: str | None = None) -> str:
    """The alias of the database that holds the jobs.

    ``using`` if given, else ``DJANGO_JOBS["DATABASE"]``, else what the site's routers say for writing jobs, else
    ``"default"``. Raises ImproperlyConfigured when there is no such alias.
    """
    alias = using or conf.get("DATABASE")
    if alias is None:
        if not router.routers:
            return DEFAULT_DB_ALIAS
        from django_jobs.models import Job

        alias = router.db_for_write(Job)
    if alias not in connections.settings:
        known = ", ".join(sorted(connections.settings))
        raise ImproperlyConfigured(f"There is no database {alias!r} in DATABASES; there are: {known}.")
    return alias
