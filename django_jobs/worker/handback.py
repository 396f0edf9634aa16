"""Handing back what a dead child held: at once, and charged only for what had started."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence

from django_jobs import conf
from django_jobs.store.base import Store
from django_jobs.store.outcomes import COMPLETED
from django_jobs.store.rows import CLAIMS, ID, JobRow, Outcome
from django_jobs.store.statistics import record_ended
from django_jobs.worker.followers import listened, tell_of_lost
from django_jobs.worker.keeper import RESCUE_SPREAD
from django_jobs.worker.parts import Part, until
from django_jobs.worker.shared_notes import Notes

logger = logging.getLogger("django_jobs.supervisor")

BATCH = 1000
# A server goes on with a statement whose client has died: what the child's last claim brought, or its last finish held
# locked, is found by a second look, this many seconds after the death. Until then the worker's row stays as it is, so
# that no keeper charges those jobs.
SETTLE_SECONDS = 1.0


class Estate:
    """What a child leaves behind.

    :param name: who died, and of what, in words.
    :param notes: what the child noted; they are read now.
    """

    def __init__(self, name: str, notes: Notes) -> None:
        self.name = name
        self.worker_ids = notes.worker_ids
        self.started = notes.started()
        self.died_at = self.due_at = time.monotonic()
        self.counts: Counter[str] = Counter()
        self.settled = threading.Event()  # all is handed back


class HandBack(Part):
    """Hands back estates, on a connection of its own that is open only while there is one.

    What had not started is released: its attempt is given back. What is known to have completed is completed, what else
    had started is rescued: its attempt is spent, and it comes back after a while, as after any rescue, so that a job
    that kills its process does not meet the same neighbours again.

    :param lease: the workers' lease, in seconds; rescued jobs come back spread over a third of it.
    :param using: the alias of the jobs' database.
    """

    name = "hand-back"

    def __init__(self, open_store: Callable[[], Store], lease: float, using: str | None = None) -> None:
        super().__init__()
        self.lease = lease
        self._using = using
        self._open_store = open_store
        self._store: Store | None = None
        self._estates: deque[Estate] = deque()
        self._lock = threading.Condition()

    def add(self, estate: Estate) -> None:
        """Hand back an estate, soon."""
        with self._lock:
            self._estates.append(estate)
        self.wake()

    def wait(self, timeout: float) -> bool:
        """Wait until everything is handed back; whether it is."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._estates, timeout)

    def step(self) -> None:
        """Hand back the estate that is due, or wait until one is."""
        with self._lock:
            estate = min(self._estates, key=lambda estate: estate.due_at, default=None)
        if estate is None:
            self.close()
            self._rest(None)
        elif seconds := until(estate.due_at):
            self._rest(seconds)
        else:
            estate.due_at = time.monotonic()  # if this fails, the others come first
            self._hand_back(estate)

    def _hand_back(self, estate: Estate) -> None:
        if self._store is None:
            self._store = self._open_store()
        store = self._store
        now = time.monotonic()
        for worker_id in estate.worker_ids:
            self._hand_back_claims(store, estate, worker_id)
        if store.outlives_client and now - estate.died_at < SETTLE_SECONDS:
            estate.due_at = estate.died_at + SETTLE_SECONDS
            return
        for worker_id in estate.worker_ids:
            store.lose_worker(worker_id)
        counts = estate.counts
        logger.warning(
            "%s; of its jobs %d had not started and are released, %d had completed, %d were running and are rescued",
            estate.name,
            counts["released"],
            counts["completed"],
            counts["rescued"],
        )
        with self._lock:
            self._estates.remove(estate)
            self._lock.notify_all()
        estate.settled.set()

    def _hand_back_claims(self, store: Store, estate: Estate, worker_id: int) -> None:
        after = 0
        while jobs := store.running(worker_id, after, BATCH):
            after = jobs[-1].id
            unstarted, completed, others = _by_what_is_known(jobs, estate.started)
            if unstarted:
                estate.counts["released"] += len(store.release(unstarted))
            if completed:
                ended = store.finish([Outcome(job.id, job.claims, COMPLETED) for job in completed])
                stored = {item.id for item in ended if item.stored}
                estate.counts["completed"] += len(stored)
                record_ended(store, [job for job in completed if job.id in stored], "completed")
                if told := listened(job for job in completed if job.id in stored):
                    tell_of_lost(store.get([job.id for job in told]), estate.name, self._using)
            if others:
                self._rescue(store, estate, worker_id, others)
            if len(jobs) < BATCH:
                break

    def _rescue(self, store: Store, estate: Estate, worker_id: int, jobs: Sequence[JobRow]) -> None:
        jobs = store.rescue(
            limit=len(jobs),
            spread=self.lease * RESCUE_SPREAD,
            worker_id=worker_id,
            ids=[job.id for job in jobs],
            reason=f"{estate.name}.",
            most_errors=conf.get("MAX_ERRORS"),
        )
        record_ended(store, jobs)
        tell_of_lost(jobs, f"{estate.name}.", self._using)
        for job in jobs:
            estate.counts["rescued"] += 1
            logger.warning(
                "Job %d %s (attempt %d of %d) was running when its process died; it is %s now",
                job.id,
                job.name,
                job.attempt,
                job.max_attempts,
                job.state,
            )

    def close(self) -> None:
        """Close the connection."""
        store, self._store = self._store, None
        if store is not None:
            store.close()


def _by_what_is_known(
    jobs: Sequence[JobRow], started: dict[tuple[int, int], bool] | None
) -> tuple[list[JobRow], list[JobRow], list[JobRow]]:
    """Claims that had not started, that are known to have completed, and all others."""
    unstarted: list[JobRow] = []
    completed: list[JobRow] = []
    others: list[JobRow] = []
    for job in jobs:
        if started is None:
            others.append(job)
            continue
        known = started.get((job.values[ID], job.values[CLAIMS]))
        (unstarted if known is None else completed if known else others).append(job)
    return unstarted, completed, others
