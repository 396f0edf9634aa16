"""Where the available jobs of a queue begin, as far as one claimer knows: so that it need not look at the beginning.

PostgreSQL keeps an index entry of a job that was claimed until nobody's transaction can see the job as it was. While
one is open for long (a report, a backup), they pile up at the beginning of the index, where each claim would read them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from django_jobs.limits import PRIORITY_HIGHEST, PRIORITY_LOWEST
from django_jobs.store.rows import ID, PRIORITY, RUN_AFTER, JobRow

# A claim that takes this much longer than two from the marks on has read more than it should.
SLOW_SECONDS = 0.001
SLOW_SECONDS_PER_JOB = 0.0001
# What became available again behind the marks is looked for in this part of the time, and after so many seconds.
BEGINNINGS_PART = 0.05
BEGINNINGS_SECONDS = 60.0
# With jobs of more priorities than this, only the highest are marked.
MOST_MARKS = 20
# With more slow queues than this, all are forgotten: there may be one for each of a million users.
MOST_QUEUES = 1000


class Part(NamedTuple):
    """Priorities from ``highest`` to ``lowest``; of a marked one, only what comes after the moment and the id."""

    highest: int
    lowest: int
    moment: str | None
    id: int | None


class _Marks:
    """Of each priority of one queue, the moment and the id of the last job that was claimed."""

    __slots__ = ("of", "until")

    def __init__(self, until: float) -> None:
        self.until = until
        self.of: dict[int, tuple[str, int]] = {}

    def rise(self, jobs: Sequence[JobRow]) -> None:
        """To these jobs, which come in their order."""
        for priority, job in {job.values[PRIORITY]: job for job in jobs}.items():
            self.of[priority] = (str(job.values[RUN_AFTER]), job.values[ID])


class LowWater:
    """The marks of the queues that one claimer claims from. A queue has none while its claims are quick.

    :param clock: the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._queues: dict[str, _Marks] = {}
        self._slow: dict[str, float] = {}  # where the last claim from the beginning on was slow: what it took
        # Where the last claim, from marks on, did not get all that it asked for.
        self._passed_over: set[str] = set()
        # What the last claim from marks on took, but for its jobs: where the database is far away, as long as any.
        self._marked = 0.0

    def began(self, queue_name: str, seconds: float, jobs: Sequence[JobRow]) -> None:
        """Jobs were claimed from the beginning on, in that time. Slow again: set marks. Quick: drop them."""
        self._passed_over.discard(queue_name)
        if seconds < SLOW_SECONDS + SLOW_SECONDS_PER_JOB * len(jobs) + 2 * self._marked:
            self._queues.pop(queue_name, None)
            self._slow.pop(queue_name, None)
            return
        before = self._slow.get(queue_name)
        if before is None and len(self._slow) >= MOST_QUEUES:
            for known in (self._slow, self._queues, self._passed_over):
                known.clear()
        self._slow[queue_name] = seconds
        if before is None:  # once may be chance, and so may be how slow it was
            return
        marks = self._queues.setdefault(queue_name, _Marks(0.0))
        marks.until = self._clock() + min(min(before, seconds) / BEGINNINGS_PART, BEGINNINGS_SECONDS)
        marks.rise(jobs)

    def went_on(self, queue_name: str, seconds: float, jobs: Sequence[JobRow], is_full: bool) -> None:
        """Jobs were claimed from the marks on: of their priorities, none before them is left."""
        self._marked = max(0.0, seconds - SLOW_SECONDS_PER_JOB * len(jobs))
        self._queues[queue_name].rise(jobs)
        if is_full:
            self._passed_over.discard(queue_name)
        else:
            self._passed_over.add(queue_name)

    def seconds_until_beginning(self, queue_name: str) -> float | None:
        """Seconds until a claim begins at the beginning, and so finds what the last one may have passed over; None: it
        passed over nothing, or got all that it asked for."""
        if queue_name not in self._passed_over:
            return None
        return max(0.0, self._queues[queue_name].until - self._clock())

    def parts(self, queue_name: str) -> list[Part]:
        """Where to claim from: the whole range of priorities, the highest first. Empty: from the beginning."""
        marks = self._queues.get(queue_name)
        if marks is None or not marks.of or self._clock() >= marks.until:
            return []
        parts = []
        top = PRIORITY_HIGHEST
        for priority in sorted(marks.of, reverse=True)[:MOST_MARKS]:
            if priority < top:
                parts.append(Part(top, priority + 1, None, None))
            parts.append(Part(priority, priority, *marks.of[priority]))
            top = priority - 1
        if top >= PRIORITY_LOWEST:
            parts.append(Part(top, PRIORITY_LOWEST, None, None))
        return parts
