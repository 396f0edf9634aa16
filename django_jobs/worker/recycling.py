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

    A claim takes what it may claim first and gives back what it did not get, so the number holds exactly.

    :param jobs: how many.
    :param on_spent: called, once, when all are claimed and on their way.
    :param on_back: called when there is something to take again after somebody got less than was wanted.
    """

    def __init__(self, jobs: int, on_spent: Callable[[], None], on_back: Callable[[], None]) -> None:
        self._left = jobs
        self._out = 0
        self._short = False
        self._spent = False
        self._lock = threading.Lock()
        self._on_spent = on_spent
        self._on_back = on_back

    def take(self, wanted: int) -> int:
        """As many of ``wanted`` as there are. Each taken one is settled afterwards."""
        with self._lock:
            taken = min(wanted, self._left)
            self._left -= taken
            self._out += taken
            self._short = self._short or taken < wanted
            return taken

    def settle(self, taken: int, claimed: int) -> None:
        """Of the ``taken``, so many were claimed, and are in the hands of the executors; the rest is given back."""
        with self._lock:
            self._out -= taken
            self._left += taken - claimed
            back = self._short and self._left > 0
            self._short = self._short and not back
            spent = not (self._left or self._out or self._spent)
            self._spent = self._spent or spent
        if back:
            self._on_back()
        if spent:
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
    def look(self) -> None:
        """There may be something to claim."""
        ...

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
            self.allowance = Allowance(max_jobs, lambda: self.retire(spent), worker.look)
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
