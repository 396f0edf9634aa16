"""The reporter of life: renews the worker's lease, and learns what the worker must know."""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from django_jobs.store.base import Store
from django_jobs.store.rows import Heartbeat
from django_jobs.worker.parts import Part, until

logger = logging.getLogger("django_jobs.worker")

# A difference between this host's clock and the database's that is worth a word.
SKEW_SECONDS = 2.0
# How often, at most, cancel requests are looked for between two heartbeats, when anything has been committed.
LOOK_SECONDS = 0.25


class Reported(Protocol):
    """What the worker says of itself, and what it is told."""

    @property
    def worker_id(self) -> int: ...
    def counts(self) -> tuple[int, int, int]:
        """Jobs running, completed and failed."""
        ...

    def heard(self, heartbeat: Heartbeat) -> None:
        """The lease is renewed."""
        ...

    def cancel(self, job_ids: frozenset[int]) -> None:
        """These are its jobs that are to be cancelled while they run."""
        ...

    def doubt(self) -> None:
        """The lease has run out, and could not be renewed."""
        ...

    def given_up(self, store: Store) -> None:
        """The worker was taken for lost: it must not go on under its id. ``store`` is the caller's own."""
        ...


class Reporter(Part):
    """One small statement for each interval.

    :param lease: seconds that a heartbeat lasts.
    :param interval: seconds between two.
    """

    name = "heartbeat"

    def __init__(
        self, worker: Reported, open_store: Callable[[], Store], lease: float, interval: float
    ) -> None:
        super().__init__()
        self.worker = worker
        self.lease = lease
        self.interval = interval
        self.skew = 0.0
        self._open_store = open_store
        self._store: Store | None = None
        self._last = time.monotonic()
        self._healthy_since: float | None = None
        self._skew_told = False
        self._look = threading.Event()

    @property
    def healthy_for(self) -> float:
        """Seconds since when every heartbeat has come in time; 0 before the first, and after one that did not."""
        return 0.0 if self._healthy_since is None else time.monotonic() - self._healthy_since

    def step(self) -> None:
        """Renew the lease, and wait for the next time."""
        if self._store is None:
            self._store = self._open_store()
        running, completed, failed = self.worker.counts()
        heartbeat = self._store.heartbeat(self.worker.worker_id, self.lease, running, completed, failed)
        now = time.monotonic()
        if heartbeat is None:
            self._healthy_since = None
            self._last = now
            self.worker.given_up(self._store)
            return
        if self._healthy_since is None or now - self._last > self.lease:
            self._healthy_since = now
        self._last = now
        self._compare_clocks(heartbeat)
        self.worker.heard(heartbeat)
        self._until_next(self._store)

    def look(self) -> None:
        """There may be a cancel request: look soon, but by no heartbeat, which is a commit for others to look at."""
        self._look.set()
        self.wake()

    def _until_next(self, store: Store) -> None:
        """Wait for the next heartbeat, and meanwhile look for cancel requests when asked to."""
        end = time.monotonic() + self.interval
        looked = time.monotonic()
        while not self._stopping.is_set():
            due = looked + LOOK_SECONDS if self._look.is_set() else end
            woken = self._rest(until(min(due, end)))
            if time.monotonic() >= end or (woken and not self._look.is_set()):
                return
            if self._look.is_set() and time.monotonic() >= looked + LOOK_SECONDS:
                self._look.clear()
                looked = time.monotonic()
                self.worker.cancel(store.cancel_requests(self.worker.worker_id))

    def failed(self, error: Exception) -> None:
        """After a lease without a heartbeat, nobody knows whether the claims still hold."""
        super().failed(error)
        self._healthy_since = None
        if time.monotonic() - self._last >= self.lease:
            self.worker.doubt()

    def renewed(self) -> None:
        """The worker has a new id, and with it a new lease."""
        self._last = time.monotonic()

    def _compare_clocks(self, heartbeat: Heartbeat) -> None:
        self.skew = (dt.datetime.now(dt.UTC) - heartbeat.now).total_seconds()
        if abs(self.skew) >= SKEW_SECONDS and not self._skew_told:
            self._skew_told = True
            logger.warning(
                "This host's clock is %.1f s %s the database's. Jobs go by the database's; set the clock (NTP).",
                abs(self.skew),
                "ahead of" if self.skew > 0 else "behind",
            )

    def close(self) -> None:
        """Close the connection."""
        if self._store is not None:
            self._store.close()
