"""Inserting jobs that have a unique key: who comes second is told of the job that holds it.

Usually one statement. On PostgreSQL an insert waits for another transaction that has just inserted the key, and what it
then has to tell is not in its snapshot: it is run again.

A statement takes its keys in their order, so two callers don't wait for each other in a circle. What is run again must
not break that: keys that it still wants may come before keys that it has. In a transaction, which keeps them, all is
undone first, back to a savepoint.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from django.db import OperationalError

from django_jobs.states import WAITING
from django_jobs.store.part import DEADLOCKS
from django_jobs.store.rows import ID, Duplicate, JobRow, NewJob
from django_jobs.store.sessions import Session

# How often one call looks again. Each time another transaction took the key, or gave it up, while this one waited.
ROUNDS = 10
# How often it begins anew so that keys are taken in order. Each time it has waited for another transaction.
ORDERLY_ROUNDS = 50

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


class _OutOfOrder(Exception):
    """Some keys were taken, and others are to be asked for again, which may come before those."""


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


def insert_unique(
    session: Session,
    new: Sequence[NewJob],
    insert: Insert,
    replace: Replace,
    is_deadlock: Callable[[Exception], bool] | None = None,
) -> list[JobRow]:
    """Insert jobs of which some, or all, have a unique key.

    :param insert: one statement, for jobs that have no key twice; for each what it told, None for: ask again.
    :param replace: one statement; new arguments and times for waiting jobs, by id. Those that still waited.
    :param is_deadlock: whether an error is a deadlock's; None where no insert waits for another.
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
    found = _settled(session, wanted, insert, replace, is_deadlock)
    return [
        found[owner] if owner == position else Duplicate(found[owner].values)
        for position, owner in enumerate(owners)
    ]


def _settled(
    session: Session,
    wanted: dict[int, NewJob],
    insert: Insert,
    replace: Replace,
    is_deadlock: Callable[[Exception], bool] | None,
) -> dict[int, JobRow]:
    seen: dict[int, tuple[int, str]] = {}
    keys = sum(job.unique_key is not None for job in wanted.values())
    if keys < 2 or is_deadlock is None or not session.in_transaction:
        return _settle(session, wanted, insert, replace, seen)
    deadlocks = 0
    for _ in range(ORDERLY_ROUNDS):
        try:
            with session.savepoint():
                return _settle(session, wanted, insert, replace, seen, in_order=True)
        except _OutOfOrder:
            pass
        except OperationalError as error:
            # Rows that are to be replaced, and those of an operator's retry, are locked in no order with the keys. But
            # what the transaction had before it keeps: a circle over that closes again each time, and each time both
            # wait for the server to find it (deadlock_timeout, a second).
            deadlocks += 1
            if deadlocks > DEADLOCKS or not is_deadlock(error):
                raise
    return _settle(session, wanted, insert, replace, seen)


def _settle(
    session: Session,
    wanted: dict[int, NewJob],
    insert: Insert,
    replace: Replace,
    seen: dict[int, tuple[int, str]],
    in_order: bool = False,
) -> dict[int, JobRow]:
    settled: dict[int, JobRow] = {}
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
        # In order: first all keys, then the rows of others, whose locks the transaction keeps as well.
        if not in_order or len(settled) + len(waiting) == len(wanted):
            settled |= _replaced(session, wanted, waiting, replace)
        if len(settled) == len(wanted):
            return settled
        if in_order and not all(job.is_duplicate for job in settled.values()):
            raise _OutOfOrder
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
