"""Timeouts of attempts: one thread that watches those that have one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django_jobs.store.rows import JobRow
from django_jobs.worker.attempted import Attempted

logger = logging.getLogger("django_jobs.worker")

# With nothing to watch for so long, the thread ends.
IDLE_SECONDS = 10.0

Record = Callable[[], Attempted]


class Watch:
    """An attempt with a timeout. It ends once: by itself, or because it was given up, never both.

    :param seconds: how long it may take, from its start or its last sign of life.
    """

    __slots__ = (
        "_over",
        "at",
        "give_up",
        "interrupt",
        "interrupted",
        "job",
        "record",
        "seconds",
        "started",
        "thread_id",
    )

    def __init__(self, job: JobRow, seconds: float) -> None:
        self.job = job
        self.seconds = seconds
        self.started = time.monotonic()
        self.at = self.started + seconds
        self.interrupted = False
        # What makes an attempt end that can be made to: one on an event loop.
        self.interrupt: Callable[[], None] | None = None
        # How to go on without it, given what to record; None where nobody could.
        self.give_up: Callable[[Record], None] | None = None
        self.record: Record | None = None
        self.thread_id = threading.get_ident()
        # Taken once, by whoever ends the attempt.
        self._over = threading.Lock()

    def is_late(self) -> bool:
        """Whether the time is over."""
        return self.interrupted or time.monotonic() >= self.at

    def extend(self) -> bool:
        """Start the time anew; whether it was not over yet."""
        if self.is_late():
            return False
        self.at = time.monotonic() + self.seconds
        return True

    def take(self) -> bool:
        """End the attempt; whether nobody has before."""
        return self._over.acquire(blocking=False)


class Timeouts:
    """Watches attempts: tells those that are late, and gives up those that go on for the grace after that.

    :param grace: seconds between the two.
    """

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self._watches: set[Watch] = set()
        self._strays: set[Watch] = set()
        self._changed = threading.Condition()
        self._next = float("inf")  # when the thread will look by itself
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def strays(self) -> int:
        """How many attempts were given up, and still hold a thread or a task."""
        return len(self._strays)

    def begin(self, watch: Watch) -> None:
        """Watch an attempt that starts."""
        with self._changed:
            self._watches.add(watch)
            if self._thread is None and not self._closed:
                thread = threading.Thread(target=self._run, name="django_jobs-timeouts", daemon=True)
                thread.start()
                self._thread = (
                    thread  # not before: one that could not be started would stand in the next one's way
                )
            elif watch.at < self._next:
                self._changed.notify()

    def end(self, watch: Watch) -> bool:
        """The attempt has ended; whether its outcome counts. False: it was given up before."""
        mine = watch.take()
        with self._changed:
            self._watches.discard(watch)
            stray = watch in self._strays
            self._strays.discard(watch)
        if stray and not mine:
            logger.warning(
                "The attempt of job %s %s that was given up has ended, %.1f s after its start; its outcome is dropped",
                watch.job.id, watch.job.name, time.monotonic() - watch.started,
            )  # fmt: skip
        return mine

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(2)

    def _run(self) -> None:
        idle_since = time.monotonic()
        while True:
            with self._changed:
                now = time.monotonic()
                if self._watches:
                    idle_since = now
                elif now - idle_since >= IDLE_SECONDS:
                    self._thread = None
                    return
                if self._closed:
                    self._thread = None
                    return
                due = [watch for watch in self._watches if self._moment(watch) <= now]
                if not due:
                    self._next = min(
                        [self._moment(watch) for watch in self._watches], default=now + IDLE_SECONDS
                    )
                    self._changed.wait(max(0.0, min(self._next - now, threading.TIMEOUT_MAX)))
                    self._next = float("-inf")
                    continue
            for watch in due:
                try:
                    self._late(watch, now)
                except Exception:
                    logger.exception("The timeout of job %s failed", watch.job.id)
                    with self._changed:
                        self._watches.discard(watch)

    def _moment(self, watch: Watch) -> float:
        """When there is something to do about an attempt."""
        return watch.at + self.grace if watch.interrupted else watch.at

    def _late(self, watch: Watch, now: float) -> None:
        if not watch.interrupted:
            if watch.at > now:
                return  # a sign of life of this moment
            watch.interrupted = True
            if watch.interrupt is not None:
                watch.interrupt()
            return
        give_up, record = watch.give_up, watch.record
        with self._changed:
            self._watches.discard(watch)
            if give_up is None or record is None:
                return
            # Before it is taken: who ends it then takes it out of the strays again.
            self._strays.add(watch)
        if not watch.take():
            with self._changed:
                self._strays.discard(watch)
            return
        logger.error(
            "Job %s %s goes on %.1f s after its timeout of %g s. It is given up; its %s is a stray (%d by now), and "
            "what comes of it is dropped.",
            watch.job.id, watch.job.name, now - watch.at, watch.seconds,
            "thread" if watch.interrupt is None else "task", self.strays,
        )  # fmt: skip
        give_up(record)
