"""How soon a job starts after its commit, and what a worker uses while it waits."""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.apps import COUNT_STATEMENTS
from benchmarks.core.commands import Benchmark, say, site
from benchmarks.core.databases import Database
from benchmarks.core.meters import Meter
from benchmarks.core.output import Column, Row, percentile
from benchmarks.core.tracing import counted, counted_between
from benchmarks.core.workers import run_workers

START_SECONDS = 30


class Latency(Benchmark):
    """How soon a job starts, in milliseconds from just before the COMMIT that makes it exist to its first line.

    The worker is idle; jobs come one at a time, at random moments. "Other process" is `manage.py runjobs`; in the
    "same process" a worker runs in a thread beside the one that enqueues. And what an idle worker uses: CPU in percent
    of a core, statements per minute (on SQLite nearly all of them look whether the file has changed), counted there in
    a run of its own.
    """

    name = "latency"
    columns: ClassVar = (
        Column("database", "database"),
        Column("worker", "worker in"),
        Column("jobs", "jobs"),
        Column("p50_ms", "p50 ms", ".2f"),
        Column("p95_ms", "p95 ms", ".2f"),
        Column("p99_ms", "p99 ms", ".2f"),
        Column("longest_ms", "longest ms", ".2f"),
        Column("idle_cpu", "idle CPU", ".2%"),
        Column("idle_statements", "idle statements/min"),
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--jobs", type=int, default=500, help="default: 500")
        parser.add_argument(
            "--pause", type=float, default=50.0, metavar="MS", help="between jobs, on average; default: 50"
        )
        parser.add_argument(
            "--idle", type=float, default=60.0, metavar="SECONDS", help="how long to watch; default: 60"
        )

    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        with site(database) as meter:
            with run_workers(database.url, meter, database.folder) as workers:
                workers.wait_until_started()
                other = {"worker": "other process", **latencies(options.jobs, options.pause / 1000)}
                workers.begin_again()
                began, before = time.time(), meter.counters()
                time.sleep(options.idle)
                other["idle_cpu"] = workers.cpu() / (time.time() - began)
                after = meter.counters()
                if after.statements is not None and before.statements is not None:
                    other["idle_statements"] = per_minute(after.statements - before.statements, options.idle)
                workers.stop()
            if database.vendor == "sqlite":
                other["idle_statements"] = idle_on_sqlite(database, meter, options.idle)
            with worker_in_a_thread():
                same = {"worker": "same process", **latencies(options.jobs, options.pause / 1000)}
        for row in (other, same):
            say(f"{database.vendor}, {row['worker']}: p50 {row['p50_ms']:.2f} ms, p99 {row['p99_ms']:.2f} ms")
        return [other, same]


def latencies(jobs: int, pause: float) -> Row:
    """Enqueue jobs one at a time, and see when each starts."""
    from django.db import transaction

    from benchmarks.jobs import tell_start

    waits = []
    with starts() as (address, listener):
        for _ in range(jobs):
            time.sleep(random.uniform(0.2, 1.8) * pause)
            with transaction.atomic():
                tell_start.enqueue(address)
                committed = time.time()
            waits.append(1000 * (float(listener.recv(100)) - committed))
    return {
        "jobs": jobs,
        "p50_ms": percentile(waits, 0.5),
        "p95_ms": percentile(waits, 0.95),
        "p99_ms": percentile(waits, 0.99),
        "longest_ms": max(waits),
    }


@contextlib.contextmanager
def starts() -> Iterator[tuple[str, socket.socket]]:
    """The address to which jobs tell their start, and the socket that hears it."""
    import tempfile

    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener,
    ):
        address = f"{folder}/starts"
        listener.bind(address)
        listener.settimeout(START_SECONDS)
        yield address, listener


@contextlib.contextmanager
def worker_in_a_thread() -> Iterator[Any]:
    """A worker in this process, as in tests and small sites."""
    from django_jobs.worker import Worker, WorkerOptions

    worker = Worker(WorkerOptions())
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(60)


def idle_on_sqlite(database: Database, meter: Meter, seconds: float) -> float:
    """Statements per minute of an idle worker."""
    folder = Path(database.folder) / "statements"
    folder.mkdir()
    with run_workers(
        database.url, meter, database.folder, environment={COUNT_STATEMENTS: str(folder)}
    ) as workers:
        workers.wait_until_started()
        time.sleep(1)
        began = time.time()
        time.sleep(seconds + 2)
        ended = time.time()
        workers.stop()
    counts = counted(folder)
    shutil.rmtree(folder)
    return per_minute(counted_between(counts, began, ended), int(ended) - int(began) - 1)


def per_minute(count: int, seconds: float) -> float:
    """That many in so many seconds, in a minute."""
    return 60 * count / seconds


BENCHMARK = Latency()
