"""How fast a worker works down a backlog, what each job costs, and how near to the limit that is."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from benchmarks.apps import COUNT_STATEMENTS, WRITERS
from benchmarks.core.commands import Benchmark, decimals, numbers, say, site
from benchmarks.core.databases import Database
from benchmarks.core.limits import limit
from benchmarks.core.meters import Counters, Meter
from benchmarks.core.output import Column, Row, medians
from benchmarks.core.proxy import proxy
from benchmarks.core.tracing import counted
from benchmarks.core.workers import ROOT, Workers, run_workers, site_environment

CHUNK = 5000
LIMIT_BATCH = 1000


class Variant(NamedTuple):
    """One way to run it. ``writers`` None: as many completion writers as the store declares."""

    mode: str
    processes: int
    writers: int | None
    latency: float

    def __str__(self) -> str:
        writers = "" if self.writers is None else f", writers {self.writers}"
        return f"{self.mode}, processes {self.processes}{writers}, +{self.latency:g} ms"


class Drain(Benchmark):
    """How fast `manage.py runjobs` works: jobs that do nothing, so that what remains is the cost of the queue.

    By default all jobs are inserted first, and the clock runs from the moment that the worker registers to the last
    stored outcome, both by the database's clock. With --duration, another process inserts while the worker works, for
    so many seconds. The worker is run as users do it; what it takes to import Django and the site is not counted.

    "of limit" is the ratio to `python -m benchmarks limit` (on PostgreSQL through the same added latency), which runs
    before the worker in each round (not with --duration, where the one that inserts sets the pace); rounds alternate
    all variants. Shown are medians of the rounds, and the ratios'
    range. On SQLite statements are counted in a run of its own, since that slows it.
    """

    name = "drain"
    columns: ClassVar = (
        Column("database", "database"),
        Column("mode", "mode"),
        Column("processes", "processes"),
        Column("writers", "writers"),
        Column("latency_ms", "+ms", "g"),
        Column("jobs", "jobs"),
        Column("jobs_per_second", "jobs/s"),
        Column("inserted_per_second", "inserted/s"),
        Column("limit_per_second", "limit/s"),
        Column("ratio", "of limit", ".0%"),
        Column("range", "range"),
        Column("client_us", "client CPU µs/job", ".1f"),
        Column("server_us", "database CPU µs/job", ".1f"),
        Column("statements", "statements/job", ".4f"),
        Column("commits", "commits/job", ".4f"),
        Column("log_bytes", "WAL B/job"),
        Column("written_bytes", "written B/job"),
        Column("connections", "connections"),
        Column("sessions", "opened/run"),
        Column("resets", "resets/run"),
        Column("job_reads", "job reads/run"),
        Column("memory_mb", "peak MB"),
    )
    notes: ClassVar = (
        "WAL is of the whole server, PostgreSQL; written is what the worker's processes wrote to files, WAL and "
        "checkpoints, SQLite. Connections: the most at once on PostgreSQL. Opened: those of the whole run. Resets: "
        "connections cleaned up. Job reads: statements that read jobs again.",
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--jobs", type=int, default=100_000, help="default: 100000")
        parser.add_argument(
            "--rounds", type=int, default=5, help="of which the medians are shown; default: 5"
        )
        parser.add_argument(
            "--duration", type=float, metavar="SECONDS", help="insert while working, for so long"
        )
        parser.add_argument(
            "--processes", type=numbers, default=[1], metavar="N,...", help="worker processes; default: 1"
        )
        parser.add_argument(
            "--writers",
            type=numbers,
            default=[0],
            metavar="N,...",
            help="completion writers, PostgreSQL: 1,2 alternates one and two; default: what the store declares",
        )
        parser.add_argument(
            "--latency",
            type=decimals,
            default=[0.0],
            metavar="MS,...",
            help="added to each answer of PostgreSQL by a proxy on this host; default: 0",
        )
        parser.add_argument("--concurrency", type=int, help="runjobs --concurrency; default: its own")
        parser.add_argument("--batch", type=int, default=LIMIT_BATCH, help="of the limit; default: 1000")

    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        postgresql = database.vendor == "postgresql"
        mode = "drain" if options.duration is None else f"insert for {options.duration:g} s"
        variants = [
            Variant(
                mode, processes, (writers or None) if postgresql else None, latency if postgresql else 0.0
            )
            for latency, processes, writers in itertools.product(
                options.latency, options.processes, options.writers
            )
        ]
        variants = list(dict.fromkeys(variants))
        with site(database) as meter:
            rounds = [
                self.round(database, meter, options, variants if number % 2 == 0 else variants[::-1], number)
                for number in range(options.rounds)
            ]
            counts = {} if postgresql else count_on_sqlite(database, meter, options, variants)
        return [
            {**summary([each[variant] for each in rounds]), **counts.get(variant, {})} for variant in variants
        ]

    def round(
        self,
        database: Database,
        meter: Meter,
        options: argparse.Namespace,
        variants: list[Variant],
        number: int,
    ) -> dict[Variant, Row]:
        """All variants once, each group of the same latency after its limit."""
        found: dict[Variant, Row] = {}
        for latency, group in itertools.groupby(variants, lambda variant: variant.latency):
            with distant(database, latency) as url:
                bare = None
                if options.duration is None:
                    bare = limit(url, options.jobs, options.batch)["jobs_per_second"]
                for variant in group:
                    row = run(database, url, meter, options, variant)
                    text = f"{database.vendor}, round {number + 1}, {variant}: {row['jobs_per_second']:,.0f} jobs/s"
                    if bare:
                        row |= {"limit_per_second": bare, "ratio": row["jobs_per_second"] / bare}
                        text += f", {row['ratio']:.0%} of {bare:,.0f}"
                    found[variant] = row
                    say(text)
        return found


@contextlib.contextmanager
def distant(database: Database, latency: float) -> Iterator[str]:
    """The database's URL, so many milliseconds away."""
    if latency:
        with proxy(database.url, latency) as url:
            yield url
    else:
        yield database.url


def run(
    database: Database,
    url: str,
    meter: Meter,
    options: argparse.Namespace,
    variant: Variant,
    environment: dict[str, str] | None = None,
) -> Row:
    """One run of one variant, on emptied tables."""
    environment = dict(environment or {})
    if variant.writers:
        environment[WRITERS] = str(variant.writers)
    meter.empty()
    if options.duration is None:
        insert(options.jobs)
    meter.settle()
    before = meter.counters()
    with run_workers(
        url,
        meter,
        database.folder,
        processes=variant.processes,
        concurrency=options.concurrency,
        environment=environment,
    ) as workers:
        if options.duration is None:
            row = work_down(meter, workers, options.jobs)
        else:
            workers.wait_until_started()
            row = work_while_inserting(database, meter, workers, options.duration)
        measured = costs(meter, workers, before, row["jobs"])
        workers.stop()
    measured.update(spent(before, meter.counters(), row["jobs"], workers.connections))
    return {
        "mode": variant.mode,
        "processes": variant.processes,
        "writers": str(variant.writers or "as declared"),
        "latency_ms": variant.latency if database.vendor == "postgresql" else None,
        **row,
        **measured,
    }


def insert(jobs: int) -> None:
    """Insert that many jobs, as a user does it."""
    from benchmarks.jobs import noop

    for first in range(0, jobs, CHUNK):
        noop.enqueue_many([(n,) for n in range(first, min(first + CHUNK, jobs))])


def work_down(meter: Meter, workers: Workers, jobs: int) -> Row:
    """Wait until the backlog is worked down."""
    looks = itertools.count()

    def look() -> None:
        workers.look()
        if next(looks) % 10 == 0:
            workers.count_connections()

    end = meter.wait_until_done(meter.last_job(), look)
    workers.look()  # a few jobs are done before the first look has seen who has registered
    done = meter.count("completed")
    assert done == jobs, f"{done} of {jobs} jobs completed"
    return {"jobs": jobs, "jobs_per_second": jobs / (end - min(workers.started.values()))}


def work_while_inserting(database: Database, meter: Meter, workers: Workers, seconds: float) -> Row:
    """Insert for so long in another process, and see what the worker has done by the end of it."""
    workers.begin_again()
    command = [sys.executable, "-m", "benchmarks.core.inserter", str(seconds)]
    began = meter.now()
    with subprocess.Popen(
        command, env=site_environment(database.url), cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as inserter:
        assert inserter.stdout is not None
        inserter.stdout.readline()  # it begins
        began = meter.now()
        while inserter.poll() is None:
            workers.look()
            workers.count_connections()
            time.sleep(0.05)
        ended = meter.now()
    done, last = meter.count("completed"), meter.last_job()
    return {
        "jobs": done,
        "jobs_per_second": done / (ended - began),
        "inserted_per_second": last / (ended - began),
    }


def costs(meter: Meter, workers: Workers, before: Counters, jobs: int) -> Row:
    """What has been used when the last job ended."""
    after = meter.counters()
    written = workers.written()
    row: Row = {"client_us": 1e6 * workers.cpu() / jobs, "memory_mb": workers.memory()}
    if after.cpu is not None and before.cpu is not None:
        row["server_us"] = 1e6 * (after.cpu - before.cpu) / jobs
    elif written is not None and after.commits is None:
        row["written_bytes"] = written / jobs
    return row


def spent(before: Counters, after: Counters, jobs: int, connections: int) -> Row:
    """What the database had done when the worker had stopped, its beginning and its end included."""
    if after.commits is None or before.commits is None:
        return {}
    assert after.log is not None
    assert before.log is not None
    assert after.sessions is not None
    assert before.sessions is not None
    row: Row = {
        "commits": (after.commits - before.commits) / jobs,
        "log_bytes": (after.log - before.log) / jobs,
        "connections": connections,
        "sessions": after.sessions - before.sessions,
    }
    if after.statements is not None and before.statements is not None:
        assert after.resets is not None
        assert before.resets is not None
        assert after.job_reads is not None
        assert before.job_reads is not None
        row["statements"] = (after.statements - before.statements) / jobs
        row["resets"] = after.resets - before.resets
        row["job_reads"] = after.job_reads - before.job_reads
    return row


def count_on_sqlite(
    database: Database, meter: Meter, options: argparse.Namespace, variants: list[Variant]
) -> dict[Variant, Row]:
    """Each variant once more, for the number of statements only."""
    found: dict[Variant, Row] = {}
    for variant in variants:
        folder = Path(database.folder) / "statements"
        folder.mkdir()
        row = run(database, database.url, meter, options, variant, {COUNT_STATEMENTS: str(folder)})
        counts: dict[str, Any] = dict(counted(folder))
        found[variant] = {
            "statements": counts.get("statements", 0) / row["jobs"],
            "commits": counts.get("commits", 0) / row["jobs"],
            "connections": counts.get("connections", 0),
            "sessions": counts.get("connections", 0),
            "resets": counts.get("resets", 0),
            "job_reads": counts.get("job_reads", 0),
        }
        shutil.rmtree(folder)
    return found


def summary(rounds: list[Row]) -> Row:
    """The medians, and the range of the ratio."""
    ratios = [each["ratio"] for each in rounds if "ratio" in each]
    return {**medians(rounds), "range": f"{min(ratios):.0%} to {max(ratios):.0%}" if ratios else None}


BENCHMARK = Drain()
