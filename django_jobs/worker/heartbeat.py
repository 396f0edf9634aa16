"""The reporter of life: renews the worker's lease, and learns what the worker must know."""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from django_jobs.store.answers import Heartbeat
from django_jobs.store.base import Store
from django_jobs.worker.lost_answers import Epoch
from django_jobs.worker.parts import Part, until
from django_jobs.worker.probes import Pulse
from django_jobs.worker.recycling import resident_memory

logger = logging.getLogger("django_jobs.worker")

# A difference between this host's clock and the database's that is worth a word.
SKEW_SECONDS = 2.0
# So much less than this host's own clock, beyond what answers can be late, the database's goes on if it was set back.
SET_BACK_SECONDS = 30.0
# How often, at most, cancel requests are looked for between two heartbeats, when anything has been committed.
LOOK_SECONDS = 0.25


class Reported(Protocol):
    """What the worker says of itself, and what it is told."""

    @property
    def worker_id(self) -> int: ...
    @property
    def leads(self) -> bool:
        """Whether it does the maintenance at present."""
        ...

    @property
    def epoch(self) -> Epoch:
        """Which of its claims still count."""
        ...

    def counts(self) -> tuple[int, int, int]:
        """Jobs running, completed and failed."""
        ...

    def heard(self, heartbeat: Heartbeat) -> None:
        """The lease is renewed."""
        ...

    def reported(self, store: Store) -> None:
        """What there is to write besides, with the caller's own store. What fails there is no heartbeat's fault."""
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
        self._last = time.monotonic()  # when the heartbeat that came through last was sent
        self._heard: dt.datetime | None = None  # the database's time at that one
        self._healthy_since: float | None = None
        self._skew_told = False
        self._look = threading.Event()
        self._asked = False  # for a heartbeat before its time
        #: Whether it goes round, whatever the database says: each statement, and each pause, has its deadline.
        self.pulse = Pulse(self.name, 3 * interval + 2 * lease + 10)

    @property
    def healthy_for(self) -> float:
        """Seconds since when every heartbeat has come in time; 0 before the first, and after one that did not."""
        now = time.monotonic()
        return 0.0 if self._healthy_since is None or self._is_late(now) else now - self._healthy_since

    def _is_late(self, now: float) -> bool:
        """Whether the last heartbeat is so long ago that what delayed this one (a host that stood still, a database
        that was away) may have let the leases of others run out as well: theirs are an interval older, at most."""
        return now - self._last > self._longest

    @property
    def _longest(self) -> float:
        """Seconds between two heartbeats beyond which the second one is late."""
        return max(self.lease - self.interval, 1.5 * self.interval)

    def _has_jumped(self, now: dt.datetime, sent: float) -> bool:
        """Whether the database's time, which leases go by, has gone on further than this host's monotonic clock tells,
        which stands still while the host sleeps; or less far, since it was set back.

        :param sent: when the heartbeat that brought ``now`` was sent.
        """
        if self._heard is None:
            return False
        passed = (now - self._heard).total_seconds()
        return passed > self._longest or passed < sent - self._last - SET_BACK_SECONDS

    def step(self) -> None:
        """Renew the lease, and wait for the next time."""
        self.pulse.beat()
        if self._store is None:
            self._store = self._open_store()
        self._asked = False
        running, completed, failed = self.worker.counts()
        epoch = self.worker.epoch.number
        sent, sent_at = time.monotonic(), dt.datetime.now(dt.UTC)
        heartbeat = self._store.heartbeat(
            self.worker.worker_id,
            self.lease,
            running,
            completed,
            failed,
            self.skew,
            resident_memory(),
            self.worker.leads,
            epoch,
        )
        if heartbeat is None:
            self._healthy_since = None
            self.worker.given_up(self._store)
            return
        if (
            self._healthy_since is None
            or self._is_late(time.monotonic())
            or self._has_jumped(heartbeat.now, sent)
        ):
            self._healthy_since = time.monotonic()
        self._last, self._heard = sent, heartbeat.now
        self.worker.epoch.stored(epoch)
        self._compare_clocks(heartbeat, sent_at)
        self.worker.heard(heartbeat)
        self.worker.reported(self._store)
        self._until_next(self._store)

    def look(self) -> None:
        """There may be a cancel request: look soon, but by no heartbeat, which is a commit for others to look at."""
        self._look.set()
        super().wake()

    def wake(self) -> None:
        """Renew the lease now, and hear what there is."""
        self._asked = True
        super().wake()

    def _until_next(self, store: Store) -> None:
        """Wait for the next heartbeat, and meanwhile look for cancel requests when asked to."""
        end = time.monotonic() + self.interval
        looked = time.monotonic()
        while not self._stopping.is_set():
            due = looked + LOOK_SECONDS if self._look.is_set() else end
            self._rest(until(min(due, end)))
            if self._asked or time.monotonic() >= end:
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

    def pause(self) -> float:
        """Not longer than an interval, nor than to the end of the lease, so that this is noticed in time."""
        left = self._last + self.lease - time.monotonic()
        return min(super().pause(), self.interval, left if left > 0 else self.interval)

    def renewed(self, at: float) -> None:
        """The worker has a new id, and with it a new lease, from that moment of the monotonic clock on."""
        self._last = at

    def _compare_clocks(self, heartbeat: Heartbeat, sent_at: dt.datetime) -> None:
        # The statement ran somewhen between being sent and answered.
        earliest, latest = sent_at - heartbeat.now, dt.datetime.now(dt.UTC) - heartbeat.now
        zero = dt.timedelta()
        self.skew = (earliest if earliest > zero else min(latest, zero)).total_seconds()
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
