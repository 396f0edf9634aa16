"""How many jobs there are: read off an index, up to a bound, however many there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Self

from django_jobs.databases import jobs_database
from django_jobs.operations.filters import STATES
from django_jobs.options import check_queue_name
from django_jobs.states import State
from django_jobs.store import Store, django_store

# As many are counted; beyond that it is "more than".
MOST = 10_000
# Of all queues together, so that a site with a thousand queues gets its answer too; but so many of each.
MOST_TOGETHER = 50_000
LEAST = 100


class Count(int):
    """A number of jobs, as far as they were counted: compares and adds as the number that it is.

    :param number: how many were counted.
    :param capped: there are more; nobody counted how many.
    """

    capped: bool

    def __new__(cls, number: int, capped: bool = False) -> Self:
        count = super().__new__(cls, number)
        count.capped = capped
        return count

    @property
    def number(self) -> int:
        """The number alone."""
        return int(self)

    def __str__(self) -> str:
        return f"{int(self):,}{'+' if self.capped else ''}"

    def __repr__(self) -> str:
        return f"Count({int(self)}{', capped=True' if self.capped else ''})"


class QueueStats(NamedTuple):
    """How many jobs a queue has in a state."""

    queue_name: str
    state: str
    jobs: Count


def counted(number: int, most: int) -> Count:
    """A number that was read by looking at ``most`` + 1 rows."""
    return Count(most, True) if number > most else Count(number)


def counts(*, using: str | None = None) -> dict[str, Count]:
    """How many jobs there are in each state, every state in the order of a job's life.

    Up to 10,000 of each are counted, in one statement, by an index: as quick with millions of jobs as with a few.
    """
    store = django_store(jobs_database(using))
    found = dict(store.count_states(MOST + 1))
    return {state: counted(found.get(state, 0), MOST) for state in STATES}


def stats(*, using: str | None = None) -> dict[str, Count]:
    """How many jobs there are in each state, as :func:`counts`; states without jobs are left out."""
    return {state: count for state, count in counts(using=using).items() if count}


def stats_for(queue_name: str, *, using: str | None = None) -> dict[str, Count]:
    """How many jobs of a queue there are in each state; states without jobs are left out.

    Available jobs are counted up to 10,000. Of each other state those of the queue are counted among the first 10,000
    (of finished jobs, those that ended last; of scheduled ones, those due first).
    """
    check_queue_name(queue_name, "operations.stats_for()")
    rows = queue_counts(django_store(jobs_database(using)), [queue_name])
    return {state: count for name, state, count in rows if name == queue_name}


def stats_by_queue(*, using: str | None = None) -> list[QueueStats]:
    """How many jobs there are in each queue and state, as :func:`stats_for`; of available ones in a site with many
    queues fewer are counted, 100 of each at least."""
    store = django_store(jobs_database(using))
    return queue_counts(store, store.waiting_queues())


def queue_counts(store: Store, waiting: Iterable[str], ended: bool = True) -> list[QueueStats]:
    """The counts of all queues, by queue and state; of available jobs, of the queues ``waiting``.

    :param ended: whether completed and cancelled jobs are counted, too.
    """
    waiting = list(waiting)
    most = min(MOST, max(LEAST, MOST_TOGETHER // max(1, len(waiting))))
    rows = store.count_queues(MOST + 1, ended)
    looked: dict[str, int] = dict.fromkeys(STATES, 0)
    for _, state, number in rows:
        looked[state] += number
    found = [QueueStats(name, state, Count(number, looked[state] > MOST)) for name, state, number in rows]
    for name, number in store.count_available(waiting, most + 1).items() if waiting else ():
        if number:
            found.append(QueueStats(name, str(State.AVAILABLE), counted(number, most)))
    order = {state: place for place, state in enumerate(STATES)}
    return sorted(found, key=lambda row: (row.queue_name, order[row.state]))
