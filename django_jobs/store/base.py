"""The contract of a store: what the rest of the project asks of the database that holds the jobs.

Every method is one statement of ``sql/<vendor>/``, with no transaction of its own. ``now`` is the time to use, for
tests; None is the time of the database (on SQLite, which is on this host, of this process).
"""

from __future__ import annotations

import contextlib
import datetime as dt
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from django.db import IntegrityError

from django_jobs import limits
from django_jobs.serialization import decode, parse_timestamp
from django_jobs.states import FINISHED
from django_jobs.store.bulk import BulkStatements
from django_jobs.store.rows import (
    CLAIMS,
    ERRORS,
    ID,
    JOB_COLUMNS,
    PRIORITY,
    RUN_AFTER,
    WORKER_COLUMNS,
    Cancelled,
    Ended,
    Heartbeat,
    HeldJob,
    JobRow,
    LeadershipRow,
    Merged,
    NewJob,
    Outcome,
    QueueRow,
    Released,
    Retried,
    WorkerRow,
)
from django_jobs.store.schedules import ScheduleStatements
from django_jobs.store.sessions import Session
from django_jobs.store.statements import statement
from django_jobs.store.statistics import StatisticsStatements
from django_jobs.store.unique import ROUNDS, Found, insert_unique

# How a claim can end (``Outcome.kind``).
COMPLETED = "completed"
RETRY = "retry"  # failed; a dead letter if that was the last attempt
FAILED = "failed"  # a dead letter at once
SNOOZED = "snoozed"
CANCELLED = "cancelled"
RELEASED = "released"

_WIDTH = len(JOB_COLUMNS)
_WORKER_WIDTH = len(WORKER_COLUMNS)

WORKER_LOST = "django_jobs.WorkerLost"


@dataclass(frozen=True)
class Guarantees:
    """What this database gives, in data: see :meth:`Store.guarantees`."""

    database: str
    exclusive_across_processes: bool
    exclusive_across_hosts: bool
    wakes_by: str
    wakes_within: float
    concurrent_completion_writes: int
    clock: str

    def describe(self) -> str:
        """One line for people."""
        reach = (
            "any number of hosts" if self.exclusive_across_hosts else "any number of processes on one host"
        )
        writes = self.concurrent_completion_writes
        return (
            f"{self.database}: a job is claimed by one worker at a time across {reach}; woken by {self.wakes_by} "
            f"(polls every {self.wakes_within:g} s while that fails); {writes} completion "
            f"{'write' if writes == 1 else 'writes'} at once; time is {self.clock}'s"
        )


class Store(ScheduleStatements, StatisticsStatements, BulkStatements):
    """The job table of one database, over one session.

    :param session: runs statements: on Django's connection, in the caller's transaction, or on a connection of its
        own. A store over a session of its own must not be used by two threads at once.
    :param notify: whether statements that make work wake workers (PostgreSQL).
    """

    vendor: str

    def __init__(self, session: Session, notify: bool = True) -> None:
        self.session = session
        self.notify = notify

    # -- what this database can do ---------------------------------------------------------------------------------

    @abstractmethod
    def guarantees(self) -> Guarantees:
        """What this database gives: exclusive claims across what, wake-ups how, completion writes how many at once."""

    @property
    def completion_concurrency(self) -> int:
        """How many :meth:`finish` calls may run at once, each on a session of its own. Undeclared means one."""
        return 1

    @property
    def probe_before_claim(self) -> bool:
        """Whether to read, before a claim, if there is anything: where a claim that finds nothing takes a lock."""
        return False

    @property
    def outlives_client(self) -> bool:
        """Whether a statement that was sent goes on, and takes effect, when the process that sent it dies."""
        return False

    # -- how parameters are written --------------------------------------------------------------------------------

    @abstractmethod
    def _time(self, now: dt.datetime | None) -> Any: ...

    @abstractmethod
    def _after(self, now: dt.datetime | None, seconds: float) -> Any:
        """``seconds`` after ``now``, in the way this database's statements take it."""

    @abstractmethod
    def _before(self, now: dt.datetime | None, seconds: float) -> Any:
        """``seconds`` before ``now``, in the way this database's statements take it."""

    @abstractmethod
    def _ids(self, ids: Iterable[int]) -> str: ...

    def _run(self, name: str, now: dt.datetime | None, /, **parameters: Any) -> list[tuple[Any, ...]]:
        return self._run_with(name, {"now": self._time(now), "notify": self.notify, **parameters})

    def _run_with(
        self, name: str, parameters: dict[str, Any], whole_rows: bool = True
    ) -> list[tuple[Any, ...]]:
        return self.session.fetch(statement(self.vendor, name, whole_rows), parameters)

    # -- jobs ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def insert(self, new: NewJob, now: dt.datetime | None = None) -> JobRow:
        """Insert a job and wake who waits for it, in the transaction of the session.

        If a job holds its unique key, that one comes back, with ``is_duplicate`` true.
        """

    @abstractmethod
    def insert_many(self, new: Sequence[NewJob], now: dt.datetime | None = None) -> list[JobRow]:
        """Insert jobs, in one statement; returned, with ascending ids, in the order given.

        In place of one whose unique key is held, by a job that was there or by an earlier one of the call, the holder
        comes back, with ``is_duplicate`` true.
        """

    def insert_unique(self, new: Sequence[NewJob], now: dt.datetime | None = None) -> list[JobRow]:
        """Insert jobs of which some have unique keys: see :meth:`insert` and :meth:`insert_many`."""
        return insert_unique(
            self.session,
            new,
            lambda jobs: self._insert_unique(jobs, now),
            lambda jobs: self.replace(jobs, now),
        )

    @abstractmethod
    def _insert_unique(self, new: Sequence[NewJob], now: dt.datetime | None) -> Sequence[Found | None]:
        """One statement that inserts jobs, no key twice; what became of each, None if that must be asked again."""

    @abstractmethod
    def replace(self, new: Mapping[int, NewJob], now: dt.datetime | None = None) -> list[JobRow]:
        """Give jobs, by id, the arguments and the time of others. Returns those that still waited, as they now are."""

    def claim(
        self, worker_id: int, queue_name: str, limit: int, now: dt.datetime | None = None
    ) -> list[JobRow]:
        """Claim up to ``limit`` available jobs of a queue, in their order: priority, then time, then id."""
        return self._claimed(self._run("claim", now, worker_id=worker_id, queue_name=queue_name, limit=limit))

    def _claimed(self, rows: list[tuple[Any, ...]]) -> list[JobRow]:
        """The jobs of a claim, in their order."""
        if len(rows) > 1:
            try:
                # Two stable sorts by what C can compare, the second of what is mostly alike: a third of one by a key
                # of our own. Texts of moments in UTC sort as the moments do, also with fewer digits: "+" and "." come
                # before all digits.
                rows.sort(key=_by_time)
                rows.sort(key=_by_priority, reverse=True)
            except (ValueError, TypeError):  # a time that somebody's SQL wrote: the claim stands all the same
                rows.sort(key=_order_of_any)
        return [*map(JobRow, rows)]

    @abstractmethod
    def finish(
        self, outcomes: Sequence[Outcome], now: dt.datetime | None = None, whole_rows: bool = False
    ) -> list[Ended]:
        """Record outcomes, any mix, in one statement.

        One answer for each outcome whose row still exists, in no order: what was stored, or, where the claim was no
        longer this one, the state that the row has (read once, for just those). ``whole_rows`` brings the rows back
        whole, in :attr:`Ended.job`.
        """

    @abstractmethod
    def finish_and_delete(
        self,
        outcomes: Sequence[Outcome],
        unkept: Mapping[int, Iterable[str]],
        now: dt.datetime | None = None,
        whole_rows: bool = False,
    ) -> list[Ended]:
        """:meth:`finish`, and with it delete those that end in a state that is not kept.

        The same answers: one that was deleted is told as it was stored. One that is completed and holds its key for a
        period stays until that is over. One statement; on SQLite two, in one transaction.

        :param unkept: for each job, by id, the states in which it is not kept.
        """

    def _ended(
        self, outcomes: Sequence[Outcome], rows: list[tuple[Any, ...]], whole_rows: bool
    ) -> list[Ended]:
        if whole_rows:
            jobs = [JobRow(row[:_WIDTH]) for row in rows]
            ended = [Ended(job.id, job.state, True, job) for job in jobs]
        else:
            new: Any = tuple.__new__  # a named tuple's own constructor is a function in Python
            ended = [new(Ended, (row[0], row[1], True, None)) for row in rows]
        if len(ended) < len(outcomes):
            stored = {item.id for item in ended}
            lost = [outcome.id for outcome in outcomes if outcome.id not in stored]
            ended += [Ended(job.id, job.state, False, job) for job in self.get(lost)]
        return ended

    def is_lock_timeout(self, error: Exception) -> bool:
        """Whether a statement failed since another transaction has held a row for the session's ``lock_timeout``."""
        return False

    def locked(self, ids: Sequence[int]) -> frozenset[int]:
        """Those of the jobs whose rows another transaction holds at this moment. Waits for nobody."""
        return frozenset()

    @abstractmethod
    def merge_metadata(
        self,
        patches: Sequence[tuple[int, int, str]],
        most: int = limits.METADATA_BYTES,
        now: dt.datetime | None = None,
    ) -> list[Merged]:
        """Merge into the metadata of running jobs: each top-level key of a patch replaces the job's.

        :param patches: for each claim its id, its number (``claims``) and the patch, a JSON object with distinct keys.
        :param most: bytes of JSON that a job's metadata may have. One whose would have more is not changed.
        :returns: the jobs as they now are; a claim that is over, or another's by now, is not among them.
        """

    def cancel_requests(self, worker_id: int) -> frozenset[int]:
        """The jobs of a worker that are to be cancelled while they run, read without writing anything."""
        return frozenset(row[0] for row in self._run_with("cancel_requests", {"worker_id": worker_id}))

    @abstractmethod
    def release(self, jobs: Sequence[JobRow], now: dt.datetime | None = None) -> list[JobRow]:
        """Give claimed jobs back that never started: as they were before the claim. Returns those given back."""

    def cancel(self, ids: Sequence[int], now: dt.datetime | None = None) -> list[JobRow]:
        """Cancel waiting jobs at once, and running ones by request. Returns all that exist, as they now are."""
        return [job for job, _ in self.cancel_each(ids, now)]

    def cancel_each(self, ids: Sequence[int], now: dt.datetime | None = None) -> list[Cancelled]:
        """:meth:`cancel`, which also says of each whether it ended by that."""
        rows = self._run("cancel", now, ids=self._ids(sorted(ids)))
        return [
            Cancelled(JobRow(row[:_WIDTH]), bool(row[_WIDTH])) for row in sorted(rows, key=itemgetter(ID))
        ]

    def retry(self, ids: Sequence[int], now: dt.datetime | None = None) -> list[Retried]:
        """Make finished jobs available again, with no attempt spent. Returns all that exist, as they now are.

        One whose unique key another job holds is not, and harms none of the others.
        """
        for _ in range(ROUNDS - 1):
            # A job with the same key that is just being inserted is not seen, but waited for. Then it is seen.
            with contextlib.suppress(IntegrityError), self.session.savepoint():
                return self._retry(ids, now)
        return self._retry(ids, now)

    def _retry(self, ids: Sequence[int], now: dt.datetime | None) -> list[Retried]:
        rows = self._run("retry", now, ids=self._ids(sorted(ids)))
        return [retried(JobRow(row[:_WIDTH]), bool(row[_WIDTH])) for row in sorted(rows)]

    def release_pending(self, ids: Sequence[int], now: dt.datetime | None = None) -> list[Released]:
        """Let pending jobs run, once their time has come. Returns all that exist, as they now are.

        One statement, and a second that reads those that were not pending, if there are any.
        """
        jobs = self._jobs(self._run("release_pending", now, ids=self._ids(sorted(ids))))
        answers = [Released(job, True) for job in jobs]
        others = {*ids}.difference(job.id for job in jobs)
        if others:
            read = self.get(sorted(others))
            answers += [Released(job, False, f"It is {job.state}, not pending.") for job in read]
            answers.sort(key=lambda answer: answer.job.id)
        return answers

    def promote(self, limit: int = 1000, now: dt.datetime | None = None) -> list[JobRow]:
        """Make scheduled jobs whose time has come available, the longest due first."""
        return self._jobs(self._run("promote", now, limit=limit))

    @abstractmethod
    def next_due(self, now: dt.datetime | None = None) -> float | None:
        """Seconds until the next scheduled job is due, 0 or less when it is; None when there is none."""

    def rescue(
        self,
        limit: int = 1000,
        spread: float = 10.0,
        worker_id: int | None = None,
        reason: str = "The worker's lease ran out.",
        most_errors: int = 20,
        now: dt.datetime | None = None,
        ids: Sequence[int] | None = None,
    ) -> list[JobRow]:
        """End the claims of lost and stopped workers, or of ``worker_id`` alone; with ``ids``, only those among them.

        A rescued job's attempt is spent; with attempts left it runs again within ``spread`` seconds (0: at once).
        """
        return self._jobs(
            self._run(
                "rescue",
                now,
                limit=limit,
                spread=spread,
                worker_id=worker_id,
                ids=None if ids is None else self._ids(sorted(ids)),
                error_class=WORKER_LOST,
                message=reason,
                most_errors=most_errors,
            )
        )

    def purge(
        self, state: str, older_than: float, limit: int = 1000, now: dt.datetime | None = None
    ) -> list[int]:
        """Delete jobs that ended in ``state`` at least ``older_than`` seconds ago, and return their ids."""
        rows = self._run("purge", now, state=state, older_than=self._before(now, older_than), limit=limit)
        return [row[0] for row in rows]

    def get(self, ids: Iterable[int]) -> list[JobRow]:
        """The jobs with these ids that exist, in the order of their ids."""
        return self._jobs(self._run_with("get", {"ids": self._ids(ids)}))

    def running(self, worker_id: int, after: int = 0, limit: int = 1000) -> list[JobRow]:
        """The claims that a worker holds, in the order of their ids, from the first id above ``after``."""
        return self._jobs(self._run_with("running", {"worker_id": worker_id, "after": after, "limit": limit}))

    def held_jobs(self, worker_ids: Iterable[int], each: int) -> list[HeldJob]:
        """What workers have claimed: the first ``each`` of each, by worker and id."""
        rows = self._run_with("held_jobs", {"worker_ids": self._ids(worker_ids), "each": each})
        return [
            HeldJob(*row[:6], *map(parse_timestamp, row[6:])) for row in sorted(rows, key=lambda row: row[:2])
        ]

    def waiting_queues(self) -> list[str]:
        """The queues that have available jobs."""
        return [row[0] for row in self._run_with("waiting_queues", {})]

    def _jobs(self, rows: list[tuple[Any, ...]]) -> list[JobRow]:
        return sorted((JobRow(row[:_WIDTH]) for row in rows), key=lambda job: job.values[ID])

    # -- workers ---------------------------------------------------------------------------------------------------

    def register_worker(
        self,
        host: str,
        pid: int,
        queues: str,
        concurrency: int,
        version: str,
        lease: float,
        now: dt.datetime | None = None,
    ) -> WorkerRow:
        """A new worker, with a lease of ``lease`` seconds; ``queues`` is JSON."""
        rows = self._run(
            "register_worker",
            now,
            host=host,
            pid=pid,
            queues=queues,
            concurrency=concurrency,
            version=version,
            lease=self._after(now, lease),
        )
        return WorkerRow(*rows[0])

    def heartbeat(
        self,
        worker_id: int,
        lease: float,
        running: int = 0,
        completed: int = 0,
        failed: int = 0,
        skew: float = 0.0,
        memory: int | None = None,
        leads: bool = False,
        now: dt.datetime | None = None,
    ) -> Heartbeat | None:
        """Renew a worker's lease. None: it was given up, and must not go on under this id.

        :param running: how many jobs it runs; ``completed`` and ``failed`` attempts it has had since its start.
        :param skew: seconds that its host's clock is ahead of the database's.
        :param memory: bytes that its process holds.
        :param leads: whether it does the maintenance at present.
        """
        rows = self._run(
            "heartbeat",
            now,
            worker_id=worker_id,
            lease=self._after(now, lease),
            running=running,
            completed=completed,
            failed=failed,
            skew=skew,
            memory=memory,
            leads=leads,
        )
        if not rows:
            return None
        moment, paused, cancelled = rows[0][_WORKER_WIDTH:]
        at = parse_timestamp(moment)
        assert at is not None
        return Heartbeat(
            WorkerRow(*rows[0][:_WORKER_WIDTH]),
            at,
            frozenset(decode(paused) if paused else ()),
            frozenset(decode(cancelled) if cancelled else ()),
        )

    def lose_workers(self, now: dt.datetime | None = None) -> list[WorkerRow]:
        """Take workers whose lease ran out for lost; the next :meth:`rescue` ends their claims."""
        return [WorkerRow(*row) for row in self._run("lose_workers", now)]

    def lose_worker(self, worker_id: int, now: dt.datetime | None = None) -> WorkerRow | None:
        """Take one worker for lost: its process has ended. None: it was lost, or had stopped, already."""
        rows = self._run("lose_worker", now, worker_id=worker_id)
        return WorkerRow(*rows[0]) if rows else None

    def stop_worker(self, worker_id: int, now: dt.datetime | None = None) -> WorkerRow | None:
        """Note that a worker has stopped."""
        rows = self._run("stop_worker", now, worker_id=worker_id)
        return WorkerRow(*rows[0]) if rows else None

    def ask_worker(
        self,
        worker_id: int,
        quiet: bool | None = None,
        stop: bool = False,
        now: dt.datetime | None = None,
    ) -> WorkerRow | None:
        """Ask a worker to claim nothing (``quiet`` True), to claim again (False), to stop. None: it is gone."""
        rows = self._run("ask_worker", now, worker_id=worker_id, quiet=quiet, stop=stop)
        return WorkerRow(*rows[0]) if rows else None

    def purge_workers(self, older_than: float, now: dt.datetime | None = None) -> list[WorkerRow]:
        """Forget workers that stopped, or were lost, ``older_than`` seconds ago or earlier."""
        rows = self._run("purge_workers", now, older_than=self._before(now, older_than))
        return [WorkerRow(*row) for row in rows]

    # -- queues ----------------------------------------------------------------------------------------------------

    def upsert_queue(
        self,
        name: str,
        pause: bool | None = None,
        metadata: str | None = None,
        now: dt.datetime | None = None,
    ) -> QueueRow:
        """Make or change a queue's row; None leaves what is there. ``metadata`` is JSON."""
        rows = self._run("upsert_queue", now, name=name, pause=pause, metadata=metadata)
        name, paused_at, text = rows[0]
        return QueueRow(name, parse_timestamp(paused_at), decode(text))

    # -- leadership ------------------------------------------------------------------------------------------------

    def acquire_leadership(
        self, name: str, holder: str, lease: float, now: dt.datetime | None = None
    ) -> LeadershipRow | None:
        """Become, or remain, the leader for ``lease`` seconds. None: another one leads."""
        return _leadership(
            self._run("acquire_leadership", now, name=name, holder=holder, lease=self._after(now, lease))
        )

    def resign_leadership(
        self, name: str, holder: str, now: dt.datetime | None = None
    ) -> LeadershipRow | None:
        """Stop leading, so that another one can at once. None: ``holder`` did not lead."""
        return _leadership(self._run("resign_leadership", now, name=name, holder=holder))

    def close(self) -> None:
        """Close the session's connection, if it has one of its own."""
        self.session.close()


def _leadership(rows: list[tuple[Any, ...]]) -> LeadershipRow | None:
    if not rows:
        return None
    name, holder, term, expires_at = rows[0]
    until = parse_timestamp(expires_at)
    assert until is not None
    return LeadershipRow(name, holder, term, until)


_by_time = itemgetter(RUN_AFTER, ID)
_by_priority = itemgetter(PRIORITY)


def _order_of_any(values: tuple[Any, ...]) -> tuple[int, dt.datetime, int]:
    try:
        run_after = parse_timestamp(values[RUN_AFTER])
    except (ValueError, AttributeError):
        run_after = None
    return (-values[PRIORITY], run_after or _NO_TIME, values[ID])


_NO_TIME = dt.datetime(1, 1, 1, tzinfo=dt.UTC)


def retried(job: JobRow, done: bool) -> Retried:
    """What to tell of a job that was to be retried."""
    if done:
        return Retried(job, True)
    if job.state not in FINISHED:
        return Retried(job, False, f"It is {job.state}, not finished.")
    return Retried(job, False, f"Another job holds its unique key {job.unique_key!r}.")


def started_before(job: JobRow) -> str | None:
    """When the attempt before the job's present claim started, as text; None when that is not known.

    A release puts the job back as it was before the claim, this time included; the last error tells it. An attempt that
    left no error is not told: to keep its time would cost every claim, and the next claim of the job overwrites it.
    """
    if not job.values[ERRORS]:
        return None
    try:
        moment = dt.datetime.fromisoformat(job.errors[-1]["attempted_at"])
    except (ValueError, TypeError, KeyError, IndexError):
        return None  # written by somebody else's SQL, or cut; the job is worth more than this time
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


# attempted_at, finalized_at, cancel_requested_at, worker_id
_NO_CLAIM_YET = (None, None, None, None)
# error_class, errors, result
_NO_OUTCOME_YET = (None, None, None)


def inserted_row(row: tuple[Any, ...], job: NewJob, key: str | None = None, key_until: Any = None) -> JobRow:
    """The row of a job just inserted, of what the statement returned (id, run_after, created_at) and what we know."""
    id_, run_after, created_at = row[:3]
    later = (job.delay is not None and job.delay > 0) or (
        job.run_after is not None and parse_timestamp(run_after) > parse_timestamp(created_at)  # type: ignore[operator]
    )
    state = "pending" if job.pending else "scheduled" if later else "available"
    known = (id_, job.name, job.queue_name, job.args, job.kwargs, job.priority, state, 0, job.max_attempts, 0)
    times = (run_after, created_at)
    keys = (key, key is not None, job.tags)
    return JobRow(
        (*known, *times, *_NO_CLAIM_YET, *keys, *_NO_OUTCOME_YET, job.metadata, job.timeout, key_until)
    )


def is_usual(new: NewJob) -> bool:
    """Whether a job may run at once and has none of what few jobs have."""
    return (
        new.run_after is None
        and new.delay is None
        and not new.pending
        and new.timeout is None
        and new.tags is None
        and new.metadata is None
        and new.unique_key is None
    )


def usual_parameters(new: NewJob) -> dict[str, Any]:
    """What insert_now takes of a job."""
    return {
        "name": new.name,
        "queue_name": new.queue_name,
        "args": new.args,
        "kwargs": new.kwargs,
        "priority": new.priority,
        "max_attempts": new.max_attempts,
    }


def plainly_completed(outcomes: Sequence[Outcome]) -> bool:
    """Whether all are completions without a result, of as many jobs."""
    for _, _, kind, _, _, errors, result in outcomes:
        if kind != COMPLETED or result is not None or errors is not None:
            return False
    return len({outcome[0] for outcome in outcomes}) == len(outcomes)


def completed_as_told(outcomes: Sequence[Outcome]) -> list[Ended]:
    """What to tell of completions that were all stored."""
    # A named tuple's own constructor is a function in Python.
    new: Any = tuple.__new__
    return [new(Ended, (outcome[0], COMPLETED, True, None)) for outcome in outcomes]


def by_claim(jobs: Sequence[JobRow]) -> list[JobRow]:
    """Jobs in the order of their ids, the order in which every statement locks rows."""
    return sorted(jobs, key=lambda job: (job.values[ID], job.values[CLAIMS]))
