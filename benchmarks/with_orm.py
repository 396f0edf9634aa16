"""The operations of the queue as most Django code would write them: models, ``get``, ``save``, ``select_for_update``.

Honest ones: each is as safe as the statement that it is compared with, locks what it changes, and saves only the fields
that it changed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from django_jobs.models import Job, Leadership, Queue
from django_jobs.states import FINISHED

WAITING = ("pending", "scheduled", "available")
CLAIMED = ("state", "attempt", "claims", "attempted_at", "worker")
ENDED = ("state", "finalized_at", "holds_key", "error_class", "errors", "result", "run_after")


def insert(n: int, *, pending: bool = False) -> Job:
    """Insert a job, and wake who waits for it."""
    now = timezone.now()
    values: dict[str, Any] = {
        "name": "benchmarks.jobs.noop",
        "args": [n],
        "state": "pending" if pending else "available",
        "run_after": now,
        "created_at": now,
    }
    if pending or connection.vendor != "postgresql":
        return Job.objects.create(**values)
    with transaction.atomic():
        job = Job.objects.create(**values)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify('django_jobs', %s)", [f"+{job.queue_name}"])
    return job


def claim(worker: int, queue_name: str, limit: int) -> list[Job]:
    """Claim the next jobs of a queue."""
    now = timezone.now()
    with transaction.atomic():
        jobs = list(
            Job.objects.select_for_update(skip_locked=True)
            .filter(state="available", queue_name=queue_name, run_after__lte=now)
            .order_by("-priority", "run_after", "id")[:limit]
        )
        for job in jobs:
            job.state = "running"
            job.attempt += 1
            job.claims += 1
            job.attempted_at = now
            job.worker_id = worker
            job.save(update_fields=CLAIMED)
    return jobs


def _mine(id_: int, claims: int) -> Job | None:
    """The job, locked, if the claim is still this one."""
    job = Job.objects.select_for_update().get(pk=id_)
    return job if job.state == "running" and job.claims == claims else None


def complete(id_: int, claims: int) -> None:
    """Record that a job completed."""
    with transaction.atomic():
        if job := _mine(id_, claims):
            job.state = "completed"
            job.finalized_at = timezone.now()
            job.holds_key = False
            job.error_class = None
            job.save(update_fields=ENDED)


def complete_many(ids: Sequence[int]) -> None:
    """Record that jobs completed, in one UPDATE."""
    Job.objects.filter(pk__in=ids, state="running").update(state="completed", finalized_at=timezone.now())


def fail(id_: int, claims: int, error: dict[str, Any], delay: float) -> None:
    """Record that a job failed and is to run again."""
    now = timezone.now()
    with transaction.atomic():
        if job := _mine(id_, claims):
            job.errors = [*(job.errors or []), error]
            job.error_class = error["class"]
            if job.attempt >= job.max_attempts:
                job.state, job.finalized_at = "failed", now
            else:
                job.state, job.run_after = "scheduled", now + dt.timedelta(seconds=delay)
            job.save(update_fields=ENDED)


def merge_metadata(id_: int, claims: int, changes: dict[str, Any]) -> None:
    """Change keys of the metadata of a running job."""
    with transaction.atomic():
        if job := _mine(id_, claims):
            job.metadata = {**(job.metadata or {}), **changes}
            job.save(update_fields=["metadata"])


def cancel(id_: int) -> Job:
    """Cancel a job that waits, or ask for it if it runs."""
    now = timezone.now()
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=id_)
        if job.state in WAITING:
            job.state, job.finalized_at, job.holds_key = "cancelled", now, False
            job.save(update_fields=["state", "finalized_at", "holds_key"])
        elif job.state == "running":
            job.cancel_requested_at = now
            job.save(update_fields=["cancel_requested_at"])
    return job


def retry(id_: int) -> Job:
    """Make a finished job available again."""
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=id_)
        if job.state in FINISHED:
            job.state, job.attempt = "available", 0
            job.run_after = timezone.now()
            job.finalized_at = job.cancel_requested_at = job.worker_id = None
            job.save(
                update_fields=[
                    "state",
                    "attempt",
                    "run_after",
                    "finalized_at",
                    "cancel_requested_at",
                    "worker",
                ]
            )
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_notify('django_jobs', %s)", [f"+{job.queue_name}"])
    return job


def update(id_: int, priority: int) -> Job:
    """Change the priority of a job that waits."""
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=id_)
        if job.state in WAITING:
            job.priority = priority
            job.save(update_fields=["priority"])
    return job


def delete(id_: int) -> None:
    """Delete a job that does not run."""
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=id_)
        if job.state != "running":
            job.delete()


def purge(limit: int) -> None:
    """Delete the oldest completed jobs."""
    with transaction.atomic():
        jobs = Job.objects.select_for_update(skip_locked=True).filter(
            state="completed", finalized_at__lte=timezone.now()
        )
        ids = list(jobs.order_by("finalized_at", "id").values_list("pk", flat=True)[:limit])
        Job.objects.filter(pk__in=ids).delete()


def upsert_queue(name: str, metadata: dict[str, Any]) -> Queue:
    """Make a queue's row, or change it."""
    now = timezone.now()
    row, _ = Queue.objects.update_or_create(
        name=name,
        defaults={"metadata": metadata, "updated_at": now},
        create_defaults={"metadata": metadata, "created_at": now, "updated_at": now},
    )
    return row


def acquire_leadership(name: str, holder: str, seconds: float) -> bool:
    """Become the leader, or remain it."""
    now = timezone.now()
    until = now + dt.timedelta(seconds=seconds)
    with transaction.atomic():
        row, created = Leadership.objects.select_for_update().get_or_create(
            name=name, defaults={"holder": holder, "acquired_at": now, "expires_at": until}
        )
        if not created:
            if row.holder != holder and row.expires_at > now:
                return False
            row.holder, row.expires_at = holder, until
            row.save(update_fields=["holder", "expires_at"])
    return True


def resign_leadership(name: str, holder: str) -> None:
    """Stop leading."""
    with transaction.atomic():
        row = Leadership.objects.select_for_update().get(name=name)
        if row.holder == holder:
            row.expires_at = timezone.now()
            row.save(update_fields=["expires_at"])


def read(ids: Sequence[int]) -> list[Job]:
    """Jobs by id."""
    return list(Job.objects.filter(pk__in=ids).order_by("pk"))
