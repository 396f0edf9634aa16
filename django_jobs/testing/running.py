"""Running jobs in the test: in its thread, on its connections, in its transaction."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.db.models import F
from django.utils.decorators import sync_and_async_middleware

import django_jobs
from django_jobs import conf, limits, scheduling
from django_jobs.databases import jobs_database
from django_jobs.exceptions import Control
from django_jobs.job_registry import registry
from django_jobs.models import Job, Queue, Worker
from django_jobs.states import State
from django_jobs.store import django_store
from django_jobs.store.answers import Ended
from django_jobs.store.rows import JobRow
from django_jobs.testing import travelling
from django_jobs.worker import copies, middleware
from django_jobs.worker.attempt import Runner
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.followers import is_followed, tell
from django_jobs.worker.recorder import Recorder
from django_jobs.worker.signs import Signs
from django_jobs.worker.statistics import Statistics
from django_jobs.worker.ticker import Ticker

logger = logging.getLogger("django_jobs.testing")

# No worker of a test lives for so long.
LEASE = 86_400.0
PROMOTED = 1000
MANY = 1_000_000


class TooManyJobs(AssertionError):
    """There was no end to the jobs: one enqueues itself, or is retried at once, again and again."""


def run_jobs(
    *,
    queue_name: str | None = None,
    limit: int | None = None,
    using: str | None = None,
    raise_errors: bool = False,
) -> list[JobRow]:
    """Run each job that is due now, once, as a worker would: in this thread, in the test's own transaction.

    What these jobs enqueue, and their retries, wait for the next call; :func:`drain` runs them too. What is recorded is
    what a worker records, signals included. Of ``transaction.on_commit`` what a job has committed is run at its end.

    :param queue_name: that queue's only. Paused queues are left alone.
    :param limit: so many at most; the first ones in the worker's order, by queue.
    :param using: the alias of the database.
    :param raise_errors: raise what a job raised, once that is recorded; those behind it are given back.
    :returns: the jobs as they are then, in the order in which they ran.
    """
    with Hand.of(using, raise_errors) as hand:
        return hand.run(hand.claim(queue_name, limit))


def drain(
    *,
    queue_name: str | None = None,
    most: int = 1000,
    using: str | None = None,
    raise_errors: bool = False,
) -> list[JobRow]:
    """Run jobs until nothing is due: those that jobs enqueue, and retries that are due, too.

    :param queue_name: that queue's only.
    :param most: so many at most.
    :param using: the alias of the database.
    :param raise_errors: raise what a job raised, once that is recorded.
    :returns: the jobs as they were when each attempt had ended, in the order in which they ran.
    :raises TooManyJobs: when there are still more.
    """
    ran: list[JobRow] = []
    with Hand.of(using, raise_errors) as hand:
        while jobs := hand.claim(queue_name, most - len(ran) + 1):
            if len(ran) + len(jobs) > most:
                hand.store.release(jobs)
                raise TooManyJobs(
                    f"{most} jobs have run, and {jobs[0]!r} is still due. Does a job enqueue itself? If there are "
                    f"really so many, say drain(most=...)."
                )
            ran += hand.run(jobs)
    return ran


async def arun_jobs(**options: Any) -> list[JobRow]:
    """:func:`run_jobs`, from async code."""
    return await sync_to_async(run_jobs)(**options)


async def adrain(**options: Any) -> list[JobRow]:
    """:func:`drain`, from async code."""
    return await sync_to_async(drain)(**options)


def run_schedules(*, using: str | None = None) -> None:
    """Declare the schedules that are new, and enqueue what the others owe by now, as a worker does.

    Call it once before the clock moves on, so that there is a time from which on ticks are owed.

    :param using: the alias of the database.
    """
    alias = jobs_database(using)
    store = django_store(alias)
    scheduling.synchronise(store, alias)
    Ticker(alias, lambda _: None).run(store)


class Hand:
    """A worker's hand: it claims, runs and records jobs when it is told to.

    :param alias: the database.
    :param raise_errors: whether to raise what a job raised, once that is recorded.
    """

    def __init__(self, alias: str, raise_errors: bool) -> None:
        self.alias = alias
        self.raise_errors = raise_errors
        self.store = django_store(alias)
        self.signs = Signs(alias)
        self.runner = _Runner(registry, self.signs, [_nothing, *middleware.load(conf.get("MIDDLEWARE"))])
        self.recorder = Recorder(Statistics(), alias)

    @classmethod
    @contextmanager
    def of(cls, using: str | None, raise_errors: bool) -> Iterator[Hand]:
        """A hand with a worker's row, which is gone afterwards."""
        # Who runs jobs by itself is no copy of a worker, though a process that was one has forked it.
        copies.copied.clear()
        hand = cls(jobs_database(using), raise_errors)
        host = socket.gethostname()[: limits.HOST_LENGTH]
        worker = hand.store.register_worker(host, os.getpid(), "[]", 1, django_jobs.__version__, LEASE)
        hand.signs.worker_id = worker.id
        try:
            yield hand
        finally:
            Worker.objects.using(hand.alias).filter(pk=worker.id).delete()

    def claim(self, queue_name: str | None, limit: int | None) -> list[JobRow]:
        """Claim what is due, promoted first."""
        while len(self.store.promote(PROMOTED)) == PROMOTED:
            pass
        left = MANY if limit is None else limit
        paused = set(
            Queue.objects.using(self.alias).filter(paused_at__isnull=False).values_list("name", flat=True)
        )
        names = self.store.waiting_queues() if queue_name is None else [queue_name]
        claimed: list[JobRow] = []
        for name in sorted({*names} - paused):
            if left - len(claimed) > 0:
                claimed += self.store.claim(self.signs.worker_id, name, left - len(claimed))
        return claimed

    def claim_one(self, job_id: int) -> list[JobRow]:
        """Claim a job that is available, wherever it stands in its queue."""
        claimed = (
            Job.objects.using(self.alias)
            .filter(pk=job_id, state=State.AVAILABLE)
            .update(
                state=State.RUNNING,
                attempt=F("attempt") + 1,
                claims=F("claims") + 1,
                attempted_at=travelling.now(),
                worker=self.signs.worker_id,
            )
        )
        return self.store.get([job_id]) if claimed else []

    def run(self, jobs: list[JobRow]) -> list[JobRow]:
        """Run claimed jobs, and return them as they are then."""
        ran: list[JobRow] = []
        for position, job in enumerate(jobs):
            self.signs.cancelled = self.store.cancel_requests(self.signs.worker_id)
            attempted, error = self.runner.attempt(job)
            ran += self._store(attempted)
            if error is not None and self.raise_errors and not isinstance(error, Control):
                self.store.release(jobs[position + 1 :])
                raise error
        return ran

    def _store(self, attempted: Attempted) -> list[JobRow]:
        """Record how an attempt ended; the job, if it still exists."""
        outcome = attempted.outcome
        if attempted.metadata is not None:
            self.store.merge_metadata([(outcome.id, outcome.claims, attempted.metadata)])
        ended = {item.id: item for item in self.store.finish([outcome], whole_rows=True)}
        if attempted.stored and outcome.id in ended:
            job = ended[outcome.id].job
            ended[outcome.id] = Ended(outcome.id, "completed", True, job)
        self.recorder.record([attempted], ended)
        if is_followed([attempted]):
            tell([attempted], ended, self.alias)
        return self.store.get([outcome.id])


@sync_and_async_middleware
def _nothing(run: Any) -> Any:
    """A middleware, so that no job is called without one: past :meth:`_Runner._call`."""
    return run


class _Runner(Runner):
    """A runner that keeps what a job raised, and that runs each job as if it were not in the test's transaction."""

    _error: BaseException | None = None
    _alone = False

    def attempt(self, job: JobRow) -> tuple[Attempted, BaseException | None]:
        """Run a job; how that ended, and what it raised."""
        self._error = None
        attempted = self.run(job)
        assert isinstance(attempted, Attempted)  # nothing else comes where nobody can give it up
        return attempted, self._error

    def _call(self, here: list[Any], args: list[Any], kwargs: dict[str, Any], *, told: bool = False) -> Any:
        return self._as_in_a_worker(lambda: super(_Runner, self)._call(here, args, kwargs, told=told))

    def _call_atomic(self, here: list[Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        return self._as_in_a_worker(lambda: super(_Runner, self)._call_atomic(here, args, kwargs))

    def _as_in_a_worker(self, call: Callable[[], Any]) -> Any:
        if self._alone:  # the function within its transaction
            return call()
        self._alone = True
        try:
            with ExitStack() as stack:
                for connection in connections.all(initialized_only=True):
                    if connection.in_atomic_block:
                        stack.enter_context(_own_statements(connection))
                return call()
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._alone = False


@contextmanager
def _own_statements(connection: Any) -> Iterator[None]:
    """As if what is done on the connection were committed step by step, in the transaction that is open there.

    What the job wrote stays, also when it raises; only after an error of the database, which would end the whole
    transaction, all that it wrote is undone.
    """
    atomic = transaction.atomic(using=connection.alias)
    atomic._from_testcase = True  # a durable block of the job's may be in it
    callbacks = len(connection.run_on_commit)
    atomic.__enter__()
    try:
        yield
    finally:
        if _is_aborted(connection):
            connection.needs_rollback = True
        atomic.__exit__(None, None, None)
        while len(connection.run_on_commit) > callbacks:
            _, function, is_robust = connection.run_on_commit.pop(callbacks)
            try:
                function()
            except Exception:
                if not is_robust:
                    raise
                logger.exception("A robust callback of on_commit failed")


def _is_aborted(connection: Any) -> bool:
    """Whether the server takes nothing more in this transaction (PostgreSQL)."""
    if connection.vendor != "postgresql" or connection.connection is None:
        return False
    return bool(connection.connection.pgconn.transaction_status == _IN_ERROR)


_IN_ERROR = 3  # psycopg.pq.TransactionStatus.INERROR
