"""The insert of one job: what its statement takes, and the row that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django_jobs.serialization import parse_timestamp
from django_jobs.store.rows import ATTEMPTED_AT, HOLDS_KEY, JobRow, NewJob

# error_class, errors, result
_NO_OUTCOME_YET = (None, None, None)
# Of a NewJob that may run at once and has none of what few jobs have: run_after and delay, and all after the arguments.
_AT_ONCE = (None, None)
_NOTHING_ELSE = NewJob("")[8:]
# Of its row: cancel_requested_at, unique_key, holds_key; and all from tags up to attempted_at.
_FREE = (None, None, False)
_EMPTY = (None,) * (ATTEMPTED_AT - HOLDS_KEY)


def inserted_row(row: tuple[Any, ...], job: NewJob, key: str | None = None, key_until: Any = None) -> JobRow:
    """The row of a job just inserted, of what the statement returned (id, run_after, created_at) and what we know."""
    id_, run_after, created_at = row[:3]
    later = (job.delay is not None and job.delay > 0) or (
        job.run_after is not None and parse_timestamp(run_after) > parse_timestamp(created_at)  # type: ignore[operator]
    )
    state = "pending" if job.pending else "scheduled" if later else "available"
    known = (
        id_,
        job.name,
        job.args,
        job.kwargs,
        job.priority,
        0,
        job.max_attempts,
        0,
        run_after,
        created_at,
        None,
    )
    keys = (key, key is not None, job.tags)
    no_claim_yet = (None, job.queue_name, state, None, None)
    return JobRow((*known, *keys, *_NO_OUTCOME_YET, job.metadata, job.timeout, key_until, *no_claim_yet))


def inserted_alike(
    rows: Iterable[tuple[Any, ...]], jobs: Sequence[NewJob], times: tuple[Any, Any]
) -> list[JobRow]:
    """:func:`inserted_row` of jobs that have nothing of their own but the id and the arguments by position, which is
    what most calls of one function have; a tenth of the time that thousands of them take.

    :param times: run_after and created_at.
    """
    _, name, _, *rest = inserted_row((0, *times), jobs[0]).values
    return [JobRow((row[0], name, job[6], *rest)) for row, job in zip(rows, jobs, strict=True)]


def is_usual(new: NewJob) -> bool:
    """Whether a job may run at once and has none of what few jobs have."""
    return new[4:6] == _AT_ONCE and new[8:] == _NOTHING_ELSE


def usual_parameters(new: NewJob, /, **more: Any) -> dict[str, Any]:
    """What insert_now takes of a job."""
    name, queue_name, priority, max_attempts, _, _, args, kwargs, *_ = new
    return {
        "name": name,
        "queue_name": queue_name,
        "args": args,
        "kwargs": kwargs,
        "priority": priority,
        "max_attempts": max_attempts,
        **more,
    }


def usual_row(id_: int, moment: Any, new: NewJob) -> JobRow:
    """:func:`inserted_row` of a job that is usual, in a third of the time."""
    name, queue_name, priority, max_attempts, _, _, args, kwargs, *_ = new
    here = (id_, name, args, kwargs, priority, 0, max_attempts, 0, moment, moment)
    return JobRow(here + _FREE + _EMPTY + (queue_name, "available", None, None))
