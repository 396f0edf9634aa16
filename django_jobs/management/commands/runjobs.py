"""``manage.py runjobs``: the worker."""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import signal
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Iterator
from types import FrameType
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.db import DatabaseError, connections
from django.utils import autoreload

from django_jobs.databases import jobs_database
from django_jobs.management import probing
from django_jobs.management.numbers import positive_seconds, seconds, whole
from django_jobs.management.probing import Outlets
from django_jobs.store import Guarantees, Store, own_store
from django_jobs.worker import Worker, WorkerOptions, parse_pools, pools_from_settings
from django_jobs.worker.handback import HandBack
from django_jobs.worker.lifeline import watch_parent
from django_jobs.worker.measures import Measures
from django_jobs.worker.probes import Probes
from django_jobs.worker.reloading import supervise
from django_jobs.worker.shared_notes import Notes
from django_jobs.worker.snapshots import SnapshotFile, SnapshotFolder
from django_jobs.worker.supervisor import HAND_BACK_SECONDS, Supervisor

# Beyond what a child's parts may take for a round: so long it may take to start.
SILENCE_SECONDS = 120.0

# What the garbage collector of the interpreters lets come together of new objects before it looks at them, if nobody
# says otherwise; and what it lets in a worker: twice what all jobs are that it has claimed and not stored yet.
USUAL_THRESHOLDS = (700, 2000)
NEW_OBJECTS = 10_000

LEVELS = {0: logging.WARNING, 1: logging.INFO, 2: logging.INFO, 3: logging.DEBUG}


class Command(BaseCommand):
    """Run jobs until told to stop."""

    help = "Run jobs from the database until told to stop (SIGTERM, SIGINT), or with --drain until nothing is due."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The options; those not given come from DJANGO_JOBS."""
        parser.add_argument(
            "--queues",
            metavar="NAME[:SIZE],...",
            help="the queues to work on, each with its own executors: default:10,mail:2; '*' for all others "
            "(default: DJANGO_JOBS['QUEUES'], else all)",
        )
        parser.add_argument(
            "--concurrency",
            type=whole(10_000),
            metavar="N",
            help="executors of a queue whose size is not given",
        )
        parser.add_argument(
            "--processes",
            type=whole(1000),
            metavar="N",
            help="work in N processes, each with all the executors, under one that replaces those that end",
        )
        parser.add_argument(
            "--max-jobs",
            type=whole(10**9),
            metavar="N",
            help="end a process after N jobs, in order; with --processes, another one takes its place",
        )
        parser.add_argument(
            "--max-memory",
            type=whole(10**9),
            metavar="MB",
            help="the same when it holds more memory than that",
        )
        parser.add_argument("--database", metavar="ALIAS", help="the database that holds the jobs")
        parser.add_argument("--drain", action="store_true", help="stop when nothing is due; exit code 0")
        parser.add_argument(
            "--fail", action="store_true", help="with --drain: exit code 1 if an attempt of a job failed"
        )
        parser.add_argument(
            "--shutdown-timeout", type=seconds, metavar="S", help="how long a stop waits for running jobs"
        )
        parser.add_argument(
            "--poll-interval", type=positive_seconds, metavar="S", help="how often to look for work unasked"
        )
        parser.add_argument(
            "--no-notify", action="store_true", help="PostgreSQL: don't LISTEN or NOTIFY; poll (for poolers)"
        )
        probing.add_arguments(parser)
        parser.add_argument(
            "--reload", action="store_true", help="for development: start again when the code changes"
        )

    def handle(self, **options: Any) -> None:
        """Run the worker in this process, or in children: with --reload, one that is replaced when the code changes;
        with --processes, several that are replaced when they end."""
        if options["fail"] and not options["drain"]:
            raise CommandError("--fail goes with --drain: without it the worker does not end by itself.")
        if options["reload"]:
            if options["drain"]:
                raise CommandError("--reload and --drain exclude each other.")
            autoreload.run_with_reloader(supervise, [*sys.argv])
            return
        code = self.work(options)
        if code:
            sys.exit(code)

    def work(self, options: dict[str, Any]) -> int:
        """Make the worker, or the supervisor of several, run it, and return the exit code."""
        self.verbosity = options["verbosity"]
        self.set_up_logging(self.verbosity)
        notes = Notes.inherited()
        try:
            worker_options = self.worker_options(options)
            if notes is None:
                with Outlets(options, worker_options.heartbeat_interval) as outlets:
                    if options["processes"]:
                        return self.supervise(worker_options, options["processes"], outlets)
                    return self.run(Worker(worker_options, probes=outlets.probes), options, outlets)
            return self.run(self.child(worker_options, notes), options)
        except (ValueError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error

    def child(self, options: WorkerOptions, notes: Notes) -> Worker:
        """The worker in a process that has a supervisor, which speaks for it."""
        probes = Probes(options.heartbeat_interval, on_well=notes.beat) if notes.probed else None
        worker = Worker(options, notes, probes)
        worker.snapshots = SnapshotFile.inherited()
        if worker.snapshots is not None:
            worker.statistics.measures = Measures()
        return worker

    def run(self, worker: Worker, options: dict[str, Any], outlets: Outlets | None = None) -> int:
        """Run a worker, and return the exit code."""
        notes = worker.notes
        # The signals first: who reads that the worker works may stop it at once.
        with signals(worker, twice=notes is None):
            if notes is None:
                self.introduce(worker.options, worker.guarantees, f"process {os.getpid()}")
            if outlets is not None:
                if outlets.has_metrics:
                    worker.statistics.measures = Measures()
                outlets.open(worker.snapshot, self.say)
            watch_parent(worker.stop, worker.stop_now)
            try:
                with settled_memory():
                    worker.run()
            except DatabaseError as error:
                raise CommandError(
                    f"The database refused: {error}\nIf its tables are missing, run manage.py migrate."
                ) from error
        statistics = worker.statistics
        if self.verbosity >= 1:
            self.say_goodbye(
                "Stopped" if notes is None else f"Process {os.getpid()} stopped",
                statistics.completed,
                statistics.failed,
                statistics.dead,
            )
        return 1 if options["fail"] and statistics.failed else 0

    def supervise(self, options: WorkerOptions, processes: int, outlets: Outlets) -> int:
        """Keep that many workers at work, each in a process of its own, and return the exit code."""
        if os.name != "posix":
            raise CommandError("--processes needs a POSIX system. Start runjobs several times instead.")
        store = own_store(options.using, notify=options.notify)
        guarantees = store.guarantees()
        connections.close_all()

        def open_store() -> Store:
            return own_store(options.using, min(options.statement_timeout, HAND_BACK_SECONDS), options.notify)

        folder = SnapshotFolder() if outlets.has_metrics else None
        if folder is not None:
            outlets.callback(folder.close)
        supervisor = Supervisor(
            autoreload.get_child_arguments(),
            processes,
            sum(pool.size for pool in options.pools),
            HandBack(open_store, options.lease, options.using),
            drain=options.drain,
            shutdown_timeout=options.shutdown_timeout,
            probes=outlets.probes,
            silence=3 * options.heartbeat_interval + 2 * options.lease + SILENCE_SECONDS,
            environment=None if folder is None else folder.environment(),
            on_ended=None if folder is None else folder.take_in,
        )
        with signals(supervisor):
            self.introduce(options, guarantees, f"{processes} processes under process {os.getpid()}")
            outlets.open(
                None if folder is None else lambda: folder.collect(lambda: supervisor.pids), self.say
            )
            watch_parent(supervisor.stop, supervisor.stop_now)
            code = supervisor.run()
        if self.verbosity >= 1:
            self.say_goodbye("Stopped", supervisor.completed, supervisor.failed, supervisor.dead)
        return code

    def say_goodbye(self, how: str, completed: int, failed: int, dead: int) -> None:
        """Say what was done."""
        self.say(f"{how}. {completed} completed, {failed} failed attempts ({dead} for good).")

    def worker_options(self, options: dict[str, Any]) -> WorkerOptions:
        """The worker's options, of the command line and the settings. Raises ValueError, ImproperlyConfigured."""
        concurrency = options["concurrency"]
        pools = (
            parse_pools(options["queues"], concurrency)
            if options["queues"]
            else pools_from_settings(concurrency)
        )
        given = {
            "shutdown_timeout": options["shutdown_timeout"],
            "poll_interval": options["poll_interval"],
            "notify": False if options["no_notify"] else None,
        }
        return WorkerOptions(
            using=jobs_database(options["database"]),
            pools=pools,
            drain=options["drain"],
            max_jobs=options["max_jobs"],
            max_memory=options["max_memory"],
            **{key: value for key, value in given.items() if value is not None},
        )

    def introduce(self, options: WorkerOptions, guarantees: Guarantees, who: str) -> None:
        """Say what the worker works on, and what this database guarantees."""
        pools = ", ".join(
            f"{'all queues' if pool.name == '*' and len(options.pools) == 1 else pool.name} ({pool.size})"
            for pool in options.pools
        )
        self.say(f"Working on {pools} in database {options.using!r}, {who}.")
        self.say(guarantees.describe())
        if not options.drain:
            self.say("Stop with Ctrl-C or SIGTERM; a second one does not wait for running jobs.")

    def say(self, line: str) -> None:
        """One line, at once; to nobody, where who read it is gone, or a job has closed the stream."""
        try:
            try:
                self.stdout.write(line)
            except UnicodeEncodeError:  # a queue's name, in letters that the locale has not
                self.stdout.write(line.encode("ascii", "backslashreplace").decode())
            self.stdout.flush()
        except (OSError, ValueError):
            # Python would flush it once more as it ends, and say by its exit code that it could not.
            self.stdout = OutputWrapper(io.StringIO())
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def set_up_logging(self, verbosity: int) -> None:
        """Let the worker be heard where the site's LOGGING says nothing of it: on stderr, by verbosity."""
        logger = logging.getLogger("django_jobs")
        if logger.handlers or logger.level != logging.NOTSET:
            return
        if not logging.getLogger().handlers:
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s [%(process)d] %(message)s"))
            logger.addHandler(handler)
        logger.setLevel(LEVELS.get(verbosity, logging.INFO))


@contextlib.contextmanager
def settled_memory() -> Iterator[None]:
    """While it lasts, the garbage collector leaves alone what was there before: the site's modules and models.

    Those live as long as the process, and are many; jobs come and go by the thousand, and each full collection would
    look at all that is there: a sixth of a worker's time when jobs are short. It also looks less often at what is new,
    unless the site has said how often: the jobs of one claim are more objects than the interpreter lets come together
    before it looks, and all are still needed then.
    """
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    if thresholds[0] in USUAL_THRESHOLDS:
        gc.set_threshold(NEW_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


class signals:  # noqa: N801 - used as a function
    """While it lasts, SIGTERM and SIGINT stop the worker; a second one stops it without waiting.

    :param twice: whether a second signal means that. Not in a supervisor's child: where the whole group is signalled,
        it gets each signal from the sender and from its supervisor, which passes on by the lifeline what a second one
        means.
    """

    def __init__(self, worker: Worker | Supervisor, twice: bool = True) -> None:
        self.worker = worker
        self.twice = twice
        self.count = 0
        self.before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self.before[number] = signal.signal(number, self.handle)

    def __exit__(self, *exception: object) -> None:
        for number, handler in self.before.items():
            # After a signal the process is about to end, in order, and another one must not end it otherwise; nor when
            # Python, as it ends, gives up all handlers, and leaves alone what is ignored.
            signal.signal(number, signal.SIG_IGN if self.count else handler)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Stop in order; the second time, at once."""
        self.count += 1
        if self.count == 1 or not self.twice:
            self.worker.stop()
        else:
            self.worker.stop_now()
