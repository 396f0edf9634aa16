"""``manage.py index_tree``: the demo. One job for each file of a tree, worked here until none is left."""

import itertools
import logging
import os
import signal
import sys
import threading
import time
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import django
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, connections
from django.db.backends.signals import connection_created
from django.db.models import Count, Max, Min, QuerySet

from django_jobs.models import Job
from django_jobs.worker import Pool, Worker, WorkerOptions
from testproject.library.jobs import index_file
from testproject.library.models import Document
from testproject.library.progress import Progress

INTERRUPTED = 130  # what a shell reports for a program that Ctrl-C ended
NEXT_LINE = "\n       "
UNFINISHED = ("pending", "available", "scheduled", "running")


@dataclass(frozen=True, slots=True)
class Batch:
    """The jobs this run works on: those from ``first_id`` on."""

    first_id: int
    size: int

    def jobs(self) -> QuerySet[Job]:
        return jobs_of_the_demo().filter(id__gte=self.first_id)


@dataclass(frozen=True, slots=True)
class Outcome:
    seconds: float
    attempts: int
    worker_statements: int
    job_statements: int
    interrupted: bool
    guarantees: str


@contextmanager
def quiet_logger(quiet: bool) -> Iterator[None]:
    """Keep the worker's log off the terminal, if ``quiet``, while it lasts."""
    logger = logging.getLogger("django_jobs")
    before = logger.level
    if quiet:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


class Command(BaseCommand):
    help = (
        "Index the files of a tree, one background job each: enqueue, work until none is left, and report. "
        "Run it again after an interruption to finish what was left."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "path",
            nargs="?",
            type=Path,
            default=Path(django.__file__).parent,
            help="The folder to index. Default: the source of the installed Django.",
        )
        parser.add_argument("--threads", type=int, default=8, help="Jobs at the same time. Default: 8.")

    def handle(self, *args: Any, path: Path, threads: int, verbosity: int, **options: Any) -> None:
        if threads < 1:
            raise CommandError("--threads must be at least 1")
        # A failed job is part of the demo's report, not a line across its progress bar.
        with quiet_logger(verbosity < 2), warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # from the source that is indexed, not from this
            batch = self.left_over() or self.enqueue(path)
            outcome = self.work(batch, threads)
            left = batch.jobs().filter(state__in=UNFINISHED).count() if outcome.interrupted else 0
            if left:
                self.say(f"\nInterrupted: {left:,} jobs are left. Run the same command again to finish them.")
                raise SystemExit(INTERRUPTED)
            self.report(batch, outcome)

    def say(self, text: str = "") -> None:
        self.stdout.write(text)

    # Enqueue

    def left_over(self) -> Batch | None:
        left = jobs_of_the_demo().filter(state__in=UNFINISHED).aggregate(first_id=Min("id"), size=Count("id"))
        if not left["size"]:
            return None
        self.say(f"An earlier run left {left['size']:,} jobs unfinished: finishing those first.")
        return Batch(**left)

    def enqueue(self, path: Path) -> Batch:
        root = path.resolve()
        if not root.is_dir():
            raise CommandError(f"{path} is not a folder")
        files = list(files_below(root))
        if not files:
            raise CommandError(f"{path} holds no files")
        started = time.perf_counter()
        jobs = index_file.enqueue_many([(file,) for file in files])
        seconds = time.perf_counter() - started
        self.say(
            f"Enqueued {len(jobs):,} jobs, one for each file of {root}, in {seconds:.2f} s "
            f"({len(jobs) / seconds:,.0f}/s)."
        )
        return Batch(first_id=min(job.id for job in jobs), size=len(jobs))

    # Work

    def work(self, batch: Batch, threads: int) -> Outcome:
        worker = Worker(
            WorkerOptions(
                using="default", pools=[Pool(("files",), threads)], drain=True, shutdown_timeout=30.0
            )
        )
        progress = Progress(self.stdout, batch.size)
        statistics = worker.statistics
        started = time.perf_counter()
        with counted_statements() as job_statements, stopping_by_signal(worker) as interrupted:
            done = in_thread(worker.run)
            told = False
            while not futures.wait([done], timeout=0.1).done:
                progress.show(statistics.completed + statistics.failed)
                if interrupted.is_set() and not told:
                    told = True
                    progress.note("Stopping: running jobs are finished first (Ctrl-C again does not wait).")
            done.result()  # raises what the worker raised
        seconds = time.perf_counter() - started
        progress.close(statistics.completed + statistics.failed)
        return Outcome(
            seconds=seconds,
            attempts=statistics.completed + statistics.failed,
            worker_statements=statistics.statements,
            job_statements=job_statements(),
            interrupted=interrupted.is_set(),
            guarantees=worker.guarantees.describe(),
        )

    # Report

    def report(self, batch: Batch, outcome: Outcome) -> None:
        jobs = batch.jobs()
        states = dict(jobs.order_by().values_list("state").annotate(Count("id")))
        self.say("\nJobs by state")
        for state, count in sorted(states.items(), key=lambda item: -item[1]):
            self.say(f"  {state:<10} {count:>7,}")

        failures = (
            jobs.filter(state="failed")
            .order_by()
            .values("error_class")
            .annotate(count=Count("id"), example=Max("id"))
            .order_by("-count")
        )
        if failures:
            self.say("\nFailures by kind")
        for failure in failures:
            errors = Job.objects.get(pk=failure["example"]).errors
            self.say(f"  {failure['count']:>7,}  {failure['error_class']}, for example")
            self.say(f"           {errors[-1]['message'] if errors else ''}")

        attempts = max(outcome.attempts, 1)
        statements = outcome.worker_statements + outcome.job_statements
        self.say(
            f"\nSpeed: {outcome.attempts:,} jobs in {outcome.seconds:.2f} s, "
            f"{outcome.attempts / outcome.seconds:,.0f} jobs/s\n"
            f"SQL:   {outcome.worker_statements / attempts:.3f} statements per job by the worker, "
            f"{statements / attempts:.2f} with the jobs' own\n"
            f"Store: {outcome.guarantees.replace('; ', NEXT_LINE)}\n"
            f"Found: {Document.objects.count():,} documents"
        )
        self.say(f"\n{self.next_steps()}")

    def next_steps(self) -> str:
        python = command_line_python()
        steps = [
            "What to try next",
            "  see the jobs in the admin:",
            f"    {python} manage.py createsuperuser",
            f"    {python} manage.py runserver       then open http://127.0.0.1:8000/admin/",
            "  start a worker that keeps running:",
            f"    {python} manage.py runjobs",
        ]
        if connection.vendor == "sqlite":
            steps += [
                "  run the same on PostgreSQL:",
                "    DATABASE_URL=postgres://user:password@host/name make demo",
            ]
        return "\n".join(steps)


def jobs_of_the_demo() -> QuerySet[Job]:
    return Job.objects.filter(name=index_file.name)


def files_below(root: Path) -> Iterator[str]:
    """The files of a tree in a stable order, without compiled Python and Git's own."""
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(set(subfolders) - {"__pycache__", ".git"})
        for name in sorted(names):
            path = os.path.join(folder, name)  # noqa: PTH118  a Path for each file would only be thrown away
            if is_text(path):
                yield path


def is_text(path: str) -> bool:
    """Whether a path can be written as text: a name that is not UTF-8 on disk can't be a job's argument."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def in_thread(function: Callable[[], Any]) -> futures.Future[Any]:
    """Run a function in a thread of its own, so that this one can draw and take signals."""
    future: futures.Future[Any] = futures.Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as exc:  # noqa: BLE001  handed to whoever asks for the result
            future.set_exception(exc)
        finally:
            connections.close_all()

    threading.Thread(target=run, name="index-tree-worker", daemon=True).start()
    return future


@contextmanager
def stopping_by_signal(worker: Worker) -> Iterator[threading.Event]:
    """Ctrl-C or SIGTERM stops the worker in order; the second one does not wait for running jobs."""
    interrupted = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if interrupted.is_set():
            worker.stop_now()
        else:
            interrupted.set()
            worker.stop()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def counted_statements() -> Iterator[Callable[[], int]]:
    """Count the statements that jobs send, on every connection Django opens meanwhile in any thread."""
    counter = itertools.count()
    count = 0

    def wrapper(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        next(counter)
        return execute(sql, params, many, context)

    def install(connection: Any, **kwargs: Any) -> None:  # noqa: ARG001
        connection.execute_wrappers.append(wrapper)

    connection_created.connect(install, weak=False)
    try:
        yield lambda: count
    finally:
        connection_created.disconnect(install)
        count = next(counter)


def command_line_python() -> str:
    """How to call this Python from here, as short as it can be written."""
    executable = Path(sys.executable)
    here = Path.cwd()
    return str(executable.relative_to(here)) if executable.is_relative_to(here) else sys.executable
