"""The worker: its parts, put together, started, and stopped in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error as DatabaseError

from django_jobs import conf
from django_jobs.job_registry import registry
from django_jobs.store import Guarantees, Store
from django_jobs.store.answers import Heartbeat
from django_jobs.store.rows import ID, WorkerRow
from django_jobs.store.sqlite_session import WATCH_INTERVAL
from django_jobs.worker import middleware
from django_jobs.worker.completer import Completer
from django_jobs.worker.draining import Drain
from django_jobs.worker.event_loop import EventLoop
from django_jobs.worker.heartbeat import Reporter
from django_jobs.worker.insisting import insistently
from django_jobs.worker.keeper import Keeper
from django_jobs.worker.listener import FileListener, Listener, NotifyListener
from django_jobs.worker.logs import guard_logs
from django_jobs.worker.lost_answers import Epoch
from django_jobs.worker.measures import Snapshot
from django_jobs.worker.options import WorkerOptions
from django_jobs.worker.parts import StopRequest, one_line, pause_after
from django_jobs.worker.pools import Pools
from django_jobs.worker.probes import Probes
from django_jobs.worker.recorder import Recorder
from django_jobs.worker.recycling import Retirement, resident_memory
from django_jobs.worker.registration import end_claims, register
from django_jobs.worker.shared_notes import Notes, make_runner
from django_jobs.worker.signs import Signs
from django_jobs.worker.snapshots import SnapshotFile
from django_jobs.worker.statistics import Statistics
from django_jobs.worker.stores import Stores
from django_jobs.worker.ticker import Ticker
from django_jobs.worker.timeouts import Timeouts

logger = logging.getLogger("django_jobs.worker")

# With wake-ups that work, polling is a safety net only, and this many times slower.
POLL_STRETCH = 10
# The system may run a signal's handler in any thread (one that just starts takes what is pending), and then the main
# thread, which alone runs Python's handlers, sleeps on. So it looks up this often.
SIGNAL_SECONDS = 0.5
# And this often whether a drain, or a retirement, is over.
DRAIN_SECONDS = 0.01
RETIRING_SECONDS = 0.02
# How long the last writes of a stop may take, after the jobs have had their time.
FLUSH_SECONDS = 10.0


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
        self.epoch = Epoch(self.options.statement_timeout)
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

        self.stores = Stores(self.options, self.statistics)
        self.store = self.stores.open()
        self.guarantees: Guarantees = self.store.guarantees()
        self.retirement = Retirement(self, self.options.max_jobs, self.options.max_memory)
        if notes is not None:  # a supervisor replaces the process at once; alone, it is better than none
            self.retirement.reasons.append(self._held_by_strays)
        factories = middleware.load(conf.get("MIDDLEWARE"))
        self.runner = make_runner(notes, registry, self.signs, factories, self.timeouts, self.event_loop)
        self.completer = Completer(
            self.stores.open, Recorder(self.statistics, self.options.using), self.signs.may_be_lost
        )
        self.pools = Pools(self, self.options.pools)
        lease, interval = self.options.lease, self.options.heartbeat_interval
        self.reporter = Reporter(self, self.stores.open_to_report, lease, interval)
        self.ticker = Ticker(self.options.using, self.look)
        self.keeper = Keeper(
            self.stores.open,
            lease,
            lambda: self.reporter.healthy_for,
            self.look,
            self.ticker,
            lambda: self.worker_id,
            self.options.using,
        )
        self.listener = self._make_listener()
        self._drain = Drain(self, self._stop)

    def _make_listener(self) -> Listener | None:
        if self.store.vendor == "sqlite":
            return FileListener(self.stores.open, self.hint, WATCH_INTERVAL)
        return NotifyListener(self.stores.open_to_listen, self.hint) if self.options.notify else None

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
        return self.pools.running(), self.statistics.completed, self.statistics.failed

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
        gauges = {
            "running": self.pools.running(),
            "executors": sum(pool.size for pool in self.options.pools),
            "processes": 1,
            "memory_bytes": resident_memory(),
        }
        return self.statistics.snapshot(gauges)

    def cancel(self, job_ids: frozenset[int]) -> None:
        """These are the jobs of this worker that are to be cancelled while they run: let them know."""
        if job_ids != self.signs.cancelled:
            if not job_ids <= self.signs.cancelled:
                # Those that have not begun don't: given back, they are cancelled, and have spent no attempt.
                self.pools.withdraw(lambda job: job.values[ID] in job_ids)
            self.signs.cancelled = job_ids
            self.signs.tell()

    def doubt(self) -> None:
        """The lease is over and could not be renewed: claim nothing, start nothing, tell the jobs."""
        if not self.signs.doubtful:
            logger.error(
                "Worker %d could not renew its lease in time. It starts no job until it can.", self.worker_id
            )
            self.signs.doubtful = True
            self.pools.withdraw()

    def given_up(self, store: Store) -> None:
        """Others have taken this worker for lost, and rescue its jobs: go on under a new id."""
        before = self.worker_id
        self.signs.doubtful = True  # until there is a new id
        self.pools.withdraw()
        self._register(store)
        logger.error(
            "Worker %d was taken for lost; its claims are gone. It goes on as %d.", before, self.worker_id
        )
        self.signs.doubtful = False
        self.signs.tell()
        self.look()

    def _register(self, store: Store) -> None:
        began = time.monotonic()
        self.row = register(store, self.options)
        if self.notes is not None:
            self.notes.register(self.row.id)  # before the first claim
        self.signs.worker_id = self.row.id
        self.reporter.renewed(began)
        if self.probes is not None:
            self.probes.tell(
                f"Worker {self.row.id} works on {', '.join(pool.name for pool in self.options.pools)}"
            )

    # -- wake-ups --------------------------------------------------------------------------------------------------

    def look(self, queue_name: str | None = None) -> None:
        """There may be available jobs (in that queue)."""
        self.pools.look(queue_name)

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
            if self.pools.running():
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
        guard_logs()
        if self.probes is not None:
            self.probes.watch(self.problem, "Waiting for the database")
        try:
            if not self._register_patiently():
                self.store.close()
                return 0
            with self._parts_running():
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
        """Wait for the request to stop, and, where they may come, for the end of a drain or of a retirement."""
        while not self._stop.wait(self._between_looks()):
            self.pools.recover()
            if self.retirement.reason is not None and self.pools.idle:
                return
            if self.options.drain and self._drain.is_over():
                return

    def _between_looks(self) -> float:
        if self.options.drain:
            return DRAIN_SECONDS
        return RETIRING_SECONDS if self.retirement.reason else SIGNAL_SECONDS

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
            self.pools.start()
            if self.listener is not None:
                self.listener.start()
            self.keeper.start()
            self._started = True
            yield
        finally:
            self._shut_down()

    # -- the end ---------------------------------------------------------------------------------------------------

    def _shut_down(self) -> None:
        """Stop claiming, give back what never started, wait for the jobs, store every outcome, hand back the rest."""
        deadline = time.monotonic() + self.options.shutdown_timeout
        self.signs.stopping = True
        if self.probes is not None:
            self.probes.stopping()
        self.store.session.timeout = min(self.store.session.timeout, FLUSH_SECONDS)
        self.pools.stop()
        if self.listener is not None:
            self.listener.stop()
        self.keeper.stop()
        self.pools.give_back_unstarted(self.store, FLUSH_SECONDS)
        self.pools.wait_for_jobs(deadline, lambda: self._stop.hurried)
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

    def _leave(self) -> None:
        """The very last write: what still runs keeps its spent attempt, and is made available."""
        end = time.monotonic() + FLUSH_SECONDS
        if self.notes is not None:
            self.notes.count(self.statistics.completed, self.statistics.failed, self.statistics.dead)
        try:
            insistently(lambda: end_claims(self.store, self.worker_id, self.options.using), end)
            self.statistics.tallies.flush(self.store)
            self.hand_over()
            insistently(lambda: self.store.stop_worker(self.worker_id), end)
            if self.notes is not None:
                self.notes.leave()
        except Exception as error:
            logger.error(
                "Worker %d can't say that it has stopped: %s. Its jobs run again after its lease.",
                self.worker_id,
                one_line(error),
            )
        self.store.close()
