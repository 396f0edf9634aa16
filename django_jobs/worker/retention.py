"""How long finished jobs are kept: the rules, and their application in bounded statements."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from django_jobs import conf
from django_jobs.states import FINISHED
from django_jobs.store import Store
from django_jobs.store.outcomes import CANCELLED, COMPLETED, FAILED, RELEASED, RETRY, SNOOZED
from django_jobs.store.rows import QUEUE_NAME
from django_jobs.store.selecting import Position
from django_jobs.worker.attempted import Attempted

BATCH = 1000
# Full batches that one round purges for each rule, so that a huge purge does not keep the keeper from its other work.
BATCHES = 20
# A search of one queue's jobs passes those of the others, which may stay for long, and does so once: it goes on from
# where it was. It starts anew after this time, for jobs that have let go of their key since, and rows that were locked;
# so does a purge of all, of which one full batch after the other goes on from where it was.
ANEW_SECONDS = 3600.0
# What ended so lately may have neighbours that are not committed yet: the search does not count it as passed.
SETTLED_SECONDS = 60.0


# How an attempt can end a job, by the kind of its outcome: a request to cancel it may have come meanwhile.
_ENDS = {
    COMPLETED: frozenset({"completed"}),
    FAILED: frozenset({"failed", "cancelled"}),
    CANCELLED: frozenset({"cancelled"}),
    RETRY: frozenset({"failed", "cancelled"}),
    SNOOZED: frozenset({"cancelled"}),
    RELEASED: frozenset({"cancelled"}),
}


@dataclass
class Rule:
    """What is purged alike: jobs that ended in a state, of one queue or of all but those with rules of their own."""

    state: str
    age: float
    queue_name: str | None = None
    other_than: tuple[str, ...] = ()
    position: Position | None = field(default=None, repr=False)
    started_at: float = field(default=float("-inf"), repr=False)

    @property
    def passes_by(self) -> bool:
        """Whether jobs that are to stay may lie among those that are to go."""
        return self.queue_name is not None or bool(self.other_than)


class Retention:
    """The rules of ``DJANGO_JOBS["RETENTION"]``, as they are when it is made.

    A queue's own rule goes before the general one, state by state.
    """

    def __init__(self) -> None:
        self.general = conf.retention()
        self.by_queue = conf.queue_retention()
        self.rules = [*self._make_rules()]
        self._unkept = {name: conf.unkept(name) for name in self.by_queue}
        self._unkept_elsewhere = frozenset(state for state, age in self.general.items() if age == 0)
        #: Whether any job is deleted as it ends: only then does the completer look.
        self.deletes_at_once = any(rule.age == 0 for rule in self.rules)

    def _make_rules(self) -> Iterator[Rule]:
        for state in FINISHED:
            own = tuple(sorted(name for name, ages in self.by_queue.items() if state in ages))
            if (age := self.general[state]) is not None:
                yield Rule(state, age, other_than=own)
            for name in own:
                if (age := self.by_queue[name][state]) is not None:
                    yield Rule(state, age, queue_name=name)

    def unkept(self, attempted: Attempted) -> frozenset[str]:
        """The states among those that an attempt can end in, in which its job is deleted as it ends."""
        states = self._unkept.get(attempted.job.values[QUEUE_NAME], self._unkept_elsewhere)
        return states & _ENDS[attempted.outcome.kind] if states else states

    def purge(self, store: Store, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Delete what is past its time, a bounded number of batches; whether there may be more."""
        more = False
        for rule in self.rules:
            steps = _passing_by(store, rule) if rule.passes_by else _plainly(store, rule)
            for _ in range(BATCHES):
                if stopping():
                    return False
                if not next(steps, False):
                    break
            else:
                more = True
        return more


def _plainly(store: Store, rule: Rule) -> Iterator[bool]:
    """Purge batch by batch; each time, whether there may be more.

    While a full batch follows the other, each begins where the one before it ended, in the next round too. One that is
    not full is the last: the next round begins at the beginning, and finds what was not committed, or was locked.
    """
    _begin_anew(rule)
    while True:
        purged = store.purge_from(rule.position, rule.state, rule.age, BATCH)
        is_full = len(purged.positions) == BATCH
        rule.position = purged.end if is_full else None
        yield is_full


def _begin_anew(rule: Rule) -> None:
    """Forget the position when it is old."""
    now = time.monotonic()
    if now - rule.started_at >= ANEW_SECONDS:
        rule.position, rule.started_at = None, now


def _passing_by(store: Store, rule: Rule) -> Iterator[bool]:
    """The same, among jobs that stay."""
    _begin_anew(rule)
    settled = max(rule.age, SETTLED_SECONDS)
    while (end := _purge_next(store, rule, settled, rule.position)) is not None:
        rule.position = end
        yield True
    position = rule.position
    while rule.age < settled and (end := _purge_next(store, rule, rule.age, position)) is not None:
        position = end
        yield True


def _purge_next(store: Store, rule: Rule, age: float, after: Position | None) -> Position | None:
    found = store.select_expired(rule.state, age, rule.queue_name, rule.other_than, after, BATCH)
    if found.positions:
        store.delete(found.ids, rule.state, whole_rows=False)
    return found.end
