"""Claimed jobs: the order in which they run, and what a release needs of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from django_jobs.serialization import Undecodable, stored_timestamp
from django_jobs.store.rows import CLAIMS, ERRORS, ID, NAME, PRIORITY, RUN_AFTER, JobRow

_name = itemgetter(NAME)
_by_time = itemgetter(RUN_AFTER, ID)
_by_priority = itemgetter(PRIORITY)


def claimed(rows: list[tuple[Any, ...]], alike: tuple[Any, ...]) -> list[JobRow]:
    """The jobs of a claim, in their order.

    A column that comes back costs more than to write it, so those come back alone that are not known: ``alike`` is what
    the others, which are the last of :data:`~django_jobs.store.rows.JOB_COLUMNS`, are in each row now.
    """
    if bytes in set(map(type, map(_name, rows))):  # of SQLite: somebody's SQL has written no text there
        rows[:] = [(*row[:NAME], _text(row[NAME]), *row[NAME + 1 :]) for row in rows]
    if len(rows) > 1:
        try:
            # Two stable sorts by what C can compare, the second of what is mostly alike: a third of one by a key
            # of our own. Texts of moments in UTC sort as the moments do, also with fewer digits: "+" and "." come
            # before all digits.
            rows.sort(key=_by_time)
            rows.sort(key=_by_priority, reverse=True)
        except (ValueError, TypeError):  # a time that somebody's SQL wrote: the claim stands all the same
            rows.sort(key=_order_of_any)
    return [JobRow(row + alike) for row in rows]


def alike_after(worker_id: int, queue_name: str) -> tuple[Any, ...]:
    """What jobs have alike that a worker has claimed from a queue: queue_name, state, worker_id, and no finalized_at,
    which a CHECK sees to."""
    return (queue_name, "running", worker_id, None)


def _order_of_any(values: tuple[Any, ...]) -> tuple[int, dt.datetime, int]:
    return (-values[PRIORITY], stored_timestamp(values[RUN_AFTER]) or _NO_TIME, values[ID])


def _text(name: Any) -> Any:
    return Undecodable(name.decode(errors="backslashreplace")) if isinstance(name, bytes) else name


_NO_TIME = dt.datetime(1, 1, 1, tzinfo=dt.UTC)


def started_before(job: JobRow) -> str | None:
    """When the attempt before the job's present claim started, as text; None when that is not known.

    A release puts the job back as it was before the claim, this time included; the last error tells it. An attempt that
    left no error is not told: to keep its time would cost every claim, and the next claim of the job overwrites it.
    """
    if not job.values[ERRORS]:
        return None
    try:
        moment = dt.datetime.fromisoformat(job.errors[-1]["attempted_at"])
    except (ValueError, TypeError, KeyError, IndexError):
        return None  # written by somebody else's SQL, or cut; the job is worth more than this time
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def by_claim(jobs: Sequence[JobRow]) -> list[JobRow]:
    """Jobs in the order of their ids, the order in which every statement locks rows."""
    return sorted(jobs, key=lambda job: (job.values[ID], job.values[CLAIMS]))
