"""What the worker's parts have in common: a thread that does one step after another, is stopped, and started again."""

from __future__ import annotations

import contextlib
import logging
import queue
import random
import re
import threading
import time

from django.db import Error as DatabaseError

logger = logging.getLogger("django_jobs.worker")

_MORE = re.compile(r"\n(?:DETAIL|CONTEXT|LINE \d+):")

# Errors back off: 0.1 s, doubling, to this.
LONGEST_PAUSE = 10.0


class Part:
    """A part of the worker with a thread of its own.

    A subclass has :meth:`step`, called again and again until the part is stopped. A step that raises is logged, and
    the next one waits: longer after each failure, and wake-ups don't shorten it.
    """

    name = "part"

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._awake = threading.Event()
        self._thread: threading.Thread | None = None
        self.failures = 0

    def start(self) -> None:
        """Start the thread. A part that has stopped can be started again."""
        if self.is_alive():
            raise RuntimeError(f"the {self.name} runs already")
        self._stopping.clear()
        self.failures = 0
        self._thread = threading.Thread(target=self._loop, name=f"django_jobs-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the part to end after the step it is at. Returns at once."""
        self._stopping.set()
        self.wake()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread has ended; whether it has."""
        if self._thread is not None:
            self._thread.join(timeout)
        return not self.is_alive()

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def wake(self) -> None:
        """End the wait of the step, if it waits."""
        self._awake.set()

    def step(self) -> None:
        """Do one piece of work, and wait for the next."""
        raise NotImplementedError

    def close(self) -> None:
        """Give up what the part holds, in its own thread, as the last thing it does."""

    def _rest(self, seconds: float | None) -> bool:
        """Wait until woken, or for ``seconds``; whether it was woken."""
        woken = self._awake.wait(seconds)
        self._awake.clear()
        return woken

    def _loop(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self.step()
                    self.failures = 0
                except Exception as error:
                    self.failures += 1
                    self.failed(error)
                    self._stopping.wait(self.pause())
        finally:
            self.close()

    def pause(self) -> float:
        """Seconds to wait after a step that failed."""
        return pause_after(self.failures)

    def failed(self, error: Exception) -> None:
        """Log a step that failed: in one line where the database is away, with a traceback where we are at fault."""
        log_failure(self.name, self.failures, error)


def log_failure(what: str, failures: int, error: Exception) -> None:
    """Log an error that is being handled: in one line where the database is away, else with a traceback."""
    if isinstance(error, DatabaseError | OSError):
        logger.warning("The %s has a database error (%d in a row): %s", what, failures, one_line(error))
    else:
        logger.exception("The %s failed (%d in a row)", what, failures)


class StopRequest:
    """A request to stop that a signal handler can make.

    The handler runs in the main thread, between two of its instructions, and an Event's lock may be held there just
    then: setting it would wait for itself. A SimpleQueue can be put into at any moment.
    """

    def __init__(self) -> None:
        self.made = False
        self.hurried = False
        self._queue: queue.SimpleQueue[None] = queue.SimpleQueue()

    def make(self, hurry: bool = False) -> None:
        """Ask to stop; with ``hurry``, without waiting for running jobs."""
        self.hurried = self.hurried or hurry
        self.made = True
        self._queue.put(None)

    def poke(self) -> None:
        """End the wait of who waits, with no request made."""
        self._queue.put(None)

    def pause(self, timeout: float) -> None:
        """Wait for the next request or poke, ``timeout`` seconds at most, also when one was made before."""
        with contextlib.suppress(queue.Empty):
            self._queue.get(timeout=timeout)

    def wait(self, timeout: float) -> bool:
        """Wait for the request, or a poke, ``timeout`` seconds at most; whether it was made. For one thread only."""
        if not self.made:
            self.pause(timeout)
        return self.made


def log_exception(log: logging.Logger, message: str, *args: object) -> None:
    """``log.exception()`` where work must go on: an exception may fail at being told, a handler at telling."""
    try:
        log.exception(message, *args)
    except BaseException:
        with contextlib.suppress(BaseException):
            log.error("%s (what it was can't be told)", message % args)


def one_line(error: BaseException) -> str:
    """An error in one line. What PostgreSQL tells behind its message is left out: it can be a whole row, arguments and
    all, or the statement with its values."""
    text = _MORE.split(str(error), maxsplit=1)[0]
    return f"{type(error).__name__}: {' '.join(text.split())}"


def pause_after(failures: int) -> float:
    """Seconds to wait after that many failures in a row: exponential, with jitter, bounded."""
    longest: float = min(0.1 * 2.0 ** min(failures - 1, 20), LONGEST_PAUSE)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing


def until(deadline: float) -> float:
    """Seconds from now to a moment of the monotonic clock, 0 at least."""
    return max(0.0, deadline - time.monotonic())
