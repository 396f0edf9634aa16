"""Inserting jobs that have a unique key: who comes second is told of the job that holds it.

Usually one statement. On PostgreSQL an insert waits for another transaction that has just inserted the key, and what it
then has to tell is not in its snapshot: it is run again.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from django.db import OperationalError

from django_jobs.states import WAITING
from django_jobs.store.rows import ID, Duplicate, JobRow, NewJob
from django_jobs.store.sessions import Session

# How often one call looks again. Each time another transaction took the key, or gave it up, while this one waited.
ROUNDS = 10

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_PERIOD = re.compile(r"@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/(\d+)")

# A unique key as it was asked for, and for how many seconds.
Identity = tuple[str, int]


class Found(NamedTuple):
    """What a statement told of one job: the new row, or a :class:`Duplicate`.

    ``touched`` is what last touched the row, where that may have been after the snapshot; None if it was not.
    """

    job: JobRow
    touched: str | None = None


Insert = Callable[[Sequence[NewJob]], Sequence[Found | None]]
Replace = Callable[[Mapping[int, NewJob]], list[JobRow]]


class _Changed(Exception):
    """A job that was to be replaced waits no longer."""


def in_period(key: str, seconds: int, now: dt.datetime) -> tuple[str, dt.datetime]:
    """The key for the period of ``seconds`` that ``now`` is in, and when that ends. The statements write it alike."""
    length = dt.timedelta(seconds=seconds)
    start = _EPOCH + (now - _EPOCH) // length * length
    return f"{key}@{start:%Y-%m-%dT%H:%M:%SZ}/{seconds}", start + length


def asked_for(key: str) -> Identity | None:
    """The key and the seconds that were asked for, of one that its period was written behind; None of another."""
    base, _, _ = key.rpartition("@")
    period = _PERIOD.fullmatch(key, len(base))
    return (base, int(period[1])) if period else None


def insert_unique(session: Session, new: Sequence[NewJob], insert: Insert, replace: Replace) -> list[JobRow]:
    """Insert jobs of which some, or all, have a unique key.

    :param insert: one statement, for jobs that have no key twice; for each what it told, None for: ask again.
    :param replace: one statement; new arguments and times for waiting jobs, by id. Those that still waited.
    :returns: for each job of ``new`` the new row, or the :class:`Duplicate` that holds its key. Of two with one key
        the second is a duplicate of the first.
    :raises OperationalError: when the keys changed hands again and again.
    """
    first: dict[object, int] = {}
    owners: list[int] = []  # for each job the position of the first with its key
    wanted: dict[int, NewJob] = {}
    for position, job in enumerate(new):
        identity = position if job.unique_key is None else (job.unique_key, job.unique_for)
        owner = first.setdefault(identity, position)
        owners.append(owner)
        if owner == position or job.replace:  # the last arguments win
            wanted[owner] = job
    found = _settle(session, wanted, insert, replace)
    return [
        found[owner] if owner == position else Duplicate(found[owner].values)
        for position, owner in enumerate(owners)
    ]


def _settle(
    session: Session, wanted: dict[int, NewJob], insert: Insert, replace: Replace
) -> dict[int, JobRow]:
    settled: dict[int, JobRow] = {}
    seen: dict[int, tuple[int, str]] = {}
    last: dict[int, JobRow] = {}
    for _ in range(ROUNDS):
        open_ = {position: job for position, job in wanted.items() if position not in settled}
        waiting: dict[int, JobRow] = {}
        for position, told in zip(open_, insert(list(open_.values())), strict=True):
            if told is None:
                continue
            job, touched = told
            last[position] = job
            if touched is not None and seen.get(position) != (job.id, touched):
                # Touched after the snapshot, perhaps. Touched by the same once more: it was a lock, or is undone.
                seen[position] = (job.id, touched)
            elif job.is_duplicate and wanted[position].replace and job.state in WAITING:
                waiting[position] = job
            else:
                settled[position] = job
        settled |= _replaced(session, wanted, waiting, replace)
        if len(settled) == len(wanted):
            return settled
    missing = [position for position in wanted if position not in settled and position not in last]
    if missing:
        raise OperationalError(
            f"The unique key {wanted[missing[0]].unique_key!r} changed hands {ROUNDS} times while this waited for it. "
            f"Enqueue again."
        )
    return last | settled


def _replaced(
    session: Session, wanted: dict[int, NewJob], waiting: dict[int, JobRow], replace: Replace
) -> dict[int, JobRow]:
    """The waiting jobs with their new arguments; none of them if one of them waits no longer."""
    if not waiting:
        return {}
    positions = {job.id: position for position, job in waiting.items()}
    with contextlib.suppress(_Changed), session.savepoint():
        rows = replace({id_: wanted[positions[id_]] for id_ in sorted(positions)})
        if len(rows) == len(waiting):
            return {positions[row.values[ID]]: Duplicate(row.values) for row in rows}
        raise _Changed  # out of the savepoint, so that the lock that was taken on that job is let go
    return {}
