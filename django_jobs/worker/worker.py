"""The worker: its parts, put together, started, and stopped in order."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from django.db import Error as DatabaseError

import django_jobs
from django_jobs import conf, limits
from django_jobs.definitions import registry
from django_jobs.serialization import encode
from django_jobs.store import Guarantees, Store, own_store
from django_jobs.store.rows import ID, Heartbeat, JobRow, WorkerRow
from django_jobs.store.sqlite import WATCH_INTERVAL
from django_jobs.store.statistics import record_ended
from django_jobs.worker import middleware
from django_jobs.worker.buffer import Buffer
from django_jobs.worker.completer import Completer
from django_jobs.worker.event_loop import EventLoop
from django_jobs.worker.executor import Executors
from django_jobs.worker.heartbeat import Reporter
from django_jobs.worker.keeper import Keeper
from django_jobs.worker.listener import FileListener, Listener, NotifyListener
from django_jobs.worker.measures import Measures, Snapshot
from django_jobs.worker.options import EVERY_QUEUE, Pool, WorkerOptions
from django_jobs.worker.parts import StopRequest, one_line, pause_after, until
from django_jobs.worker.probes import Probes
from django_jobs.worker.producer import Producer
from django_jobs.worker.recorder import Recorder
from django_jobs.worker.recycling import Retirement, resident_memory
from django_jobs.worker.shared_notes import Notes, make_runner
from django_jobs.worker.signs import Signs
from django_jobs.worker.snapshots import SnapshotFile
from django_jobs.worker.statistics import Statistics
from django_jobs.worker.ticker import Ticker
from django_jobs.worker.timeouts import Timeouts

logger = logging.getLogger("django_jobs.worker")

# With wake-ups that work, polling is a safety net only, and this many times slower.
POLL_STRETCH = 10
# The system may run a signal's handler in any thread (one that just starts takes what is pending), and then the main
# thread, which alone runs Python's handlers, sleeps on. So it looks up this often.
SIGNAL_SECONDS = 0.5
# How long the last writes of a stop may take, after the jobs have had their time.
FLUSH_SECONDS = 10.0
# How often one of them is tried, within that.
LAST_TRIES = 3

T = TypeVar("T")


class _PoolParts:
    """One pool's buffer, executors and producer."""

    def __init__(self, worker: Worker, pool: Pool, elsewhere: frozenset[str]) -> None:
        self.buffer = Buffer()
        self.executors = Executors(
            self.buffer, worker.runner, worker.completer.put, pool.size, worker.completer.is_crowded
        )
        allowance = worker.retirement.allowance
        self.producer = Producer(
            pool, self.buffer, self.executors, worker, worker.open_store, elsewhere, allowance
        )


class Worker:
    """Runs jobs until it is stopped, or, draining, until nothing is due.

    It installs no signal handlers: ``runjobs`` does, and calls :meth:`stop` and :meth:`stop_now`.

    :param options: what to work on and how.
    :param notes: what the worker notes for its supervisor, where it has one.
    :param probes: show that it lives.
    """

    def __init__(
        self,
        options: WorkerOptions | None = None,
        notes: Notes | None = None,
        probes: Probes | None = None,
    ) -> None:
        self.options = options or WorkerOptions()
        self.statistics = Statistics()
        self.signs = Signs(self.options.using)
        self.timeouts = Timeouts(conf.get("TIMEOUT_GRACE"))
        self.event_loop = EventLoop()
        self.paused: frozenset[str] = frozenset()
        self.quiet = False
        self._informed = False  # of what is paused: by the first heartbeat, before the first claim
        self.row: WorkerRow | None = None
        self.notes = notes
        self.probes = probes
        #: Where the supervisor wants to have what is measured.
        self.snapshots: SnapshotFile | None = None
        self._started = False  # with all its parts
        self._stop = StopRequest()
        self._stores_lock = threading.Lock()

        self.store = self.open_store()
        self.guarantees: Guarantees = self.store.guarantees()
        self.retirement = Retirement(self, self.options.max_jobs, self.options.max_memory)
        if notes is not None:  # a supervisor replaces the process at once; alone, it is better than none
            self.retirement.reasons.append(self._held_by_strays)
        factories = middleware.load(conf.get("MIDDLEWARE"))
        self.runner = make_runner(notes, registry, self.signs, factories, self.timeouts, self.event_loop)
        self.completer = Completer(
            self.open_store, Recorder(self.statistics, self.options.using), self.signs.may_be_lost
        )
        named = frozenset(name for pool in self.options.pools for name in pool.queues if name != EVERY_QUEUE)
        self.pools = [_PoolParts(self, pool, named) for pool in self.options.pools]
        lease, interval = self.options.lease, self.options.heartbeat_interval
        self.reporter = Reporter(self, self._open_reporting_store, lease, interval)
        self.ticker = Ticker(self.options.using, self.look)
        self.keeper = Keeper(
            self.open_store, lease, lambda: self.reporter.healthy_for, self.look, self.ticker
        )
        self.listener = self._make_listener()

    def _make_listener(self) -> Listener | None:
        if self.store.vendor == "sqlite":
            return FileListener(self.open_store, self.hint, WATCH_INTERVAL)
        return NotifyListener(self._open_listening_store, self.hint) if self.options.notify else None

    def open_store(self, timeout: float | None = None) -> Store:
        """A store on a connection of its own, whose statements are counted."""
        return self._counted(
            own_store(
                self.options.using, timeout or self.options.statement_timeout, notify=self.options.notify
            )
        )

    def _open_listening_store(self) -> Store:
        alias = conf.get("LISTEN")
        if alias is None:
            return self.open_store()
        return self._counted(own_store(alias, self.options.statement_timeout, direct=True))

    def _counted(self, store: Store) -> Store:
        with self._stores_lock:
            self.statistics.stores.append(store)
        return store

    def _open_reporting_store(self) -> Store:
        # A heartbeat that hangs must be noticed well before the lease is over.
        return self.open_store(min(self.options.statement_timeout, max(1.0, self.options.lease / 3)))

    # -- what the parts ask ----------------------------------------------------------------------------------------

    @property
    def worker_id(self) -> int:
        """The id of this worker's row; a new one after it was taken for lost."""
        return self.signs.worker_id

    @property
    def trusts_claims(self) -> bool:
        """Whether the lease is known to hold."""
        return not self.signs.doubtful

    @property
    def may_claim(self) -> bool:
        """Whether the producers may claim now."""
        signs = self.signs
        return self._informed and not (
            self.quiet or self.retirement.reason or signs.doubtful or signs.stopping
        )

    @property
    def poll_interval(self) -> float:
        """Seconds between two looks at the queues without a wake-up."""
        if self.listener is not None and self.listener.healthy:
            return self.options.poll_interval * POLL_STRETCH
        return self.options.poll_interval

    @property
    def strays(self) -> int:
        """Attempts that were given up after their timeout and still hold a thread or a task of this process."""
        return self.timeouts.strays

    def _held_by_strays(self) -> str | None:
        """Why the process should be replaced, if attempts that were given up hold some of it."""
        strays = self.strays
        return (
            f"attempts that were given up after their timeout still hold {strays} of its threads or tasks"
            if strays
            else None
        )

    @property
    def leads(self) -> bool:
        """Whether it does the maintenance at present."""
        return self.keeper.leads

    def counts(self) -> tuple[int, int, int]:
        """Jobs running, completed, and failed attempts, for the heartbeat."""
        running = sum(len(parts.executors.running()) for parts in self.pools)
        return running, self.statistics.completed, self.statistics.failed

    def heard(self, heartbeat: Heartbeat) -> None:
        """Take in what the heartbeat brought."""
        before = (self._informed, self.signs.doubtful, self.paused, self.quiet)
        if self.signs.doubtful:
            logger.info("Worker %d has renewed its lease and goes on", self.worker_id)
            self.signs.doubtful = False
        self.cancel(heartbeat.cancelled)
        self.paused = heartbeat.paused
        self.quiet = heartbeat.worker.quiet_requested_at is not None
        self._informed = True
        if before != (True, False, self.paused, self.quiet):
            self.look()
        if heartbeat.worker.stop_requested_at is not None and not self._stop.made:
            logger.info("Worker %d was asked to stop", self.worker_id)
            if self.notes is not None:
                self.notes.was_asked()
            self.stop()
        self.retirement.consider()

    def reported(self, store: Store) -> None:
        """The heartbeat came through: write down what was counted since the last one."""
        self.statistics.tallies.flush(store)
        self.hand_over()

    def hand_over(self) -> None:
        """Hand what was measured to the supervisor, if it wants that."""
        if self.snapshots is not None:
            self.snapshots.write(self.snapshot())

    def snapshot(self) -> Snapshot:
        """What the worker has measured since its start, and how it is now."""
        statistics = self.statistics
        running, _, _ = self.counts()
        counters = {
            "statements": statistics.statements,
            "connects": statistics.connects,
            "timed_out": statistics.timed_out,
            "dropped": statistics.dropped,
        }
        gauges = {
            "running": running,
            "executors": sum(pool.size for pool in self.options.pools),
            "processes": 1,
            "memory_bytes": resident_memory(),
        }
        return (statistics.measures or Measures()).snapshot(counters, gauges)

    def cancel(self, job_ids: frozenset[int]) -> None:
        """These are the jobs of this worker that are to be cancelled while they run: let them know."""
        if job_ids != self.signs.cancelled:
            if not job_ids <= self.signs.cancelled:
                # Those that have not begun don't: given back, they are cancelled, and have spent no attempt.
                for parts in self.pools:
                    parts.producer.withdraw(lambda job: job.values[ID] in job_ids)
            self.signs.cancelled = job_ids
            self.signs.tell()

    def doubt(self) -> None:
        """The lease is over and could not be renewed: claim nothing, start nothing, tell the jobs."""
        if not self.signs.doubtful:
            logger.error(
                "Worker %d could not renew its lease in time. It starts no job until it can.", self.worker_id
            )
            self.signs.doubtful = True
            self._withdraw()

    def given_up(self, store: Store) -> None:
        """Others have taken this worker for lost, and rescue its jobs: go on under a new id."""
        before = self.worker_id
        self.signs.doubtful = True  # until there is a new id
        self._withdraw()
        self._register(store)
        logger.error(
            "Worker %d was taken for lost; its claims are gone. It goes on as %d.", before, self.worker_id
        )
        self.signs.doubtful = False
        self.signs.tell()
        self.look()

    def _register(self, store: Store) -> None:
        queues = [pool.name for pool in self.options.pools]
        size = sum(pool.size for pool in self.options.pools)
        began = time.monotonic()
        self.row = store.register_worker(
            socket.gethostname()[: limits.HOST_LENGTH],
            os.getpid(),
            encode(queues),
            size,
            django_jobs.__version__,
            self.options.lease,
        )
        if self.notes is not None:
            self.notes.register(self.row.id)  # before the first claim
        self.signs.worker_id = self.row.id
        self.reporter.renewed(began)
        if self.probes is not None:
            self.probes.tell(f"Worker {self.row.id} works on {', '.join(queues)}")

    # -- wake-ups --------------------------------------------------------------------------------------------------

    def look(self, queue_name: str | None = None) -> None:
        """There may be available jobs (in that queue)."""
        for parts in self.pools:
            parts.producer.look(queue_name)

    def _withdraw(self) -> None:
        """Let no executor begin what is buffered."""
        for parts in self.pools:
            parts.producer.withdraw()

    def hint(self, hint: str) -> None:
        """A wake-up, as the listener heard it."""
        if hint.startswith("+"):
            self.look(hint[1:])
        elif hint == "@":
            self.keeper.wake()
        elif hint == "~":
            self.keeper.look_at_schedules()
        elif hint.startswith("!"):
            if hint[1:] == str(self.worker_id):
                self.reporter.wake()
        else:
            self.look()
            self.keeper.wake()
            if any(parts.executors.running() for parts in self.pools):
                self.reporter.look()

    # -- life ------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ask the worker to stop in order. Returns at once; may be called in a signal handler, and twice."""
        self._stop.make()

    def stop_now(self) -> None:
        """Ask the worker to stop without waiting for the jobs that run."""
        self._stop.make(hurry=True)

    def retire(self) -> None:
        """Claim no more from now on, and stop when the jobs that are claimed have ended, however long they take."""
        if self.notes is not None:
            self.notes.retire()
        self._stop.poke()

    def run(self) -> int:
        """Work until stopped, drained or retired. Blocks. Returns the exit code: 0."""
        if self.probes is not None:
            self.probes.watch(self.problem, "Waiting for the database")
        try:
            if not self._register_patiently():
                self.store.close()
                return 0
            with self._parts_running():
                if self.options.drain:
                    self._wait_until_drained()
                else:
                    self._wait_until_stopped()
        finally:
            if self.probes is not None:
                self.probes.stop()
                self.probes.join(2)
        return 0

    def problem(self) -> str | None:
        """What is wrong with the process, so that it should be started anew; None: nothing. It asks no database."""
        if self.signs.stopping:
            return None
        producers = [parts.producer for parts in self.pools]
        for part in (self.reporter, self.completer, self.keeper, self.listener, *producers):
            if self._started and part is not None and not part.is_alive():
                return f"the {part.name} has died"
        return self.reporter.pulse.problem()

    def _wait_until_stopped(self) -> None:
        while not self._stop.wait(0.02 if self.retirement.reason else SIGNAL_SECONDS):
            self._recover()
            if self._has_retired():
                return

    def _recover(self) -> None:
        for parts in self.pools:
            parts.executors.recover()

    def _has_retired(self) -> bool:
        return self.retirement.reason is not None and self._is_idle()

    def _register_patiently(self) -> bool:
        """Register; while the database is away, try again until stopped."""
        failures = 0
        while not self._stop.made:
            self.reporter.pulse.beat()
            try:
                self._register(self.store)
                return True
            except (DatabaseError, OSError) as error:
                failures += 1
                if failures == 1 and self.options.drain:
                    raise
                logger.warning("The worker can't register (%d in a row): %s", failures, one_line(error))
                self._stop.wait(pause_after(failures))
        return False

    @contextmanager
    def _parts_running(self) -> Iterator[None]:
        try:
            self.completer.start()
            self.reporter.start()
            for parts in self.pools:
                parts.executors.start()
                parts.producer.start()
            if self.listener is not None:
                self.listener.start()
            self.keeper.start()
            self._started = True
            yield
        finally:
            self._shut_down()

    # -- draining --------------------------------------------------------------------------------------------------

    def _wait_until_drained(self) -> None:
        while not self._stop.wait(0.01):
            self._recover()
            if (
                self._has_retired()
                or self._has_fallen_quiet()
                or (self._at_rest() and self._nothing_due() and self._at_rest())
            ):
                return

    def _has_fallen_quiet(self) -> bool:
        """Whether it has ended what it had and was asked to take nothing more: it would wait for ever for the rest."""
        if not (self.quiet and self._is_idle()):
            return False
        logger.info("Worker %d was asked to be quiet, so its drain ends here", self.worker_id)
        return True

    def _is_idle(self) -> bool:
        return all(parts.executors.idle for parts in self.pools)

    def _at_rest(self) -> bool:
        return (
            all(parts.producer.found_nothing and parts.executors.idle for parts in self.pools)
            and self.completer.idle
            # Once more, since a job may have moved from one part to the next while we looked.
            and all(parts.producer.found_nothing and parts.executors.idle for parts in self.pools)
        )

    def _nothing_due(self) -> bool:
        """Promote and tick what is due, whoever leads, and look whether that, or anything, is for us."""
        self.ticker.synchronise(self.store)
        self.ticker.maintain(self.store)
        try:
            self.store.promote()
            waiting = [name for name in self.store.waiting_queues() if name not in self.paused]
            mine = [name for name in waiting if self._serves(name)]
        except (DatabaseError, OSError) as error:
            logger.warning("The worker can't look whether all is done: %s", one_line(error))
            self._stop.wait(1.0)
            return False
        for name in mine:
            self.look(name)
        return not mine

    def _serves(self, queue_name: str) -> bool:
        return any(queue_name in pool.queues or EVERY_QUEUE in pool.queues for pool in self.options.pools)

    # -- the end ---------------------------------------------------------------------------------------------------

    def _shut_down(self) -> None:
        """Stop claiming, give back what never started, wait for the jobs, store every outcome, hand back the rest."""
        deadline = time.monotonic() + self.options.shutdown_timeout
        self.signs.stopping = True
        if self.probes is not None:
            self.probes.stopping()
        self.store.session.timeout = min(self.store.session.timeout, FLUSH_SECONDS)
        for parts in self.pools:
            parts.executors.stop()
            parts.producer.stop()
        if self.listener is not None:
            self.listener.stop()
        self.keeper.stop()
        self._give_back_unstarted(FLUSH_SECONDS)
        self._wait_for_jobs(deadline)
        self.completer.stop(FLUSH_SECONDS)
        if not self.completer.join(FLUSH_SECONDS + 1):
            logger.error(
                "The last outcomes could not be stored within %.0f s; their jobs run again", FLUSH_SECONDS
            )
        self.keeper.join(2)
        self.reporter.stop()
        self.reporter.join(2)
        self._leave()
        self.timeouts.close()
        self.event_loop.close()

    def _give_back_unstarted(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for parts in self.pools:
            parts.producer.join(until(end))
            jobs: list[JobRow] = [*parts.buffer.take_back(), *parts.producer.returning]
            try:
                jobs += self._insistently(partial(parts.producer.unanswered, self.store, at_once=True), end)
                if jobs:
                    self._insistently(partial(self.store.release, jobs), end)
            except Exception as error:
                # They are still this worker's, and running; the last write hands them back with the rest.
                logger.warning("%d claimed jobs could not be given back: %s", len(jobs), one_line(error))

    def _insistently(self, write: Callable[[], T], end: float) -> T:
        """Do one of the last writes, again if need be: one lost connection should not cost a lease, or attempts."""
        failures = 0
        while True:
            try:
                return write()
            except (DatabaseError, OSError) as error:
                failures += 1
                if failures >= LAST_TRIES or not until(end):
                    raise
                logger.debug("One of the last writes is tried again: %s", one_line(error))
                time.sleep(min(pause_after(failures), until(end)))

    def _wait_for_jobs(self, deadline: float) -> None:
        running = sum(len(parts.executors.running()) for parts in self.pools)
        if running:
            logger.info("Waiting for %d running jobs, %.0f s at most", running, until(deadline))
        while not self._stop.hurried and time.monotonic() < deadline:
            if all(parts.executors.join(0.02) for parts in self.pools):
                return

    def _leave(self) -> None:
        """The very last write: what still runs keeps its spent attempt, and is made available."""
        end = time.monotonic() + FLUSH_SECONDS
        try:
            jobs = self._insistently(
                lambda: self.store.rescue(
                    limit=100_000,
                    spread=0.0,
                    worker_id=self.worker_id,
                    reason="The worker stopped before the job had ended.",
                    most_errors=conf.get("MAX_ERRORS"),
                ),
                end,
            )
            for job in jobs:
                logger.warning("Job %d %s did not end in time; it is %s now", job.id, job.name, job.state)
            record_ended(self.store, jobs)
            self.statistics.tallies.flush(self.store)
            self.hand_over()
            self._insistently(lambda: self.store.stop_worker(self.worker_id), end)
            if self.notes is not None:
                self.notes.leave(self.statistics.completed, self.statistics.failed, self.statistics.dead)
        except Exception as error:
            logger.error(
                "Worker %d can't say that it has stopped: %s. Its jobs run again after its lease.",
                self.worker_id,
                one_line(error),
            )
        self.store.close()
