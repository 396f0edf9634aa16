"""Deadlines for statements, kept by the client.

A time-out of the server's does not help when the server is not heard: the socket of a half-open connection waits for
as long as TCP does. One thread looks at the statements that run and cuts those that are late.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

logger = logging.getLogger("django_jobs.store")


class Deadline:
    """The moment by which a statement must be done, and how to end it."""

    __slots__ = ("at", "cut", "seconds")

    def __init__(self, seconds: float, cut: Callable[[], None]) -> None:
        self.seconds = seconds
        self.at = time.monotonic() + seconds
        self.cut = cut


class Watchdog:
    """Cuts statements that are past their deadline. Its thread runs while there are statements to watch."""

    GRACE = 5.0

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        """With nothing to watch: also in a process that was forked, whose lock another thread may have held just then,
        and where the statements of its parent are none of its own."""
        self._deadlines: set[Deadline] = set()
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, deadline: Deadline) -> None:
        """Cut ``deadline`` when its time has come, unless :meth:`forget` comes before."""
        with self._lock:
            self._deadlines.add(deadline)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="django_jobs-watchdog", daemon=True)
                self._thread.start()

    def forget(self, deadline: Deadline) -> None:
        """The statement is done."""
        with self._lock:
            self._deadlines.discard(deadline)

    def _run(self) -> None:
        idle_since = time.monotonic()
        while True:
            now = time.monotonic()
            with self._lock:
                late = [deadline for deadline in self._deadlines if deadline.at <= now]
                self._deadlines.difference_update(late)
                if self._deadlines or late:
                    idle_since = now
                elif now - idle_since > self.GRACE:
                    self._thread = None
                    return
                nearest = min((deadline.at for deadline in self._deadlines), default=now + 1.0)
            for deadline in late:
                logger.warning("A statement took more than %g s; its connection is cut", deadline.seconds)
                try:
                    deadline.cut()
                except Exception:
                    logger.exception("The connection could not be cut")
            self._changed.wait(min(1.0, max(0.01, nearest - time.monotonic())))


watchdog = Watchdog()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=watchdog._begin)
