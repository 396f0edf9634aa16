"""What a worker measures of its attempts for scrapers: counts and histograms, added to batch by batch.

Only a worker with ``--metrics-port`` has them; no other pays for them.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django_jobs.store.answers import Ended
from django_jobs.store.rows import ATTEMPTED_AT, NAME, QUEUE_NAME, RUN_AFTER
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.tallies import MOST_KEYS, OTHERS, Key, Tally, waited

# The upper bounds of the histograms' buckets, in seconds; there is one more for all above.
BOUNDS = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    1800.0,
    3600.0,
)

_TIMED = ("completed", "failed", "retried")

Snapshot = dict[str, Any]
Pair = tuple[str, str]  # queue and name


class Measures:
    """Counts since the worker's start. Writers add batches, a scrape takes a snapshot."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: dict[tuple[str, str, str], int] = {}
        self._runs: dict[Pair, list[float]] = {}  # the buckets, and the sum
        self._waits: dict[Pair, list[float]] = {}

    def add(
        self, batch: Sequence[Attempted], ended: Mapping[int, Ended], tallies: Mapping[Key, Tally]
    ) -> None:
        """Add a stored batch, and what it came to."""
        with self._lock:
            for (queue_name, name, outcome, _), tally in tallies.items():
                pair = self._pair(queue_name, name)
                kind = (*pair, outcome)
                self._attempts[kind] = self._attempts.get(kind, 0) + int(tally[0])
                if outcome in _TIMED:
                    self._runs[pair][-1] += tally[1]
                    self._waits[pair][-1] += tally[3]
            for attempted in batch:
                item = ended.get(attempted.outcome.id)
                if item is None or not item.stored or not _is_timed(attempted, item.state):
                    continue
                values = attempted.job.values
                pair = self._pair(values[QUEUE_NAME], values[NAME])
                self._runs[pair][bisect_left(BOUNDS, attempted.seconds)] += 1
                wait = waited(values[ATTEMPTED_AT], values[RUN_AFTER])
                self._waits[pair][bisect_left(BOUNDS, wait)] += 1

    def _pair(self, queue_name: str, name: str) -> Pair:
        pair = (queue_name, name)
        if pair not in self._runs:
            if len(self._runs) >= MOST_KEYS:
                pair = (OTHERS, OTHERS)
            self._runs.setdefault(pair, [0.0] * (len(BOUNDS) + 2))
            self._waits.setdefault(pair, [0.0] * (len(BOUNDS) + 2))
        return pair

    def snapshot(self, counters: Mapping[str, float], gauges: Mapping[str, float]) -> Snapshot:
        """What there is, as JSON holds it, with other counts and present values of the worker."""
        with self._lock:
            return {
                "attempts": [[*kind, count] for kind, count in self._attempts.items()],
                "runs": [[*pair, buckets[:]] for pair, buckets in self._runs.items()],
                "waits": [[*pair, buckets[:]] for pair, buckets in self._waits.items()],
                "counters": dict(counters),
                "gauges": dict(gauges),
            }


def _is_timed(attempted: Attempted, state: str) -> bool:
    return state in ("completed", "failed") or (state != "cancelled" and attempted.outcome.kind == "retry")


def add_up(snapshots: Iterable[Snapshot], without_gauges: bool = False) -> Snapshot:
    """The snapshots of several workers as one."""
    attempts: dict[tuple[str, ...], int] = {}
    runs: dict[tuple[str, ...], list[float]] = {}
    waits: dict[tuple[str, ...], list[float]] = {}
    counters: dict[str, float] = {}
    gauges: dict[str, float] = {}
    for snapshot in snapshots:
        for *kind, count in snapshot["attempts"]:
            attempts[tuple(kind)] = attempts.get(tuple(kind), 0) + count
        for known, rows in ((runs, snapshot["runs"]), (waits, snapshot["waits"])):
            for queue_name, name, buckets in rows:
                before = known.get((queue_name, name), [0.0] * len(buckets))
                known[queue_name, name] = [x + y for x, y in zip(before, buckets, strict=True)]
        for name, value in snapshot["counters"].items():
            counters[name] = counters.get(name, 0.0) + value
        for name, value in snapshot["gauges"].items():
            gauges[name] = gauges.get(name, 0.0) + value
    return {
        "attempts": [[*kind, count] for kind, count in attempts.items()],
        "runs": [[*pair, buckets] for pair, buckets in runs.items()],
        "waits": [[*pair, buckets] for pair, buckets in waits.items()],
        "counters": counters,
        "gauges": {} if without_gauges else gauges,
    }
