"""The store in memory: what every operation must come to, in plain Python over a dict of jobs.

Written from the contract of :class:`django_jobs.store.Store` and from the table of states, not from the SQL.
"""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django_jobs.store.base import WORKER_LOST
from django_jobs.store.outcomes import CANCELLED, COMPLETED, FAILED, RELEASED, RETRY, SNOOZED
from django_jobs.store.rows import NewJob, Outcome
from django_jobs.store.unique import in_period

WAITING = ("pending", "scheduled", "available")
FINISHED = ("completed", "failed", "cancelled")
# Further in the future than this nobody's last heartbeat was, unless the clock was set back since.
FUTURE_SECONDS = 60.0


@dataclass
class Entry:
    """A job as it must be. The names are those of the columns; ``errors`` is how many there are."""

    id: int
    queue_name: str
    priority: int
    max_attempts: int
    args: list[Any]
    state: str
    run_after: dt.datetime
    unique_key: str | None = None
    key_until: dt.datetime | None = None
    holds_key: bool = False
    attempt: int = 0
    claims: int = 0
    worker_id: int | None = None
    finalized_at: dt.datetime | None = None
    cancel_requested_at: dt.datetime | None = None
    error_class: str | None = None
    errors: int = 0
    result: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def end(self, state: str, now: dt.datetime) -> None:
        """It is finished, or (``state`` waiting) its claim is over."""
        self.state = state
        self.finalized_at = now if state in FINISHED else None
        if state in FINISHED:
            self.holds_key = self.holds_key and state == "completed" and self.key_until is not None

    def keeps_key(self, now: dt.datetime) -> bool:
        """Whether a finished job is spared since its key's period is not over."""
        return self.holds_key and (self.key_until is None or self.key_until > now)


@dataclass
class Helper:
    """A worker as it must be."""

    expires_at: dt.datetime
    heartbeat_at: dt.datetime
    lost: bool = False
    stopped: bool = False
    ended_at: dt.datetime | None = None

    @property
    def lives(self) -> bool:
        return not (self.lost or self.stopped)


class Book:
    """All jobs, workers and queues, and the operations on them. Each returns what the store's must return."""

    def __init__(self) -> None:
        self.jobs: dict[int, Entry] = {}
        self.workers: dict[int, Helper] = {}
        self.paused: set[str] = set()
        #: Every claim there ever was, (id, claims), also of jobs that are gone.
        self.claims: list[tuple[int, int]] = []

    # -- inserting -------------------------------------------------------------------------------------------------

    def holder(self, key: str | None) -> Entry | None:
        """The job that holds a unique key."""
        if key is None:
            return None
        return next((job for job in self.jobs.values() if job.unique_key == key and job.holds_key), None)

    def expected(self, new: NewJob, now: dt.datetime) -> Entry:
        """The row of a job that is inserted now; its id is the database's to give."""
        due = new.run_after or now + dt.timedelta(seconds=new.delay or 0)
        state = "pending" if new.pending else "scheduled" if due > now else "available"
        key, until = new.unique_key, None
        if key is not None and new.unique_for is not None:
            key, until = in_period(key, new.unique_for, now)
        args = [int(new.args.strip("[]"))]
        return Entry(
            0,
            new.queue_name,
            new.priority,
            new.max_attempts,
            args,
            state,
            due,
            key,
            until,
            key is not None,
        )

    def replace(self, job: Entry, new: NewJob, now: dt.datetime) -> None:
        fresh = self.expected(new, now)
        job.args, job.run_after = fresh.args, fresh.run_after
        if job.state != "pending":
            job.state = "scheduled" if job.run_after > now else "available"

    # -- claims ----------------------------------------------------------------------------------------------------

    def claim(self, worker: int, queue: str, limit: int, now: dt.datetime) -> list[int]:
        if worker not in self.workers or not self.workers[worker].lives:
            return []
        waiting = [job for job in self.jobs.values() if (job.state, job.queue_name) == ("available", queue)]
        waiting.sort(key=lambda job: (-job.priority, job.run_after, job.id))
        for job in waiting[:limit]:
            job.state, job.worker_id = "running", worker
            job.attempt += 1
            job.claims += 1
            self.claims.append((job.id, job.claims))
        return [job.id for job in waiting[:limit]]

    def held(self, id_: int, claims: int) -> Entry | None:
        """The job, if that claim of it is live."""
        job = self.jobs.get(id_)
        return job if job is not None and job.state == "running" and job.claims == claims else None

    def finish(self, outcomes: Sequence[Outcome], now: dt.datetime) -> dict[int, tuple[str, bool]]:
        """For each job that exists, its state and whether that was stored now."""
        answer = {}
        for outcome in outcomes:
            job = self.held(outcome.id, outcome.claims)
            if job is not None:
                self._finish(job, outcome, now)
            if outcome.id in self.jobs:
                answer[outcome.id] = (self.jobs[outcome.id].state, job is not None)
        return answer

    def _finish(self, job: Entry, outcome: Outcome, now: dt.datetime) -> None:
        kind = outcome.kind
        again = kind in (RETRY, SNOOZED, RELEASED)
        if kind == COMPLETED:
            state = "completed"
        elif kind == CANCELLED or job.cancel_requested_at is not None:
            state = "cancelled"
        elif kind == FAILED or (kind == RETRY and job.attempt >= job.max_attempts):
            state = "failed"
        else:
            assert again
            state = "scheduled" if kind != RELEASED and (outcome.delay or 0) > 0 else "available"
            if kind != RELEASED:
                job.run_after = now + dt.timedelta(seconds=outcome.delay or 0)
        job.attempt -= kind in (SNOOZED, RELEASED)
        job.end(state, now)
        job.error_class = None if state == "completed" else outcome.error_class or job.error_class
        job.errors += outcome.errors is not None
        job.result = None if outcome.result is None else outcome.result.strip('"')

    def release(self, claims: Iterable[tuple[int, int]], now: dt.datetime) -> list[int]:
        released = []
        for id_, number in sorted(claims):
            job = self.held(id_, number)
            if job is not None:
                job.attempt -= 1
                job.end("available" if job.cancel_requested_at is None else "cancelled", now)
                released.append(id_)
        return released

    def lost(self, worker: int | None) -> bool:
        return worker not in self.workers or not self.workers[worker].lives

    def rescue(self, ids: Iterable[int], again: str, now: dt.datetime) -> None:
        """These claims end; whether it was right that it is these is for the caller to say."""
        for id_ in ids:
            job = self.jobs[id_]
            if job.cancel_requested_at is not None:
                state = "cancelled"
            else:
                state = "failed" if job.attempt >= job.max_attempts else again
            job.end(state, now)
            job.error_class = WORKER_LOST
            job.errors += 1

    # -- operators -------------------------------------------------------------------------------------------------

    def cancel(self, ids: Sequence[int], now: dt.datetime) -> dict[int, bool]:
        """For each job that exists whether it ended by this."""
        answer = {}
        for job in self._those(ids):
            answer[job.id] = job.state in WAITING
            if job.state not in FINISHED:
                job.cancel_requested_at = job.cancel_requested_at or now
            if job.state in WAITING:
                job.end("cancelled", now)
        return answer

    def retry(self, ids: Sequence[int], now: dt.datetime) -> dict[int, bool]:
        before = {job.id: dataclasses.replace(job) for job in self.jobs.values()}
        answer = {}
        for job in self._those(ids):
            key = job.unique_key
            rivals = [
                before[other] for other in set(ids) if other in before and before[other].unique_key == key
            ]
            newest = max((each.id for each in rivals if each.state in FINISHED), default=None)
            taken = any(each.unique_key == key and each.holds_key for each in before.values())
            answer[job.id] = job.state in FINISHED and (
                key is None or job.holds_key or (job.id == newest and not taken)
            )
            if answer[job.id]:
                job.end("available", now)
                job.attempt, job.run_after, job.cancel_requested_at, job.result = 0, now, None, None
                job.holds_key = key is not None
        return answer

    def release_pending(self, ids: Sequence[int], now: dt.datetime) -> dict[int, bool]:
        answer = {}
        for job in self._those(ids):
            answer[job.id] = job.state == "pending"
            if answer[job.id]:
                job.state = "scheduled" if job.run_after > now else "available"
                job.run_after = max(job.run_after, now)
        return answer

    def update(self, ids: Sequence[int], now: dt.datetime, **changes: Any) -> dict[int, bool]:
        answer = {}
        delay = changes.pop("delay")
        for job in self._those(ids):
            most = changes["max_attempts"] or job.max_attempts
            answer[job.id] = job.state in WAITING and job.attempt < most
            if not answer[job.id]:
                continue
            for name, value in changes.items():
                if value is not None:
                    setattr(job, name, value)
            if delay is not None:
                job.run_after = now + dt.timedelta(seconds=delay)
                if job.state != "pending":
                    job.state = "scheduled" if delay > 0 else "available"
        return answer

    # -- maintenance -----------------------------------------------------------------------------------------------

    def promote(self, limit: int, now: dt.datetime) -> list[int]:
        due = [job for job in self.jobs.values() if job.state == "scheduled" and job.run_after <= now]
        due.sort(key=lambda job: (job.run_after, job.id))
        for job in due[:limit]:
            job.state = "available"
        return sorted(job.id for job in due[:limit])

    def purge(self, state: str, age: float, limit: int, now: dt.datetime) -> list[int]:
        before = now - dt.timedelta(seconds=age)
        old = [
            job
            for job in self.jobs.values()
            if job.state == state
            and job.finalized_at
            and job.finalized_at <= before
            and not job.keeps_key(now)
        ]
        old.sort(key=lambda job: (job.finalized_at, job.id))
        return self._remove(job.id for job in old[:limit])

    def delete(self, ids: Sequence[int], state: str | None, now: dt.datetime) -> list[int]:
        if state is None:
            return self._remove(job.id for job in self._those(ids) if job.state != "running")
        return self._remove(
            job.id for job in self._those(ids) if job.state == state and not job.keeps_key(now)
        )

    def remove_ended(self, ids: Iterable[int], unkept: Sequence[str], now: dt.datetime) -> None:
        """What a finish that deletes what is not kept takes away."""
        self._remove(
            id_ for id_ in ids if self.jobs[id_].state in unkept and not self.jobs[id_].keeps_key(now)
        )

    def lose_workers(self, now: dt.datetime) -> list[int]:
        # A heartbeat far in the future was before the clock was set back: whoever lives has had another one since.
        future = now + dt.timedelta(seconds=FUTURE_SECONDS)
        lost = [
            id_
            for id_, worker in self.workers.items()
            if worker.lives and (worker.expires_at < now or worker.heartbeat_at > future)
        ]
        for id_ in lost:
            self.workers[id_].lost, self.workers[id_].ended_at = True, now
        return lost

    def purge_workers(self, age: float, now: dt.datetime) -> list[int]:
        before = now - dt.timedelta(seconds=age)
        busy = {job.worker_id for job in self.jobs.values() if job.state == "running"}
        old = [
            id_
            for id_, worker in self.workers.items()
            if worker.ended_at is not None and worker.ended_at <= before and id_ not in busy
        ]
        for id_ in old:
            del self.workers[id_]
        return old

    def _those(self, ids: Sequence[int]) -> list[Entry]:
        return [self.jobs[id_] for id_ in sorted(set(ids)) if id_ in self.jobs]

    def _remove(self, ids: Iterable[int]) -> list[int]:
        gone = sorted(ids)
        for id_ in gone:
            del self.jobs[id_]
        return gone
