"""What follows when outcomes are stored: counts, and one log line for each attempt, of what the database has."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django_jobs.store.answers import Ended
from django_jobs.store.outcomes import RETRY, SNOOZED
from django_jobs.worker import connections
from django_jobs.worker.attempted import TIMED_OUT, UNREGISTERED, Attempted
from django_jobs.worker.followers import is_followed, outcome_of, tell
from django_jobs.worker.statistics import Statistics
from django_jobs.worker.tallies import tally_completed, tally_other

logger = logging.getLogger("django_jobs.attempts")


class Recorder:
    """The completer calls it with each batch that is stored.

    :param using: the alias of the jobs' database.
    """

    def __init__(self, statistics: Statistics, using: str | None = None) -> None:
        self.statistics = statistics
        self.using = using

    def __call__(self, batch: Sequence[Attempted], ended: dict[int, Ended]) -> None:
        """Count and log a stored batch, and send its signals."""
        self.record(batch, ended)
        if is_followed(batch):
            tell(batch, ended, self.using)
            # This thread has no job's connections; those of receivers are left sound, and none is held while nothing
            # happens.
            connections.close_all()

    def record(self, batch: Sequence[Attempted], ended: dict[int, Ended]) -> None:
        """Count and log a stored batch."""
        statistics = self.statistics
        tallies, others = tally_completed(batch, ended)
        statistics.completed += len(batch) - len(others)
        for attempted in others:
            item = ended.get(attempted.outcome.id)
            if item is None or not item.stored:
                statistics.dropped += 1
                continue
            outcome = outcome_of(attempted, item.state)
            tally_other(tallies, attempted, outcome)
            if outcome == "failed":
                statistics.dead += 1
            elif outcome == "cancelled":
                statistics.cancelled += 1
            elif outcome == "retried":
                statistics.retried += 1
            else:
                statistics.snoozed += 1
            if attempted.outcome.error_class == TIMED_OUT:
                statistics.timed_out += 1
        statistics.tallies.add(tallies)
        if statistics.measures is not None:
            statistics.measures.add(batch, ended, tallies)
        talk = logger.isEnabledFor(logging.INFO)
        for attempted in batch if talk else others:
            item = ended.get(attempted.outcome.id)
            if item is None or not item.stored:
                _log_dropped(attempted, item)
            elif talk or _is_loud(attempted, item.state):
                _log(attempted, item.state)


def _is_loud(attempted: Attempted, state: str) -> bool:
    """Whether its line is an error or a warning."""
    return state == "failed" or _is_warning(attempted)


def _is_warning(attempted: Attempted) -> bool:
    # A name that is not registered is snoozed, and that is no wish of the job's.
    return attempted.outcome.kind == RETRY or attempted.outcome.error_class == UNREGISTERED


def _log(attempted: Attempted, state: str) -> None:
    job = attempted.job
    outcome = _in_words(attempted, state)
    level = logging.INFO
    if state == "failed":
        level = logging.ERROR
    elif _is_warning(attempted):
        level = logging.WARNING
    logger.log(
        level,
        "job %d %s (queue %s) attempt %d of %d %s in %.3f s%s",
        job.id,
        job.name,
        job.queue_name,
        job.attempt,
        job.max_attempts,
        outcome,
        attempted.seconds,
        f": {_short(attempted.error)}" if attempted.error else "",
        extra=_fields(attempted, state),
    )
    if attempted.trace and logger.isEnabledFor(logging.DEBUG):
        logger.debug("job %d %s\n%s", job.id, job.name, attempted.trace)


def _log_dropped(attempted: Attempted, item: Ended | None) -> None:
    job = attempted.job
    logger.warning(
        "job %d %s (queue %s) attempt %d of %d: its outcome (%s) is dropped, since %s",
        job.id,
        job.name,
        job.queue_name,
        job.attempt,
        job.max_attempts,
        attempted.outcome.kind,
        "the job was deleted" if item is None else f"the claim was lost; the job is {item.state} now",
        extra=_fields(attempted, "dropped"),
    )


def _in_words(attempted: Attempted, state: str) -> str:
    kind, delay = attempted.outcome.kind, attempted.outcome.delay or 0.0
    if state == "failed":
        return "failed for good"
    if state in ("completed", "cancelled"):
        return state
    if kind == RETRY:
        return f"failed, next in {delay:.0f} s,"
    if kind == SNOOZED:
        return f"snoozed for {delay:.0f} s"
    return state


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"{line[:297]}..."


def _fields(attempted: Attempted, outcome: str) -> dict[str, object]:
    job = attempted.job
    return {
        "job_id": job.id,
        "job_name": job.name,
        "queue_name": job.queue_name,
        "attempt": job.attempt,
        "duration": attempted.seconds,
        "outcome": outcome,
        "error_class": attempted.outcome.error_class,
    }
