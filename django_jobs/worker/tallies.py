"""What became of jobs, counted for the statistics until the next heartbeat writes it down.

A process that is killed takes the counts of one heartbeat interval with it; jobs themselves are never lost that way.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Sequence
from typing import Any

from django_jobs import conf
from django_jobs.store.answers import Ended
from django_jobs.store.base import Store
from django_jobs.store.rows import ATTEMPTED_AT, NAME, QUEUE_NAME, RUN_AFTER
from django_jobs.store.statistics import StatRow
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.parts import one_line

logger = logging.getLogger("django_jobs.worker")

_fromisoformat = dt.datetime.fromisoformat
_NO_MOMENT = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
_NO_TIME = dt.timedelta()

Key = tuple[str, str, str, str]  # queue, name, outcome, error class
Tally = list[
    float
]  # how many; the total and the greatest of the seconds they ran; the same of those they waited

# So many kinds are told apart between two flushes. Of a site that makes up queues or errors without end, the others of
# an outcome are one kind.
MOST_KEYS = 1000
OTHERS = "(others)"


class Tallies:
    """Counts that are not written yet. Any thread may add to them."""

    def __init__(self) -> None:
        #: Whether anything is counted at all.
        self.enabled = conf.statistics_retention() != 0
        self._lock = threading.Lock()
        self._tallies: dict[Key, Tally] = {}

    def add(self, tallies: dict[Key, Tally]) -> None:
        """Add what a batch came to."""
        if not self.enabled:
            return
        with self._lock:
            for key, tally in tallies.items():
                self._add(key, tally)

    def _add(self, key: Key, tally: Tally) -> None:
        known = self._tallies.get(key)
        if known is None and len(self._tallies) >= MOST_KEYS:
            key = (OTHERS, OTHERS, key[2], OTHERS if key[3] else "")
            known = self._tallies.get(key)
        if known is None:
            self._tallies[key] = tally[:]
        else:
            merge(known, tally)

    def flush(self, store: Store) -> None:
        """Write all that was counted since the last time; nothing, if that is nothing. What fails is written later.

        Where the answer of a write was lost, it is written twice: of the two ways to be wrong, the rarer one.
        """
        if not self._tallies:
            return
        with self._lock:
            taken, self._tallies = self._tallies, {}
        try:
            store.record_stats([StatRow(*key, int(tally[0]), *tally[1:]) for key, tally in taken.items()])
        except Exception as error:
            logger.warning("The statistics can't be written now: %s", one_line(error))
            self.add(taken)


def merge(known: Tally, tally: Tally) -> None:
    """Add ``tally`` to ``known``."""
    known[0] += tally[0]
    known[1] += tally[1]
    known[2] = max(known[2], tally[2])
    known[3] += tally[3]
    known[4] = max(known[4], tally[4])


def tally_completed(
    batch: Sequence[Attempted], ended: dict[int, Ended]
) -> tuple[dict[Key, Tally], list[Attempted]]:
    """What the completed ones of a stored batch came to, and the attempts that did not complete, or are not stored.

    Every job comes by here, so this is written for speed: a third of a microsecond each.
    """
    tallies: dict[tuple[str, str], tuple[list[float], list[dt.timedelta]]] = {}
    others: list[Attempted] = []
    claimed_at, claimed = _NO_MOMENT, None
    due_at, due = _NO_MOMENT, None
    known = tallies.get
    for attempted in batch:
        item = ended.get(attempted[0][0])
        if item is None or item[1] != "completed" or not item[2]:
            others.append(attempted)
            continue
        seconds = attempted[2]
        values = attempted[1].values
        try:
            if values[ATTEMPTED_AT] != claimed:  # alike for all that one claim brought
                claimed_at, claimed = _fromisoformat(values[ATTEMPTED_AT]), values[ATTEMPTED_AT]
            if values[RUN_AFTER] != due:  # alike for all that one enqueue_many() made
                due_at, due = _fromisoformat(values[RUN_AFTER]), values[RUN_AFTER]
            wait = claimed_at - due_at
        except (ValueError, TypeError):  # a time that somebody's SQL wrote
            wait = _NO_TIME
        tally = known((values[QUEUE_NAME], values[NAME]))
        if tally is None:
            tallies[values[QUEUE_NAME], values[NAME]] = [1, seconds, seconds], [wait, wait]
            continue
        runs, waits = tally
        runs[0] += 1
        runs[1] += seconds
        if seconds > runs[2]:
            runs[2] = seconds
        waits[0] += wait
        if wait > waits[1]:
            waits[1] = wait
    return {
        (queue_name, name, "completed", ""): [*runs, *(max(0.0, wait.total_seconds()) for wait in waits)]
        for (queue_name, name), (runs, waits) in tallies.items()
    }, others


def tally_other(tallies: dict[Key, Tally], attempted: Attempted, word: str) -> None:
    """Add an attempt that did not complete; ``word`` is what became of it."""
    values = attempted.job.values
    error_class = attempted.outcome.error_class if word in ("failed", "retried") else None
    key = (values[QUEUE_NAME], values[NAME], word, error_class or "")
    wait = waited(values[ATTEMPTED_AT], values[RUN_AFTER])
    tally: Tally = [1, attempted.seconds, attempted.seconds, wait, wait]
    known = tallies.setdefault(key, tally)
    if known is not tally:
        merge(known, tally)


def waited(claimed: Any, due: Any) -> float:
    """Seconds between two times of a row; 0 where one of them can't be read."""
    try:
        return max(0.0, (_fromisoformat(claimed) - _fromisoformat(due)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
