"""When a worker has had enough: after so many jobs, at so much memory, or for a reason that another part gives.

It retires: it claims no more and ends in order when its jobs have. A supervisor starts another worker at once; without
one the process ends, for its manager to start again.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from django_jobs.worker.statistics import Statistics

logger = logging.getLogger("django_jobs.worker")

MEGABYTE = 1024 * 1024

# Says why the worker should be replaced, or None. Asked after each heartbeat.
Reason = Callable[[], str | None]


class Allowance:
    """How many jobs the worker may still claim in its life, for all of its pools together.

    Its pools claim one after the other, so the number holds exactly, and no pool without jobs is in the way of another
    one with what it may not need.

    :param jobs: how many.
    :param on_spent: called when all are claimed and on their way.
    """

    def __init__(self, jobs: int, on_spent: Callable[[], None]) -> None:
        self.left = jobs
        self._on_spent = on_spent
        self._lock = threading.Lock()

    def claim(self, wanted: int, claim: Callable[[int], bool], claimed: Callable[[], int]) -> bool:
        """Claim up to ``wanted`` jobs, as far as there are any left.

        :param claim: claims up to so many; says whether there may be more.
        :param claimed: how many jobs ``claim`` has brought so far, in all calls.
        """
        with self._lock:
            if self.left <= 0:
                return False
            before = claimed()
            try:
                return claim(min(wanted, self.left))
            finally:
                self.left -= claimed() - before
                if self.left <= 0:
                    self._on_spent()


class MemoryLimit:
    """A reason to be replaced: the process holds more memory than it should.

    :param megabytes: of resident memory.
    :param attempts: how many attempts the worker has made. Before the first, a limit that is below what the site itself
        needs would only have processes come and go.
    """

    def __init__(self, megabytes: int, attempts: Callable[[], int]) -> None:
        self.megabytes = megabytes
        self._attempts = attempts
        self._told = False

    def __call__(self) -> str | None:
        """Why the worker should be replaced, or None."""
        held = resident_memory() // MEGABYTE
        if held <= self.megabytes:
            return None
        if self._attempts():
            return f"it holds {held} MB of memory, more than {self.megabytes}"
        if not self._told:
            self._told = True
            logger.warning(
                "Before its first job the process holds %d MB of memory, more than --max-memory %d. Raise that: as it "
                "is, the worker is replaced after its first jobs.",
                held,
                self.megabytes,
            )
        return None


class Retiring(Protocol):
    """The worker, as its retirement sees it."""

    statistics: Statistics

    @property
    def worker_id(self) -> int: ...
    def retire(self) -> None:
        """The worker has had enough."""
        ...


class Retirement:
    """Whether, and why, the worker has had enough.

    ``reasons`` are asked after each heartbeat; other parts may add their own.

    :param max_jobs: how many jobs the worker claims in its life; None for any number.
    :param max_memory: how many MB of memory its process may hold; None for any amount.
    """

    def __init__(self, worker: Retiring, max_jobs: int | None, max_memory: int | None) -> None:
        self.reason: str | None = None
        self.reasons: list[Reason] = []
        self.allowance: Allowance | None = None
        self._worker = worker
        if max_jobs is not None:
            spent = f"it has claimed its {max_jobs} jobs"
            self.allowance = Allowance(max_jobs, lambda: self.retire(spent))
        if max_memory is not None:
            self.reasons.append(MemoryLimit(max_memory, lambda: worker.statistics.attempts))

    def consider(self) -> None:
        """Ask each reason, until one says why the worker should retire."""
        for reason in self.reasons:
            if self.reason is None and (why := reason()):
                self.retire(why)

    def retire(self, reason: str) -> None:
        """The worker has had enough."""
        if self.reason is None:
            logger.info("Worker %d retires: %s", self._worker.worker_id, reason)
            self.reason = reason
            self._worker.retire()


def resident_memory() -> int:
    """The bytes of memory that this process holds; where the system does not tell, the most that it has held."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        import resource  # not on every system

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
