"""The insert of one job: what its statement takes, and the row that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django_jobs.serialization import parse_timestamp
from django_jobs.store.rows import JobRow, NewJob

# attempted_at, finalized_at, cancel_requested_at, worker_id
_NO_CLAIM_YET = (None, None, None, None)
# error_class, errors, result
_NO_OUTCOME_YET = (None, None, None)


def inserted_row(row: tuple[Any, ...], job: NewJob, key: str | None = None, key_until: Any = None) -> JobRow:
    """The row of a job just inserted, of what the statement returned (id, run_after, created_at) and what we know."""
    id_, run_after, created_at = row[:3]
    later = (job.delay is not None and job.delay > 0) or (
        job.run_after is not None and parse_timestamp(run_after) > parse_timestamp(created_at)  # type: ignore[operator]
    )
    state = "pending" if job.pending else "scheduled" if later else "available"
    known = (id_, job.name, job.queue_name, job.args, job.kwargs, job.priority, state, 0, job.max_attempts, 0)
    times = (run_after, created_at)
    keys = (key, key is not None, job.tags)
    return JobRow(
        (*known, *times, *_NO_CLAIM_YET, *keys, *_NO_OUTCOME_YET, job.metadata, job.timeout, key_until)
    )


def inserted_alike(
    rows: Iterable[tuple[Any, ...]], jobs: Sequence[NewJob], times: tuple[Any, Any]
) -> list[JobRow]:
    """:func:`inserted_row` of jobs that have nothing of their own but the id and the arguments by position, which is
    what most calls of one function have; a tenth of the time that thousands of them take.

    :param times: run_after and created_at.
    """
    _, name, queue_name, _, *rest = inserted_row((0, *times), jobs[0]).values
    return [JobRow((row[0], name, queue_name, job[6], *rest)) for row, job in zip(rows, jobs, strict=True)]


def is_usual(new: NewJob) -> bool:
    """Whether a job may run at once and has none of what few jobs have."""
    return (
        new.run_after is None
        and new.delay is None
        and not new.pending
        and new.timeout is None
        and new.tags is None
        and new.metadata is None
        and new.unique_key is None
    )


def usual_parameters(new: NewJob) -> dict[str, Any]:
    """What insert_now takes of a job."""
    return {
        "name": new.name,
        "queue_name": new.queue_name,
        "args": new.args,
        "kwargs": new.kwargs,
        "priority": new.priority,
        "max_attempts": new.max_attempts,
    }
