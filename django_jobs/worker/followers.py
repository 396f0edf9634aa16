"""Who is told of a stored outcome: receivers of ``job_finished``, and the job's definition, if that wants to know."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from django_jobs.databases import jobs_database
from django_jobs.exceptions import WorkerLost
from django_jobs.job_registry import registry
from django_jobs.signals import job_finished, send
from django_jobs.states import FINISHED, State
from django_jobs.store.answers import Ended
from django_jobs.store.outcomes import RETRY
from django_jobs.store.rows import NAME, JobRow
from django_jobs.worker import connections
from django_jobs.worker.attempted import Attempted

logger = logging.getLogger("django_jobs.signals")


def is_followed(batch: Sequence[Attempted]) -> bool:
    """Whether anybody is told of one of these, and so gets its row."""
    if job_finished.receivers:
        return True
    listening = registry.listening
    return bool(listening) and not listening.keys().isdisjoint(
        [attempted.job.values[NAME] for attempted in batch]
    )


def tell(batch: Sequence[Attempted], ended: dict[int, Ended], using: str | None) -> None:
    """Tell of the outcomes that are stored, in their order."""
    listening = registry.listening
    for attempted in batch:
        item = ended.get(attempted.outcome.id)
        # Without its row: a receiver was connected while the batch was written.
        if item is None or not item.stored or item.job is None:
            continue
        job = item.job
        if job_finished.receivers:
            send(
                job_finished,
                job.name,
                job=job,
                outcome=outcome_of(attempted, item.state),
                seconds=attempted.seconds,
                error=attempted.error,
            )
        definition = listening.get(job.values[NAME])
        if definition is not None and definition.on_stored is not None:
            try:
                definition.on_stored(job, attempted.exception, attempted.error, jobs_database(using))
            except Exception:
                logger.exception("What follows the end of job %s failed", job.id)


def listened(jobs: Iterable[JobRow]) -> list[JobRow]:
    """Those of the jobs whose definitions want to know of their ends."""
    listening = registry.listening
    return [job for job in jobs if job.values[NAME] in listening] if listening else []


def tell_of_lost(jobs: Iterable[JobRow], reason: str, using: str | None) -> None:
    """Tell the definitions of attempts that ended without their worker, which died or stops: nobody else does.

    :param jobs: as they are stored now.
    """
    found = listened(jobs)
    for job in found:
        definition = registry.listening.get(job.values[NAME])
        if definition is None or definition.on_stored is None:
            continue
        try:
            error = None if job.state == State.COMPLETED else WorkerLost(reason)
            definition.on_stored(job, error, reason, jobs_database(using))
        except Exception:
            logger.exception("What follows the end of job %s failed", job.id)
    if found:
        connections.close_all()  # of receivers; this thread has none of a job


def outcome_of(attempted: Attempted, state: str) -> str:
    """How an attempt ended, of which ``state`` was stored."""
    if state in FINISHED:
        return state
    return "retried" if attempted.outcome.kind == RETRY else "snoozed"
