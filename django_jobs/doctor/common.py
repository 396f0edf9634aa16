"""What is looked at alike on both databases: migrations, indexes, workers, queues that nobody serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.models import UniqueConstraint
from django.db.models.functions import Now

from django_jobs.doctor.findings import ERROR, OK, WARNING, Finding
from django_jobs.models import Job, Queue, Worker
from django_jobs.sound_rows import sound
from django_jobs.store import django_store

EVERY_QUEUE = "*"


def migrations(alias: str) -> Iterator[Finding]:
    """Whether the tables are those of this version."""
    executor = MigrationExecutor(connections[alias])
    targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] == "django_jobs"]
    plan = executor.migration_plan(targets)
    missing = [migration.name for migration, _ in plan if migration.app_label == "django_jobs"]
    if missing:
        yield Finding(
            ERROR,
            "migrations",
            f"Not applied: {', '.join(missing)}.",
            f"manage.py migrate django_jobs --database {alias}",
        )
        return
    unknown = sorted(
        name
        for app, name in executor.loader.applied_migrations
        if app == "django_jobs" and (app, name) not in executor.loader.graph.nodes
    )
    if unknown:
        yield Finding(
            WARNING,
            "migrations",
            f"The database has migrations that this version does not know: {', '.join(unknown)}.",
            "Is an older version installed here than where migrate was run last?",
        )
    else:
        yield Finding(OK, "migrations", "All are applied.")


def expected_indexes() -> set[str]:
    """The indexes of the table of jobs that the statements go by, but for the primary key's."""
    unique = {each.name for each in Job._meta.constraints if isinstance(each, UniqueConstraint)}
    return unique | {index.name for index in Job._meta.indexes}


def workers(alias: str) -> Iterator[Finding]:
    """Whether anybody works, and on all that waits."""
    alive = [
        worker
        for worker in sound(
            Worker.objects.using(alias).filter(stopped_at=None, lost_at=None).annotate(now=Now())
        )
        if worker.expires_at >= worker.now
    ]
    waiting = django_store(alias).waiting_queues()
    paused = {
        row.name for row in sound(Queue.objects.using(alias).filter(paused_at__isnull=False).only("name"))
    }
    if alive:
        hosts = sorted({worker.host for worker in alive})
        yield Finding(OK, "workers", f"{len(alive)} alive, on {', '.join(hosts)}.")
    elif waiting:
        yield Finding(
            ERROR,
            "workers",
            f"No worker is alive, and jobs wait in {_few(waiting)}.",
            "Start one: manage.py runjobs",
        )
    else:
        yield Finding(WARNING, "workers", "No worker is alive.", "Start one: manage.py runjobs")
    served = {name for worker in alive for name in _names(worker.queues)}
    unserved = [
        name for name in waiting if name not in served and EVERY_QUEUE not in served and name not in paused
    ]
    if alive and unserved:
        yield Finding(
            ERROR,
            "queues",
            f"Jobs wait in queues that no worker works on: {_few(unserved)}.",
            "Add them to runjobs --queues or DJANGO_JOBS['QUEUES'], or '*' for all others.",
        )
    if stuck := [name for name in waiting if name in paused]:
        yield Finding(
            WARNING,
            "queues",
            f"Jobs wait in queues that are paused: {_few(stuck)}.",
            "manage.py jobs resume QUEUE",
        )
    quiet = [worker for worker in alive if worker.quiet_requested_at is not None]
    if alive and len(quiet) == len(alive):
        yield Finding(WARNING, "workers", "All of them were asked to be quiet, and claim nothing.")


def _names(queues: Any) -> list[str]:
    if not isinstance(queues, list):
        return []
    return [name for pool in queues for name in str(pool).split(",")]


def _few(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


TABLES = [workers]
