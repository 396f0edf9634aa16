"""How the queues stand: what waits, since when, what becomes of it, and who works on it."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from django_jobs.databases import jobs_database
from django_jobs.operations.counting import MOST, Count, queue_counts
from django_jobs.serialization import decoded
from django_jobs.sound_rows import sound
from django_jobs.states import Counted
from django_jobs.store import Store, django_store
from django_jobs.store.statistics import LiveWorker

EVERY_QUEUE = "*"
# Throughput is told of this time: a heartbeat is in it whole, many times over.
RECENT = dt.timedelta(minutes=5)
# Queues and priorities whose oldest job is looked for.
MOST_HEADS = 2000

# The states of which a queue's jobs are counted.
COUNTED = ("pending", "scheduled", "available", "running", "failed")
_NONE = Count(0)


class QueueStatus(NamedTuple):
    """How a queue stands.

    :param available: jobs that wait for a worker; ``pending``, ``scheduled``, ``running`` and ``failed`` jobs likewise.
        Those are counted up to a bound: see :func:`~django_jobs.operations.stats_for`.
    :param oldest: seconds since when the longest due of the available jobs is due; None when none is available.
    :param completed: jobs that completed in the last five minutes; ``dead`` are dead letters, and ``retried`` attempts
        that failed, of that time.
    :param workers: the ids of the workers that serve it, and are neither late nor quiet.
    :param paused_at: since when it is paused, or None.
    """

    name: str
    available: Count = _NONE
    pending: Count = _NONE
    scheduled: Count = _NONE
    running: Count = _NONE
    failed: Count = _NONE
    oldest: float | None = None
    completed: int = 0
    dead: int = 0
    retried: int = 0
    workers: tuple[int, ...] = ()
    paused_at: dt.datetime | None = None

    @property
    def per_minute(self) -> float:
        """How many jobs a minute completed, lately."""
        return self.completed / (RECENT.total_seconds() / 60)


class Queues(list[QueueStatus]):
    """How queues stand. ``is_cut``: more queues and priorities wait than were looked at, and what waits there is not
    counted."""

    is_cut: bool = False


def queue_status(*, using: str | None = None, now: dt.datetime | None = None) -> list[QueueStatus]:
    """How each queue stands that has jobs which have not completed, has had any lately, is served by name, or has a
    row, by name.

    It takes six statements, each bounded, however many jobs there are.

    :param now: the moment that it is, for tests; the database's time by default.
    """
    alias = jobs_database(using)
    store = django_store(alias)
    return queues_of(store, alias, live_workers(store, now)[1], now)


def live_workers(store: Store, now: dt.datetime | None = None) -> tuple[dt.datetime, list[LiveWorker]]:
    """The database's time, and the workers that have not stopped and were not lost; late ones are among them."""
    return store.live_workers(now)


def queues_of(
    store: Store, alias: str, workers: Iterable[LiveWorker], now: dt.datetime | None = None
) -> Queues:
    """:func:`queue_status`, with the workers that are known already."""
    from django_jobs.models import Queue

    oldest: dict[str, float] = {}
    heads = store.waiting(MOST_HEADS, now)
    for head in heads:
        age = max(0.0, (head.now - head.due).total_seconds())
        oldest[head.queue_name] = max(age, oldest.get(head.queue_name, 0.0))
    # A queue of which there is nothing but completed and cancelled jobs is of the past.
    counts: dict[str, dict[str, Count]] = defaultdict(dict)
    for name, state, count in queue_counts(store, oldest, ended=False):
        counts[name][state] = count
    recent: dict[str, dict[str, int]] = defaultdict(dict)
    for name, outcome, number in store.queue_history(RECENT.total_seconds(), now):
        recent[name][outcome] = number
    rows = sound(Queue.objects.using(alias).only("name", "paused_at"))
    paused = {row.name: row.paused_at for row in rows}
    serving = served_by(workers)
    everywhere = serving.pop(EVERY_QUEUE, ())
    queues = Queues(
        QueueStatus(
            name,
            **{state: counts.get(name, {}).get(state, _NONE) for state in COUNTED},
            oldest=oldest.get(name),
            completed=recent.get(name, {}).get(Counted.COMPLETED, 0),
            dead=recent.get(name, {}).get(Counted.FAILED, 0),
            retried=recent.get(name, {}).get(Counted.RETRIED, 0),
            workers=tuple(sorted({*serving.get(name, ()), *everywhere})),
            paused_at=paused.get(name),
        )
        for name in sorted({*counts, *oldest, *recent, *paused, *serving})
    )
    queues.is_cut = len(heads) == MOST_HEADS
    return queues


def totals(queues: Iterable[QueueStatus]) -> dict[str, Count]:
    """How many jobs of all queues together are in each of the states that queues are counted by.

    As :func:`~django_jobs.operations.counts` would say it, without asking again; but where so many queues wait that few
    available jobs of each are counted, it may be "more than" less, and of :attr:`Queues.is_cut` ones it is less.
    """
    queues = list(queues)
    found = {}
    for state in COUNTED:
        parts: list[Count] = [getattr(queue, state) for queue in queues]
        number, capped = sum(parts), any(part.capped for part in parts)
        found[state] = Count(min(number, MOST), capped or number > MOST)
    return found


def served_by(workers: Iterable[LiveWorker]) -> dict[str, tuple[int, ...]]:
    """The ids of the workers that take jobs, by queue; by ``*`` those that take any."""
    serving: dict[str, list[int]] = defaultdict(list)
    for worker in workers:
        if worker.expires_at >= worker.now and not worker.quiet_requested_at and not worker.stop_requested_at:
            for name in queue_names(worker):
                serving[name].append(worker.id)
    return {name: tuple(ids) for name, ids in serving.items()}


def queue_names(worker: LiveWorker) -> list[str]:
    """The queues that a worker serves; ``*`` for all others."""
    pools = decoded(worker.queues)  # of somebody else's SQL it may be anything
    return [name for pool in pools for name in str(pool).split(",")] if isinstance(pools, list) else []
