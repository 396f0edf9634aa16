"""The limit of each database."""

from __future__ import annotations

import argparse
from typing import ClassVar

from benchmarks.core.commands import Benchmark, say
from benchmarks.core.databases import Database
from benchmarks.core.limits import limit
from benchmarks.core.output import Column, Row, medians


class Limit(Benchmark):
    """The limit: claim and finish jobs in batches on a bare table, and run nothing.

    A primary key and one claim index; no fence, no retries, no history beyond the row. On PostgreSQL two connections
    work at the same time, one claims and one finishes; on SQLite, which has one writer at a time, one does both. A
    worker that keeps promises can come near to it, not pass it.
    """

    name = "limit"
    columns: ClassVar = (
        Column("database", "database"),
        Column("jobs", "jobs"),
        Column("insert_per_second", "inserted/s"),
        Column("jobs_per_second", "claimed and finished/s"),
        Column("slowest", "slowest round"),
        Column("fastest", "fastest round"),
        Column("client_us", "client CPU µs/job", ".1f"),
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--jobs", type=int, default=100_000, help="default: 100000")
        parser.add_argument("--batch", type=int, default=1000, help="jobs per statement; default: 1000")
        parser.add_argument("--rounds", type=int, default=5, help="of which the median is shown; default: 5")

    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        rounds = []
        for number in range(options.rounds):
            rounds.append(limit(database.url, options.jobs, options.batch))
            say(f"{database.vendor}, round {number + 1}: {rounds[-1]['jobs_per_second']:,.0f} jobs/s")
        rates = [each["jobs_per_second"] for each in rounds]
        return [{**medians(rounds), "slowest": min(rates), "fastest": max(rates)}]


BENCHMARK = Limit()
