"""What became of jobs, counted for the statistics until the next heartbeat writes it down.

A process that is killed takes the counts of one heartbeat interval with it; jobs themselves are never lost that way.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from django_jobs import conf
from django_jobs.serialization import parse_timestamp
from django_jobs.store.base import RETRY, Store
from django_jobs.store.rows import ATTEMPTED_AT, NAME, QUEUE_NAME, RUN_AFTER, Ended, JobRow
from django_jobs.store.statistics import StatRow
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.parts import one_line

logger = logging.getLogger("django_jobs.worker")

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


def tally_batch(batch: Sequence[Attempted], ended: dict[int, Ended]) -> dict[Key, Tally]:
    """What a stored batch came to. Every job comes by here, so it is written for speed."""
    tallies: dict[Key, Tally] = {}
    moments: dict[Any, float] = {}  # a claim has one for all the jobs that it brought
    for attempted in batch:
        outcome = attempted[0]
        item = ended.get(outcome[0])
        if item is None or not item[2]:
            continue
        values = attempted[1].values
        state = item[1]
        if state == "completed":
            key = (values[QUEUE_NAME], values[NAME], "completed", "")
        elif state == "cancelled":
            key = (values[QUEUE_NAME], values[NAME], "cancelled", "")
        elif state == "failed":
            key = (values[QUEUE_NAME], values[NAME], "failed", outcome[4] or "")
        elif outcome[2] == RETRY:
            key = (values[QUEUE_NAME], values[NAME], "retried", outcome[4] or "")
        else:
            key = (values[QUEUE_NAME], values[NAME], "snoozed", "")
        seconds = attempted[2]
        claimed, due = values[ATTEMPTED_AT], values[RUN_AFTER]
        if claimed not in moments:
            moments[claimed] = _moment(claimed)
        if due not in moments:
            moments[due] = _moment(due)
        wait = moments[claimed] - moments[due]
        if not wait > 0.0:  # nor where one of them can't be read
            wait = 0.0
        tally = tallies.get(key)
        if tally is None:
            tallies[key] = [1, seconds, seconds, wait, wait]
        else:
            tally[0] += 1
            tally[1] += seconds
            if seconds > tally[2]:
                tally[2] = seconds
            tally[3] += wait
            if wait > tally[4]:
                tally[4] = wait
    return tallies


def _moment(text: Any) -> float:
    """A time of a row, in seconds; one that somebody's SQL wrote, and that can't be read, is no number."""
    try:
        moment = parse_timestamp(text)
        return math.nan if moment is None else moment.timestamp()
    except (ValueError, TypeError, AttributeError):
        return math.nan


def record_rescued(store: Store, jobs: Iterable[JobRow]) -> None:
    """Count jobs whose claims were ended because their worker is gone; how long they ran, nobody knows.

    What fails is logged: a rescue must not fail for its count.
    """
    if conf.statistics_retention() == 0:
        return
    counts: dict[Key, int] = {}
    for job in jobs:
        word = job.state if job.state in ("failed", "cancelled") else "retried"
        key = (job.queue_name, job.name, word, "" if word == "cancelled" else job.error_class or "")
        counts[key] = counts.get(key, 0) + 1
    if not counts:
        return
    try:
        store.record_stats([StatRow(*key, count) for key, count in counts.items()])
    except Exception as error:
        logger.warning("The statistics of rescued jobs can't be written: %s", one_line(error))
