"""The keeper: the maintenance, done by the one worker that leads.

It promotes jobs that are due, runs the ticks of schedules, rescues the jobs of lost workers, and purges finished ones.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable

from django_jobs import conf
from django_jobs.store.base import Store
from django_jobs.store.statistics import record_ended
from django_jobs.worker.archive import Archive
from django_jobs.worker.followers import tell_of_lost
from django_jobs.worker.parts import Part, log_failure, pause_after
from django_jobs.worker.retention import Retention
from django_jobs.worker.ticker import Ticker

logger = logging.getLogger("django_jobs.keeper")

LEADERSHIP = "keeper"
# The leadership lasts half of a worker's lease, and is renewed three times in that: when the leader dies, there is
# another one by the time that its jobs can be rescued.
LEADERSHIP_PART = 0.5
RENEWALS = 3
PURGE_SECONDS = 60.0
# Workers that have stopped are remembered for this long, for the admin.
WORKER_SECONDS = 24 * 3600.0
BATCH = 1000
# A job that is due and can't be promoted now is looked at again after this time.
HELD_SECONDS = 0.05
# Rescued jobs come back spread over this part of a lease.
RESCUE_SPREAD = 1 / 3
# While nobody is lost, claims of workers that are gone are looked for in this part of the time, and once in a lease.
SEARCH_PART = 0.05
LEASE_OVER = "The worker's lease ran out."


class Keeper(Part):
    """Maintenance on a connection of its own. Every worker has a keeper; only the leader's works.

    :param lease: the workers' lease, in seconds.
    :param trusted_for: seconds since when the worker's own heartbeats have all come in time. Rescue waits for a full
        lease of that: after an outage of the database every worker's lease looks expired.
    :param on_available: called with the name of a queue that got jobs, to wake this process without a detour.
    :param ticker: declares the schedules, whoever leads, and runs them. None: there are none.
    :param worker_id: the worker's id now. It is trusted only while its own lease holds by the database's time: whether
        heartbeats have come in time is known of the moment before a statement is sent, and a host that sleeps, or a
        server that stands still, may have it carried out when every lease is over.
    :param using: the alias of the jobs' database.
    """

    name = "keeper"

    def __init__(
        self,
        open_store: Callable[[], Store],
        lease: float,
        trusted_for: Callable[[], float],
        on_available: Callable[[str], None],
        ticker: Ticker | None = None,
        worker_id: Callable[[], int | None] = lambda: None,
        using: str | None = None,
    ) -> None:
        super().__init__()
        self.holder = uuid.uuid4().hex
        self.leads = False
        self.term = 0
        self.lease = lease
        self.retention = Retention()
        self.archive = Archive()
        self._open_store = open_store
        self._store: Store | None = None
        self._trusted_for = trusted_for
        self._on_available = on_available
        self._worker_id = worker_id
        self._using = using
        self.ticker = ticker
        self._renew_at = self._rescue_at = self._search_at = self._purge_at = 0.0
        self._failed_rescues = 0

    @property
    def store(self) -> Store:
        """The keeper's own store."""
        if self._store is None:
            self._store = self._open_store()
        return self._store

    def step(self) -> None:
        """Renew the leadership and do what is due, then wait for the next thing."""
        now = time.monotonic()
        if now >= self._renew_at:
            self._campaign()
            self._renew_at = now + self.lease * LEADERSHIP_PART / RENEWALS
        retry = self.ticker.synchronise(self.store) if self.ticker is not None else None
        wait = self._renew_at - time.monotonic()
        if retry is not None:
            wait = min(wait, retry)
        if self.leads:
            wait = min(wait, self.maintain())
        self._rest(max(wait, 0.001))

    def _campaign(self) -> None:
        held = self.store.acquire_leadership(LEADERSHIP, self.holder, self.lease * LEADERSHIP_PART)
        if (held is not None) != self.leads:
            logger.debug("This worker %s the keeper", "becomes" if held else "is no longer")
            self._search_at = 0.0  # the one before may have taken workers for lost, and not have got further
        self.leads = held is not None
        if held is not None:
            self.term = held.term

    def maintain(self) -> float:
        """One round of all that is due; seconds until the next is."""
        due = self.promote()
        now = time.monotonic()
        if now >= self._rescue_at:
            self._rescue_or_back_off(now)
        if now >= self._purge_at:
            self._purge_at = now + PURGE_SECONDS
            if self.purge():
                self._purge_at = now  # there is more: again, after what else is due
        until_next = min(self._rescue_at, self._purge_at) - time.monotonic()
        if self.ticker is not None:
            until_next = min(until_next, self.ticker.maintain(self.store))
        return min(until_next, due) if due is not None else until_next

    def promote(self) -> float | None:
        """Make available what is due; seconds until the next job is, None when none is scheduled."""
        # Asked first, since that takes no lock: wake-ups come with every commit on SQLite.
        while (due := self.store.next_due()) is not None and due <= 0:
            jobs = self.store.promote(BATCH)
            for queue_name in {job.queue_name for job in jobs}:
                self._on_available(queue_name)
            if not jobs or self._stopping.is_set():
                return HELD_SECONDS  # due and yet not promoted: somebody holds the row
        return due

    def look_at_schedules(self) -> None:
        """Schedules have changed: look at them now."""
        if self.ticker is not None:
            self.ticker.look()
        self.wake()

    def _rescue_or_back_off(self, now: float) -> None:
        """Rescue; should it fail, try again soon, and let the other work go on meanwhile."""
        interval = max(self.lease / 3, 0.1)
        self._rescue_at = now + interval
        try:
            if self._trusted_for() >= self.lease:
                self.rescue()
            self._failed_rescues = 0
        except Exception as error:
            self._failed_rescues += 1
            log_failure("rescue of lost jobs", self._failed_rescues, error)
            # From now on: what failed may have taken longer than the pause.
            self._rescue_at = time.monotonic() + min(pause_after(self._failed_rescues), interval)

    def rescue(self) -> None:
        """End the claims of workers whose lease ran out, and of those that are gone otherwise.

        Those are looked for less often where that takes long: beside a transaction that is open for long, it reads what
        all workers have run that have stopped since.
        """
        try:
            lost = self.store.lose_workers(witness=self._worker_id())
        except BaseException:
            self._search_at = 0.0  # it may have been stored, and then nobody is lost the next time
            raise
        for worker in lost:
            logger.warning(
                "Worker %d (%s, process %d) is lost: its lease ended at %s. Its jobs are made available again.",
                worker.id,
                worker.host,
                worker.pid,
                worker.expires_at,
            )
        began = time.monotonic()
        if not lost and began < self._search_at:
            return
        self._search_at = 0.0  # should it fail
        if not self._end_claims():
            now = time.monotonic()
            self._search_at = now + min((now - began) / SEARCH_PART, self.lease)

    def _end_claims(self) -> bool:
        """End the claims of workers that are gone; whether there were any."""
        found = False
        while jobs := self.store.rescue(
            BATCH, self.lease * RESCUE_SPREAD, reason=LEASE_OVER, most_errors=conf.get("MAX_ERRORS")
        ):
            found = True
            for job in jobs:
                logger.warning(
                    "Job %d %s (attempt %d of %d) of lost worker %s is now %s",
                    job.id, job.name, job.attempt, job.max_attempts, job.worker_id, job.state,
                )  # fmt: skip
            record_ended(self.store, jobs)
            tell_of_lost(jobs, LEASE_OVER, self._using)
            if len(jobs) < BATCH or self._stopping.is_set():
                break
        return found

    def purge(self) -> bool:
        """Delete finished jobs and statistics past their retention, and old workers; whether there is more to do."""
        more = self.retention.purge(self.store, self._stopping.is_set)
        self.store.purge_workers(WORKER_SECONDS)
        return self.archive.keep(self.store, self._stopping.is_set) or more

    def close(self) -> None:
        """Resign, so that the next leader need not wait for the lease, and close the connection."""
        self._renew_at = 0.0  # started again, it runs for the leadership at once
        if self._store is None:
            return
        if self.leads:
            self.leads = False
            try:
                self._store.resign_leadership(LEADERSHIP, self.holder)
            except Exception as error:
                logger.debug("The leadership could not be given up, it ends by itself: %s", error)
        self._store.close()
