"""A router as a site writes one: the queue in a database of its own."""

from typing import Any


class JobsElsewhere:
    """The queue's tables are in the database ``jobs``, and nothing else is."""

    def db_for_read(self, model: Any, **_: Any) -> str | None:
        return "jobs" if model._meta.app_label == "django_jobs" else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **_: Any) -> bool:
        return (db == "jobs") == (app_label == "django_jobs")


class ReadsFromReplica:
    """Reads go to a replica, which lags behind."""

    def db_for_read(self, model: Any, **_: Any) -> str:
        return "replica"

    def db_for_write(self, model: Any, **_: Any) -> str:
        return "default"
