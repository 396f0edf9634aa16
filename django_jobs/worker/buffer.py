"""Claimed jobs on their way from the producer to the executors."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from django_jobs.store.rows import JobRow


class Buffer:
    """A queue whose fast path takes no lock: executors pop from the deque, and only an empty one makes them wait."""

    def __init__(self) -> None:
        self.jobs: deque[JobRow] = deque()
        self.waiting = 0
        self.low = 0  # below this many jobs, the producer wants to know
        self.low_told = False
        self.on_low: Callable[[], None] = lambda: None
        self._filled = threading.Condition()
        #: Whether executors should end.
        self.closed = False

    def put(self, jobs: Iterable[JobRow]) -> None:
        """Add claimed jobs, and wake an executor; it wakes the next while there are jobs left.

        To wake all at once would have them fight for the interpreter over jobs that, if they are short, the first has
        done before the last is awake.
        """
        with self._filled:
            self.jobs.extend(jobs)
            self._wake_next()

    def _wake_next(self) -> None:
        """Wake one more executor, if one waits and there is a job left for it. Holds the lock."""
        if self.waiting and self.jobs:
            self._filled.notify()

    def wait(self, timeout: float | None = None) -> JobRow | None:
        """The next job; None when none came in time, or the buffer is closed.

        An executor that waits is idle. A job that is put is seen by one that is about to wait, since both hold the
        lock.
        """
        end = None if timeout is None else time.monotonic() + timeout
        with self._filled:
            while not self.closed:
                if not self.jobs:
                    self.waiting += 1
                    self.tell_low()
                    filled = self._filled.wait_for(
                        lambda: self.jobs or self.closed,
                        None if end is None else max(0.0, end - time.monotonic()),
                    )
                    # Before the job is taken: who sees the buffer empty must not see everybody waiting as well.
                    self.waiting -= 1
                    if not filled:
                        return None
                    continue
                try:
                    job = self.jobs.popleft()
                except IndexError:  # an executor on the fast path, which holds no lock, was faster
                    continue
                self._wake_next()
                return job
            return None

    def tell_low(self) -> None:
        """Tell the producer, once, that there is room. An executor calls this when fewer than ``low`` are left."""
        self.low_told = True
        self.on_low()

    def take_back(self, unwanted: Callable[[JobRow], bool] = lambda _job: True) -> list[JobRow]:
        """Remove, and return, jobs that no executor has taken yet."""
        taken: list[JobRow] = []
        with self._filled:
            for _ in range(len(self.jobs)):
                try:
                    job = self.jobs.popleft()
                except IndexError:
                    break
                if unwanted(job):
                    taken.append(job)
                else:
                    self.jobs.append(job)
        return taken

    def close(self) -> None:
        """End the executors once they are idle."""
        with self._filled:
            self.closed = True
            self._filled.notify_all()

    def open(self) -> None:
        """Take a closed buffer into use again."""
        with self._filled:
            self.closed = False
