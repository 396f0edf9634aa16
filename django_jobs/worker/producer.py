"""The producer: finds work for one pool while the pool's executors do work."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from django_jobs.store.base import Store
from django_jobs.store.rows import QUEUE_NAME, WORKER_ID, JobRow
from django_jobs.worker.buffer import Buffer
from django_jobs.worker.lost_answers import Epoch, LostAnswers
from django_jobs.worker.options import EVERY_QUEUE, Pool
from django_jobs.worker.parts import Part, until
from django_jobs.worker.recycling import Allowance

logger = logging.getLogger("django_jobs.worker")

# What is claimed ahead is this many seconds of work, and this many jobs, at most.
AHEAD_SECONDS = 0.25
AHEAD_JOBS = 2000
CLAIM_JOBS = 1000
# A claim that takes longer than its jobs account for is slow, as over a slow network: then more is claimed ahead, by
# what the executors work off meanwhile, and more at once, up to this many times as much.
CLAIM_SECONDS_PER_JOB = 0.00003
LONGEST_LAG = 1.0
MOST_TIMES = 4
# While claims are full, the queues that have jobs are asked for this often, not before every claim; where that is slow,
# in this part of the time, and after so many seconds: one answer may have been slow by chance (the machine stood
# still), and not every worker is woken. What wake-ups name is claimed from in any case.
ASK_SECONDS = 0.25
ASK_PART = 0.05
ASK_LONGEST = 10.0
# Buffered jobs that no executor has come for in this time are given back, for another worker.
STALE_SECONDS = 1.0


class Pace(Protocol):
    """How fast the executors are: what the look-ahead is reckoned from."""

    def totals(self) -> tuple[int, float]:
        """Jobs done so far, and the seconds they took, added up."""
        ...


class Situation(Protocol):
    """What the producer must know of its worker."""

    @property
    def worker_id(self) -> int: ...
    @property
    def epoch(self) -> Epoch: ...
    @property
    def may_claim(self) -> bool: ...
    @property
    def trusts_claims(self) -> bool: ...
    @property
    def paused(self) -> frozenset[str]: ...
    @property
    def poll_interval(self) -> float: ...


class Producer(Part):
    """Keeps the buffer of one pool filled.

    It claims for executors that wait, and ahead of those that work: about a quarter second of work, more where claims
    are slow, nothing where jobs are. A full claim is followed by the next at once. When the queues are empty it waits
    for a wake-up, or for the poll interval.

    :param open_store: opens a store on a connection of the producer's own.
    :param elsewhere: the queues that other pools of the worker name, for a pool of ``*``.
    :param allowance: how many jobs the worker may still claim; None for any number.
    """

    name = "producer"

    def __init__(
        self,
        pool: Pool,
        buffer: Buffer,
        pace: Pace,
        situation: Situation,
        open_store: Callable[[], Store],
        elsewhere: frozenset[str] = frozenset(),
        allowance: Allowance | None = None,
    ) -> None:
        super().__init__()
        self.pool = pool
        self.buffer = buffer
        self.pace = pace
        self.situation = situation
        self.elsewhere = elsewhere
        self.allowance = allowance
        self._open_store = open_store
        self._store: Store | None = None
        self._empty = False  # the queues had nothing left when last looked at
        self._looks = 0  # wake-ups so far, to notice one that comes during a claim
        self._looked_at = 0.0
        self._next = 0
        self._full = False  # the last claim got all that it asked for
        self._waiting: list[str] = []  # queues that had jobs when last asked, and when that was
        self._asked_at = 0.0
        self._asking = 0.0  # seconds that it took
        self._named: set[str] = set()  # queues that wake-ups have named since
        self._woken: set[str] = set()  # of those, while others are full, what has not been found empty yet
        self._again: dict[
            str, float
        ] = {}  # queues of which a claim may have passed over jobs: when to claim again
        self._ask = True  # something else than a named queue calls for a look
        self._done, self._seconds, self._mean = 0, 0.0, 0.0
        self._lag = 0.0  # seconds that a claim takes beyond what its jobs account for
        self._moved_at, self._moved = 0.0, 0
        self._buffered = 0  # jobs put into the buffer so far
        self._returning: list[JobRow] = []
        self._withdrawn: deque[JobRow] = deque()  # by other threads
        self._unanswered = LostAnswers(situation.epoch)
        buffer.on_low = self.wake

    @property
    def returning(self) -> list[JobRow]:
        """Jobs that were taken back and could not be given back yet."""
        return [*self._returning, *self._withdrawn]

    def start(self) -> None:
        """Start the thread, and look at the queues at once: what came while it stood still has woken nobody."""
        self._empty = False
        self._ask = True
        super().start()

    def withdraw(self, unwanted: Callable[[JobRow], bool] = lambda _job: True) -> None:
        """Take what no executor has begun out of the buffer, at once; for the worker's other threads.

        The producer gives it back as soon as the claims are trusted, unless they were made under an id that was given
        up.
        """
        self._withdrawn.extend(self.buffer.take_back(unwanted))
        self.wake()

    @property
    def found_nothing(self) -> bool:
        """Whether the last look at the queues found no job, and nothing has called for another look since."""
        return self._empty and not self._awake.is_set() and not self._again and not self._unanswered.awaited

    def look(self, queue_name: str | None = None) -> None:
        """There may be work (in ``queue_name``): claim as soon as there is room."""
        if (
            queue_name is None
            or queue_name in self.pool.queues
            or (EVERY_QUEUE in self.pool.queues and queue_name not in self.elsewhere)
        ):
            if queue_name is None:
                self._ask = True
            else:
                self._named.add(queue_name)
            self._looks += 1
            self._empty = False
            self.wake()

    def failed(self, error: Exception) -> None:
        """Whether the queues that were to be looked at have jobs is not known."""
        self._ask = True
        super().failed(error)

    def step(self) -> None:
        """Claim once, or wait for a reason to."""
        self.buffer.low_told = False
        self._take_back()
        self._find_unanswered()
        if time.monotonic() - self._looked_at >= self.situation.poll_interval:
            self._empty = False
        if self._again:
            self._name_again()
        wanted = self.wanted()
        if self._empty or wanted <= 0 or not self.situation.may_claim:
            self._rest(self._patience(wanted))
            return
        looks = self._looks
        self._looked_at = time.monotonic()
        if not self._claim_allowed(min(wanted, self.at_once())):
            self._empty = True
            if looks != self._looks:  # set first and compared after: a wake-up of this moment is not lost
                self._empty = False

    def _name_again(self) -> None:
        """Look, as after a wake-up, at queues of which a claim may have passed over jobs, when their time has come."""
        due = [name for name, at in self._again.items() if until(at) == 0.0]
        for name in due:
            del self._again[name]
            self._named.add(name)
            self._empty = False

    def wanted(self) -> int:
        """How many jobs there is room for: executors that wait, and the look-ahead, less what is buffered."""
        ahead = self.ahead()
        self.buffer.low = ahead // 2
        buffered = len(self.buffer.jobs)
        wanted = self.buffer.waiting + ahead - buffered
        # No small claims to top up a buffer that is well filled: they cost as much as large ones.
        return wanted if buffered <= self.buffer.low or self.buffer.waiting > buffered else 0

    def ahead(self) -> int:
        """How many jobs to have claimed ahead, by how long the last ones took."""
        if not self.pool.ahead:
            return 0
        done, seconds = self.pace.totals()
        if done > self._done:
            mean = (seconds - self._seconds) / (done - self._done)
            self._mean = mean if self._done == 0 else 0.5 * self._mean + 0.5 * mean
            self._done, self._seconds = done, seconds
        if self._done == 0 or self._mean >= AHEAD_SECONDS:
            return 0
        # Twice the lag: claimed again at half of what is ahead, and that half must last for a claim.
        seconds = AHEAD_SECONDS + 2 * self._lag
        return int(min(AHEAD_JOBS * self._times(), seconds * self.pool.size / max(self._mean, 1e-6)))

    def at_once(self) -> int:
        """How many jobs to claim with one statement at most."""
        return int(CLAIM_JOBS * self._times())

    def _times(self) -> float:
        return min(MOST_TIMES, 1 + 2 * self._lag / AHEAD_SECONDS)

    def _took(self, seconds: float, jobs: int) -> None:
        lag = min(LONGEST_LAG, max(0.0, seconds - CLAIM_SECONDS_PER_JOB * jobs))
        self._lag = 0.5 * self._lag + 0.5 * lag if self._lag else lag

    def _patience(self, wanted: int) -> float:
        """Seconds to wait: until the next poll, or until what is buffered may have gone stale."""
        poll = max(0.01, self._looked_at + self.situation.poll_interval - time.monotonic())
        if self._again:
            poll = min(poll, max(0.001, until(min(self._again.values()))))
        if not self.situation.may_claim or wanted <= 0:
            poll = max(poll, self.situation.poll_interval)
        seconds = self._unanswered.seconds_until_look()
        if seconds is not None:
            poll = min(poll, max(0.01, seconds))
        return min(poll, STALE_SECONDS / 2) if self.buffer.jobs else poll

    def _claim_allowed(self, limit: int) -> bool:
        """Claim, within what the worker may still claim in its life."""
        if self.allowance is None:
            return self._claim(limit)
        return self.allowance.claim(limit, self._claim, lambda: self._buffered)

    def _claim(self, limit: int) -> bool:
        """Claim from the pool's queues in turn, and say whether there may be more."""
        store = self.store
        queues = self._candidates(store)
        self._full = full = False
        for offset in range(len(queues)):
            queue = queues[(self._next + offset) % len(queues)]
            worker_id, epoch = self.situation.worker_id, self.situation.epoch.number
            began = time.monotonic()
            try:
                jobs = store.claim(worker_id, queue, limit, epoch=epoch)
            except BaseException:
                self._unanswered.failed(worker_id, queue, epoch)
                raise
            self._took(time.monotonic() - began, len(jobs))
            self._again.pop(queue, None)
            if (seconds := store.seconds_until_claim(queue)) is not None:
                self._again[queue] = time.monotonic() + seconds
            if jobs:
                self._unanswered.answered(jobs)
            elif epoch != self.situation.epoch.number:
                # It may have come when its epoch was over, and have taken nothing for that alone: it is sent again.
                self._named.add(queue)
                full = True
            if self._stopping.is_set() or not self.situation.may_claim:
                # The stop came while the claim ran; nobody else knows of these jobs.
                self.give_back(jobs)
                return False
            if jobs:
                self.buffer.put(jobs)
                self._buffered += len(jobs)
                self._moved_at = time.monotonic()
                if self.situation.worker_id != worker_id:
                    self.withdraw()  # given up while the claim ran: others have these jobs now
            full = full or len(jobs) == limit
            if len(jobs) < limit:
                self._woken.discard(queue)
            limit -= len(jobs)
            if limit <= 0:
                self._next = (self._next + offset + 1) % len(queues)
                break
        self._full = full
        return full

    def _candidates(self, store: Store) -> list[str]:
        """The queues to claim from: those named, or, where the database is asked first, those that have jobs."""
        every = EVERY_QUEUE in self.pool.queues
        if not every and not store.probe_before_claim:
            names = list(self.pool.queues)
        elif self._full and self._looked_at - self._asked_at < max(ASK_SECONDS, self._asking / ASK_PART):
            if self._named and not store.probe_before_claim:
                self._woken.update(_taken_out(self._named))
            # There was more than could be claimed a moment ago.
            names = sorted({*self._waiting, *self._woken}) if self._woken else self._waiting
        elif self._knows(store):
            names = self._waiting = sorted(_taken_out(self._named))
        else:
            # Forgotten first: a wake-up of this moment is in the answer, or comes after it.
            self._ask = False
            self._named.clear()
            self._woken.clear()
            began = time.monotonic()
            names = self._waiting = [
                name
                for name in store.waiting_queues()
                if name in self.pool.queues or (every and name not in self.elsewhere)
            ]
            self._asking = min(time.monotonic() - began, ASK_LONGEST * ASK_PART)
            self._asked_at = self._looked_at
        return [name for name in names if name not in self.situation.paused]

    def _knows(self, store: Store) -> bool:
        """Whether only the queues that wake-ups have named can have jobs: all were empty when they were last asked.

        Asked again after the poll interval at the latest, should a wake-up have been lost.
        """
        return (
            not (self._ask or self._full or store.probe_before_claim)
            and bool(self._named)
            and self._looked_at - self._asked_at < self.situation.poll_interval
        )

    def _take_back(self) -> None:
        """Take jobs out of the buffer that should not wait here: of a paused queue, behind slow ones, or in doubt."""
        buffer = self.buffer
        if buffer.jobs:
            paused = self.situation.paused
            if not self.situation.trusts_claims:
                self._returning += buffer.take_back()
            elif paused:
                self._returning += buffer.take_back(lambda job: job.values[QUEUE_NAME] in paused)
            now = time.monotonic()
            done, _ = self.pace.totals()
            if done != self._moved:
                self._moved, self._moved_at = done, now
            elif now - self._moved_at >= STALE_SECONDS:
                # Every executor is at a long job: what is buffered here could run elsewhere.
                self._returning += buffer.take_back()
                self._mean = max(self._mean, STALE_SECONDS)
        while self._withdrawn:
            self._returning.append(self._withdrawn.popleft())
        if self._returning and self.situation.trusts_claims:
            self.give_back([])

    def _find_unanswered(self) -> None:
        """Give back what was claimed by a statement whose answer was lost, if one failed."""
        if self._unanswered.seconds_until_look() == 0.0:
            jobs = self.unanswered(self.store)
            if jobs:
                self.give_back(jobs)
                self._ask, self._empty = True, False

    def unanswered(self, store: Store, at_once: bool = False) -> list[JobRow]:
        """What was claimed by statements whose answer was lost, as far as it is due to be looked for."""
        return self._unanswered.find(store, self.situation.worker_id, at_once)

    def give_back(self, jobs: list[JobRow]) -> None:
        """Give claimed jobs back that never started. What can't be given back now is, before the next claim."""
        self._returning += jobs
        # Those of an identity that was given up have been rescued already.
        self._returning = [
            job for job in self._returning if job.values[WORKER_ID] == self.situation.worker_id
        ]
        if self._returning:
            logger.debug("Giving %d claimed jobs back that did not start", len(self._returning))
            self.store.release(self._returning)
            self._returning = []

    @property
    def store(self) -> Store:
        """The producer's own store."""
        if self._store is None:
            self._store = self._open_store()
            self._store.claims_again = True
        return self._store

    def close(self) -> None:
        """Close the connection."""
        if self._store is not None:
            self._store.close()


def _taken_out(names: set[str]) -> list[str]:
    """Empty a set to which other threads add."""
    taken = []
    while names:
        taken.append(names.pop())
    return taken
