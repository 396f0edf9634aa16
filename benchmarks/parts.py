"""Where a job's microseconds go: each part of the worker by itself, one after another."""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from benchmarks.core.commands import Benchmark, say, site
from benchmarks.core.databases import Database
from benchmarks.core.meters import Meter
from benchmarks.core.output import Column, Row
from benchmarks.core.processes import cpu_of

INSERTED_AT_ONCE = 5000
CLAIMED_AT_ONCE = 1000
FINISHED_AT_ONCE = 2000


class Parts(Benchmark):
    """What each part of the worker costs by itself, in microseconds per job that does nothing.

    The same code as in a worker, called one part after another by one thread, so that no part waits for another, and
    none fights with another for the interpreter: CLAIM by thousands, into rows; what an executor does with each job;
    what the completer does with 2,000 outcomes beside the statement; FINISH. "All at once" is the worker itself, in a
    process that has nothing else to do, and what its threads cost each other is the difference to the sum. Wall is how
    long it took, client and server are CPU. Shown are medians of the rounds.
    """

    name = "parts"
    columns: ClassVar = (
        Column("database", "database"),
        Column("part", "part"),
        Column("wall_us", "wall µs/job", ".2f"),
        Column("client_us", "client CPU µs/job", ".2f"),
        Column("server_us", "server CPU µs/job", ".2f"),
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--jobs", type=int, default=100_000, help="default: 100000")
        parser.add_argument("--rounds", type=int, default=5, help="default: 5")

    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        with site(database) as meter:
            rounds = [dict(one_round(meter, options.jobs)) for _ in range(options.rounds)]
        rows: list[Row] = [
            {"part": part, **{key: statistics.median(each[part][key] for each in rounds) for key in measured}}
            for part, measured in rounds[0].items()
        ]
        total = {key: sum(row[key] for row in rows[:-1]) for key in rows[0] if key != "part"}
        rows.insert(-1, {"part": "sum", **total})
        say(
            f"{database.vendor}: {total['wall_us']:.1f} µs/job in parts, {rows[-1]['wall_us']:.1f} all at once"
        )
        return rows


class Stopwatch:
    """What a part takes, for each of so many jobs."""

    def __init__(self, meter: Meter, jobs: int) -> None:
        self.server: int | None = getattr(meter, "server", None)
        self.jobs = jobs

    def __call__(self, part: Callable[[], object]) -> dict[str, float]:
        gc.collect()
        served = self.served()
        cpu, began = time.process_time(), time.perf_counter()
        part()
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        found = {"wall_us": 1e6 * wall / self.jobs, "client_us": 1e6 * cpu / self.jobs}
        if self.server is not None:
            found["server_us"] = 1e6 * (self.served() - served) / self.jobs
        return found

    def served(self) -> float:
        """CPU seconds of the database's processes."""
        return 0.0 if self.server is None else cpu_of(self.server, descendants=True)


def one_round(meter: Meter, jobs: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Each part once."""
    from django_jobs.store import own_store
    from django_jobs.worker.attempted import Attempted
    from django_jobs.worker.buffer import Buffer
    from django_jobs.worker.completer import Completer
    from django_jobs.worker.executor import Executors
    from django_jobs.worker.finishing import finish, reconcile
    from django_jobs.worker.recorder import Recorder
    from django_jobs.worker.statistics import Statistics

    stopwatch = Stopwatch(meter, jobs)
    insert(meter, jobs)
    store = own_store("default")
    worker = store.register_worker("benchmarks", os.getpid(), "[]", 1, "", 3600.0)
    claimed: list[Any] = []

    def claim() -> None:
        while rows := store.claim(worker.id, "default", CLAIMED_AT_ONCE):
            claimed.extend(rows)

    yield "claim", stopwatch(claim)

    buffer, over, done = Buffer(), [], threading.Event()
    buffer.put(claimed)

    def emit(attempted: Attempted) -> None:
        over.append(attempted)
        if len(over) == jobs:
            done.set()

    executors = Executors(buffer, make_runner(), emit, 1)

    def execute() -> None:
        executors.start()
        done.wait()

    yield "execute", stopwatch(execute)
    executors.stop()
    executors.join()

    completer = Completer(lambda: store, recorder := Recorder(Statistics()))
    completer._wanted = 0  # no writer waits to be woken
    completer._second_told = True
    batches: list[list[Attempted]] = []

    def collect() -> None:
        for first in range(0, len(over), FINISHED_AT_ONCE):
            for attempted in over[first : first + FINISHED_AT_ONCE]:
                completer.put(attempted)
            batches.append(completer._take(0))
            completer._in_flight.clear()

    yield "collect outcomes", stopwatch(collect)

    answers: list[Any] = []

    def store_outcomes() -> None:
        answers.extend(finish(store, batch, completer.retention) for batch in batches)

    yield "finish", stopwatch(store_outcomes)

    def record() -> None:
        for batch, ended in zip(batches, answers, strict=True):
            recorder(batch, reconcile(batch, ended, False, completer.retention, lambda _: False))

    yield "count what is stored", stopwatch(record)
    store.close()
    left = meter.count("running") + meter.count("available")
    assert (left, recorder.statistics.completed) == (0, jobs), (left, recorder.statistics)

    insert(meter, jobs)
    yield "all at once", stopwatch(work)


def make_runner() -> Any:
    """What calls the jobs' functions, as a worker makes it."""
    from django_jobs.job_registry import registry
    from django_jobs.worker.attempt import Runner
    from django_jobs.worker.signs import Signs

    return Runner(registry, Signs())


def insert(meter: Meter, jobs: int) -> None:
    """So many jobs in an empty table."""
    from benchmarks.jobs import noop

    meter.empty()
    for first in range(0, jobs, INSERTED_AT_ONCE):
        noop.enqueue_many([(n,) for n in range(first, min(jobs, first + INSERTED_AT_ONCE))])
    meter.settle()


def work() -> None:
    """A worker, until nothing is left."""
    from django_jobs.worker import Worker, WorkerOptions

    Worker(WorkerOptions(drain=True)).run()


BENCHMARK = Parts()
