"""Whether anything is lost or grows under mixed load, for as long as one likes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.core.commands import Benchmark, site
from benchmarks.core.databases import Database
from benchmarks.core.output import Column, Row, describe, table
from benchmarks.soaking.mix import EFFECTS
from benchmarks.soaking.results import is_good, judge, windows
from benchmarks.soaking.running import SETTINGS, start


class Soak(Benchmark):
    """Mixed load for a chosen time, by real processes: one that enqueues at a steady rate, a `runjobs` with threads,
    and one with two processes. Jobs of every kind: one by one and in bulk, scheduled, retried, failing, snoozed,
    unique, atomic, async, with results, cancelled while they wait and while they run, deleted as they end, rolled back,
    and those of a schedule. What has ended is purged after a minute.

    Followed is each single job: it is lost when its enqueue was committed and it did not end. By tenths of the run it
    tells how soon jobs start after their commit (and, to compare with, how long another process takes to answer that
    does nothing else), memory and CPU of each process, and the size of the tables; and in the end whether memory grows,
    sizes are bounded and times are flat, by the rules of `benchmarks/soaking/verdicts.py`. The exit code is 1 when
    anything is lost, grows or rises.
    """

    name = "soak"
    columns: ClassVar = (
        Column("database", "database"),
        Column("minutes", "minutes"),
        Column("enqueued", "enqueued/s"),
        Column("ended", "ended/s"),
        Column("p50_ms", "p50 ms", ".1f"),
        Column("p95_ms", "p95 ms", ".1f"),
        Column("p99_ms", "p99 ms", ".1f"),
        Column("echo_ms", "echo p95 ms", ".2f"),
        Column("rows", "rows"),
        Column("table_mb", "table MB", ".1f"),
        Column("indexes_mb", "indexes MB", ".1f"),
        Column("others_mb", "other tables MB", ".2f"),
        Column("dead", "dead rows"),
        Column("vacuums", "vacuums"),
        Column("file_mb", "file MB", ".1f"),
        Column("free_mb", "free in it", ".1f"),
        Column("wal_mb", "WAL MB", ".1f"),
        Column("memory_threads", "threads MB", ".1f"),
        Column("memory_child 1", "child 1 MB", ".1f"),
        Column("memory_child 2", "child 2 MB", ".1f"),
        Column("memory_supervisor", "supervisor MB", ".1f"),
        Column("cpu_workers", "workers CPU", ".1%"),
        Column("cpu_enqueuer", "enqueuer CPU", ".1%"),
        Column("cpu_server", "server CPU", ".1%"),
    )
    kinds: ClassVar = (
        Column("database", "database"),
        Column("kind", "kind"),
        Column("calls", "enqueued"),
        Column("jobs", "jobs"),
        Column("as_expected", "ended as they must"),
        Column("otherwise", "otherwise"),
        Column("lost", "lost"),
    )
    verdicts: ClassVar = (
        Column("database", "database"),
        Column("what", "what"),
        Column("first", "first third", ",.2f"),
        Column("last", "last third", ",.2f"),
        Column("slope_kb", "KB/min", ",.1f"),
        Column("word", "verdict"),
    )
    notes: ClassVar = (
        "Thirds are of the time after the warm-up. Memory is what a process shares with no other. CPU is of one core.",
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--minutes", type=float, default=20.0, help="default: 20")
        parser.add_argument(
            "--rate", type=float, default=150.0, metavar="JOBS", help="enqueued in a second; default: 150"
        )
        parser.add_argument(
            "--every", type=float, default=5.0, metavar="SECONDS", help="between two looks; default: 5"
        )
        parser.add_argument("--plot", metavar="FILE", help="draw it too, as PNG (one for each database)")

    def run(self, arguments: Sequence[str]) -> int:
        """The command. Returns 1 when anything is lost, grows or rises."""
        options = self.parser().parse_args(arguments)
        result = self.results(options, arguments)
        print(json.dumps(result) if options.json else self.report(result), flush=True)
        return 0 if is_good(result["rows"]) else 1

    def report(self, result: dict[str, Any]) -> str:
        """Three tables, and under which conditions."""
        parts = {
            part: [row for row in result["rows"] if row["part"] == part]
            for part in ("window", "jobs", "verdict")
        }
        return "\n".join([
            table(self.columns, parts["window"]),
            "",
            table(self.kinds, parts["jobs"]),
            "",
            table(self.verdicts, parts["verdict"]),
            "",
            describe(result),
            *self.notes,
        ])  # fmt: skip

    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        with site(database, settings=SETTINGS) as meter:
            meter.run(f"CREATE TABLE {EFFECTS} (job_id bigint NOT NULL)")
            with start(database, meter, options.minutes, options.rate) as run:
                samples = run.watch(options.every)
                tally = run.end()
        if options.plot:
            from benchmarks.soaking.plot import draw

            file = Path(options.plot)
            draw(samples, database.version, file.with_stem(f"{file.stem}-{database.vendor}"))
        return [
            *({"part": "window", **row} for row in windows(samples, options.minutes)),
            *({"part": "jobs", **row} for row in tally),
            *(
                {"part": "verdict", **row}
                for row in judge(samples, tally, run.sizes.bounded, options.minutes)
            ),
        ]


BENCHMARK = Soak()
