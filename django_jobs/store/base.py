"""The contract of a store: what the rest of the project asks of the database that holds the jobs.

Every method is one statement of ``sql/<vendor>/``, with no transaction of its own. ``now`` is the time to use, for
tests; None is the time of the database (on SQLite, which is on this host, of this process).
"""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from django.db import IntegrityError, OperationalError

from django_jobs import limits
from django_jobs.serialization import decoded, stored_timestamp
from django_jobs.store.answers import Cancelled, Ended, HeldJob, Merged, Released, Retried, retried
from django_jobs.store.bulk import BulkStatements
from django_jobs.store.guarantees import Guarantees
from django_jobs.store.part import DEADLOCKS
from django_jobs.store.rows import (
    ID,
    JOB_COLUMNS,
    JobRow,
    NewJob,
    Outcome,
    QueueRow,
)
from django_jobs.store.schedules import ScheduleStatements
from django_jobs.store.selecting import Found, Position
from django_jobs.store.statistics import StatisticsStatements
from django_jobs.store.unique import ROUNDS, Found as FoundKey, insert_unique
from django_jobs.store.workers import WorkerStatements

_WIDTH = len(JOB_COLUMNS)
_in_time = attrgetter("moment", "id")
WORKER_LOST = "django_jobs.WorkerLost"


class Store(ScheduleStatements, StatisticsStatements, BulkStatements, WorkerStatements):
    """The job table of one database, over one session.

    :param session: runs statements: on Django's connection, in the caller's transaction, or on a connection of its
        own. A store over a session of its own must not be used by two threads at once.
    :param notify: whether statements that make work wake workers (PostgreSQL).
    """

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
    def waits_for_keys(self) -> bool:
        """Whether an insert of a unique key waits for another transaction that has just inserted it."""
        return False

    @property
    def outlives_client(self) -> bool:
        """Whether a statement that was sent goes on, and takes effect, when the process that sent it dies."""
        return False

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
            self.is_deadlock if self.waits_for_keys else None,
        )

    @abstractmethod
    def _insert_unique(self, new: Sequence[NewJob], now: dt.datetime | None) -> Sequence[FoundKey | None]:
        """One statement that inserts jobs, no key twice; what became of each, None if that must be asked again."""

    @abstractmethod
    def replace(self, new: Mapping[int, NewJob], now: dt.datetime | None = None) -> list[JobRow]:
        """Give jobs, by id, the arguments and the time of others. Returns those that still waited, as they now are."""

    @abstractmethod
    def claim(
        self, worker_id: int, queue_name: str, limit: int, now: dt.datetime | None = None, epoch: int = 0
    ) -> list[JobRow]:
        """Claim up to ``limit`` available jobs of a queue, in their order: priority, then time, then id.

        :param epoch: nothing is claimed when a heartbeat of the worker has told of a later one.
        """

    #: Whether who claims claims again after :meth:`seconds_until_claim`. Else no claim passes over a job.
    claims_again = False

    def seconds_until_claim(self, queue_name: str) -> float | None:
        """Seconds until a claim may find what the last one of this queue passed over; None: it passed over nothing.

        Where claims are dear, what became available again before their place is looked for in a part of the time only.
        """
        return None

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
        deadlocks = 0
        for _ in range(ROUNDS - 1):
            try:
                with self.session.savepoint():
                    return self._retry(ids, now)
            except IntegrityError:
                pass  # A job with the same key that was just being inserted was not seen, but waited for. Now it is.
            except OperationalError as error:
                # It locks rows, then takes keys; who inserts several keys may have had some, and want others. What the
                # transaction had before it keeps, though, and a circle over that closes again.
                deadlocks += 1
                if deadlocks > DEADLOCKS or not self.is_deadlock(error):
                    raise
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
        return self.purge_from(None, state, older_than, limit, now).ids

    def purge_from(
        self,
        after: Position | None,
        state: str,
        older_than: float,
        limit: int = 1000,
        now: dt.datetime | None = None,
    ) -> Found:
        """:meth:`purge` those that ended after a position, in the order in which they ended; None: from the first on.

        What is found are those that were deleted; its ``end`` is that of the last one, None when there was none.
        """
        first = Position(0, "before all", 0)
        rows = self._run(
            "purge",
            now,
            state=state,
            older_than=self._before(now, older_than),
            **self._from(after or first),
            limit=limit,
        )
        purged = sorted([Position(0, str(row[1]), row[0]) for row in rows], key=_in_time)
        return Found(purged, purged[-1] if purged else None)

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
            HeldJob(*row[:6], *map(stored_timestamp, row[6:]))
            for row in sorted(rows, key=lambda row: row[:2])
        ]

    def waiting_queues(self) -> list[str]:
        """The queues that have available jobs."""
        # A name that is no text, as SQLite takes it from somebody's SQL, is none that a claim could ask for.
        return [row[0] for row in self._run_with("waiting_queues", {}) if isinstance(row[0], str)]

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
        return QueueRow(name, stored_timestamp(paused_at), decoded(text))

    def close(self) -> None:
        """Close the session's connection, if it has one of its own."""
        self.session.close()
