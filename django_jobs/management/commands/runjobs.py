"""``manage.py runjobs``: the worker."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from types import FrameType
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import autoreload

from django_jobs.databases import jobs_database
from django_jobs.worker import Worker, WorkerOptions, parse_pools, pools_from_settings
from django_jobs.worker.lifeline import watch_parent
from django_jobs.worker.reloading import supervise

LEVELS = {0: logging.WARNING, 1: logging.INFO, 2: logging.INFO, 3: logging.DEBUG}


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number of seconds, 0 or more")
    return value


def _positive_seconds(text: str) -> float:
    value = _seconds(text)
    if value == 0:
        raise ArgumentTypeError("it must be more than 0 seconds")
    return value


def _size(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 10_000):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1 to 10000")
    return int(text)


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
            "--concurrency", type=_size, metavar="N", help="executors of a queue whose size is not given"
        )
        parser.add_argument("--database", metavar="ALIAS", help="the database that holds the jobs")
        parser.add_argument("--drain", action="store_true", help="stop when nothing is due; exit code 0")
        parser.add_argument(
            "--fail", action="store_true", help="with --drain: exit code 1 if an attempt of a job failed"
        )
        parser.add_argument(
            "--shutdown-timeout", type=_seconds, metavar="S", help="how long a stop waits for running jobs"
        )
        parser.add_argument(
            "--poll-interval", type=_positive_seconds, metavar="S", help="how often to look for work unasked"
        )
        parser.add_argument(
            "--no-notify", action="store_true", help="PostgreSQL: don't LISTEN or NOTIFY; poll (for poolers)"
        )
        parser.add_argument(
            "--reload", action="store_true", help="for development: start again when the code changes"
        )

    def handle(self, **options: Any) -> None:
        """Run the worker in this process, or, with --reload, in a child that is replaced when code changes."""
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
        """Make the worker, run it, and return the exit code."""
        self.set_up_logging(options["verbosity"])
        try:
            worker = Worker(self.worker_options(options))
        except (ValueError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        self.introduce(worker)
        watch_parent(worker.stop)
        with signals(worker, self.say):
            try:
                worker.run()
            except DatabaseError as error:
                raise CommandError(
                    f"The database refused: {error}\nIf its tables are missing, run manage.py migrate."
                ) from error
        statistics = worker.statistics
        if options["verbosity"] >= 1:
            self.say(
                f"Stopped. {statistics.completed} completed, {statistics.failed} failed attempts "
                f"({statistics.dead} for good)."
            )
        return 1 if options["fail"] and statistics.failed else 0

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
            **{key: value for key, value in given.items() if value is not None},
        )

    def introduce(self, worker: Worker) -> None:
        """Say what the worker works on, and what this database guarantees."""
        pools = ", ".join(
            f"{'all queues' if pool.name == '*' and len(worker.options.pools) == 1 else pool.name} ({pool.size})"
            for pool in worker.options.pools
        )
        self.say(f"Working on {pools} in database {worker.options.using!r}, process {os.getpid()}.")
        self.say(worker.guarantees.describe())
        if not worker.options.drain:
            self.say("Stop with Ctrl-C or SIGTERM; a second one does not wait for running jobs.")

    def say(self, line: str) -> None:
        """One line, at once."""
        self.stdout.write(line)
        self.stdout.flush()

    def set_up_logging(self, verbosity: int) -> None:
        """Let the worker be heard where the site's LOGGING says nothing of it: on stderr, by verbosity."""
        logger = logging.getLogger("django_jobs")
        if logger.handlers or logger.level != logging.NOTSET:
            return
        if not logging.getLogger().handlers:
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
            logger.addHandler(handler)
        logger.setLevel(LEVELS.get(verbosity, logging.INFO))


class signals:  # noqa: N801 - used as a function
    """While it lasts, SIGTERM and SIGINT stop the worker; a second one stops it without waiting."""

    def __init__(self, worker: Worker, say: Callable[[str], None]) -> None:
        self.worker = worker
        self.say = say
        self.count = 0
        self.before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self.before[number] = signal.signal(number, self.handle)

    def __exit__(self, *exception: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Stop in order; the second time, at once."""
        self.count += 1
        if self.count == 1:
            self.worker.stop()
        else:
            self.worker.stop_now()
