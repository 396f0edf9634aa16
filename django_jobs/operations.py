"""What operators do to jobs and queues, as functions: for scripts, the admin and the command line."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable

from django_jobs.databases import jobs_database
from django_jobs.store import django_store
from django_jobs.store.rows import JobRow, QueueRow, QueueStats, Released, Retried


def get(job_id: int, *, using: str | None = None) -> JobRow | None:
    """The job as it is now, or None if there is none with this id."""
    jobs = django_store(jobs_database(using)).get([job_id])
    return jobs[0] if jobs else None


def cancel(job_ids: Iterable[int], *, using: str | None = None) -> list[JobRow]:
    """Cancel jobs: waiting ones at once, running ones by request.

    :returns: those that exist, as they now are; finished ones unchanged.
    """
    return django_store(jobs_database(using)).cancel(list(job_ids))


def retry(job_ids: Iterable[int], *, using: str | None = None) -> list[Retried]:
    """Run finished jobs again, from their first attempt; their errors stay.

    :returns: those that exist, each as it now is and whether it was retried, else why not. One that is not finished
        is not, nor one whose unique key another job holds.
    """
    return django_store(jobs_database(using)).retry(list(job_ids))


def release(job_ids: Iterable[int], *, using: str | None = None) -> list[Released]:
    """Let pending jobs run, once their time has come.

    :returns: those that exist, each as it now is and whether it was released; one that is not pending is not.
    """
    return django_store(jobs_database(using)).release_pending(list(job_ids))


def purge(
    state: str, older_than: dt.timedelta = dt.timedelta(), *, limit: int = 1000, using: str | None = None
) -> int:
    """Delete jobs that ended in ``state`` ``older_than`` ago or earlier, ``limit`` at most.

    :returns: how many were deleted; fewer than ``limit`` means that none is left.
    """
    return len(django_store(jobs_database(using)).purge(state, older_than.total_seconds(), limit))


def pause(queue_name: str, *, using: str | None = None) -> QueueRow:
    """Stop all claims from a queue, within one heartbeat; jobs that run finish."""
    return django_store(jobs_database(using)).upsert_queue(queue_name, pause=True)


def resume(queue_name: str, *, using: str | None = None) -> QueueRow:
    """Let workers claim from a queue again."""
    return django_store(jobs_database(using)).upsert_queue(queue_name, pause=False)


def stats(*, using: str | None = None) -> dict[str, int]:
    """How many jobs there are in each state; states without jobs are left out."""
    counts: Counter[str] = Counter()
    for _, state, count in stats_by_queue(using=using):
        counts[state] += count
    return dict(counts)


def stats_by_queue(*, using: str | None = None) -> list[QueueStats]:
    """How many jobs there are in each queue and state."""
    return django_store(jobs_database(using)).stats()
