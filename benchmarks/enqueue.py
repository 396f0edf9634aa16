"""How fast jobs are inserted, beside the least that the database takes for it."""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from benchmarks.core import limits
from benchmarks.core.commands import Benchmark, say, site
from benchmarks.core.databases import Database
from benchmarks.core.output import Column, Row

MANY = 10_000
TOGETHER = 100


class Enqueue(Benchmark):
    """How fast jobs are inserted: enqueue() one by one, a hundred in a transaction, and enqueue_many() of 10,000.

    Beside each, in turn, the same of a bare script with the driver alone, on the bare table of `benchmarks limit`, of
    arguments that are encoded already: INSERT, and, of many, INSERT ... SELECT unnest() by thousands with ids back and
    COPY (PostgreSQL), executemany() by thousands (SQLite). Shown are medians of the rounds.

    The bare script's INSERT is prepared, as psycopg does of itself after five; Django's connections prepare nothing
    unless the site says so, so that PostgreSQL plans each enqueue() anew. "prepared" is enqueue() on a connection with
    OPTIONS = {"server_side_binding": True, "prepare_threshold": 5}.
    """

    name = "enqueue"
    columns: ClassVar = (
        Column("database", "database"),
        Column("way", "way"),
        Column("jobs_per_second", "jobs/s"),
        Column("us", "µs/job", ".1f"),
        Column("bare", "bare"),
        Column("bare_per_second", "bare jobs/s"),
        Column("ratio", "of bare", ".0%"),
        Column("range", "range"),
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--singles", type=int, default=500, help="jobs one by one; default: 500")
        parser.add_argument("--transactions", type=int, default=20, help="of 100 jobs; default: 20")
        parser.add_argument(
            "--many", type=int, default=MANY, help="jobs of an enqueue_many(); default: 10000"
        )
        parser.add_argument("--rounds", type=int, default=7, help="default: 7")

    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        bare = BarePostgreSQL(database) if database.vendor == "postgresql" else BareSQLite(database)
        with site(database) as meter:
            pairs = self.pairs(bare, options)
            rates: list[tuple[list[float], list[float]]] = [([], []) for _ in pairs]
            for _ in range(options.rounds):
                meter.empty()
                bare.empty()
                meter.settle()
                for (_, _, jobs, ours, theirs), found in zip(pairs, rates, strict=True):
                    found[0].append(jobs / seconds(ours))
                    found[1].append(jobs / seconds(theirs))
            bare.close()
        rows = [row_of(pair[0], pair[1], *found) for pair, found in zip(pairs, rates, strict=True)]
        for row in rows:
            say(
                f"{database.vendor}, {row['way']}: {row['jobs_per_second']:,.0f}/s, {row['ratio']:.0%} of bare"
            )
        return rows

    def pairs(self, bare: Any, options: argparse.Namespace) -> list[Any]:
        """What is compared: the way, the bare way, jobs, ours, theirs."""
        from django.db import connections, transaction

        from benchmarks.jobs import noop

        singles, transactions, many = options.singles, options.transactions, options.many

        def one_by_one(using: str) -> None:
            job = noop.using(using=using)
            for n in range(singles):
                job.enqueue(n)

        def together(using: str) -> None:
            job = noop.using(using=using)
            for _ in range(transactions):
                with transaction.atomic(using=using):
                    for n in range(TOGETHER):
                        job.enqueue(n)

        calls = [(n,) for n in range(many)]
        encoded = [f'{{"n": {n}}}' for n in range(many)]
        pairs: list[Any] = []
        for using, how in (("default", ""), ("prepared", ", prepared")):
            if using not in connections.settings:
                continue
            pairs += [
                (
                    f"enqueue one by one{how}",
                    "INSERT",
                    singles,
                    partial(one_by_one, using),
                    lambda: bare.one_by_one(encoded, singles),
                ),
                (
                    f"enqueue, {TOGETHER} in a transaction{how}",
                    f"INSERT, {TOGETHER} in a transaction",
                    TOGETHER * transactions,
                    partial(together, using),
                    lambda: bare.together(encoded, transactions),
                ),
            ]
        pairs += [
            (f"enqueue_many of {many:,}", name, many, lambda: noop.enqueue_many(calls), call)
            for name, call in bare.many(encoded)
        ]
        return pairs


def seconds(call: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def row_of(way: str, bare: str, ours: list[float], theirs: list[float]) -> Row:
    """Medians; the ratio is that of each round."""
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    rate = statistics.median(ours)
    return {
        "way": way,
        "jobs_per_second": rate,
        "us": 1e6 / rate,
        "bare": bare,
        "bare_per_second": statistics.median(theirs),
        "ratio": statistics.median(ratios),
        "range": f"{min(ratios):.0%} to {max(ratios):.0%}",
    }


class BarePostgreSQL:
    """psycopg alone."""

    def __init__(self, database: Database) -> None:
        self.connection = limits.connect(database.url)
        self.connection.execute(f"CREATE SCHEMA {limits.SCHEMA}")
        self.connection.execute(limits.POSTGRESQL_CREATE)

    def empty(self) -> None:
        """As if new."""
        self.connection.execute(f"TRUNCATE {limits.SCHEMA}.job")

    def insert(self, args: str) -> None:
        """One job."""
        self.connection.execute(
            f"INSERT INTO {limits.SCHEMA}.job (name, args) VALUES ('app.jobs.noop', %s) RETURNING id", (args,)
        ).fetchone()

    def one_by_one(self, encoded: list[str], count: int) -> None:
        """Each in a transaction of its own."""
        for n in range(count):
            self.insert(encoded[n % len(encoded)])

    def together(self, encoded: list[str], transactions: int) -> None:
        """A hundred in each."""
        for _ in range(transactions):
            with self.connection.transaction():
                for n in range(TOGETHER):
                    self.insert(encoded[n % len(encoded)])

    def many(self, encoded: list[str]) -> list[tuple[str, Callable[[], None]]]:
        """All of them."""

        def unnest() -> None:
            for first in range(0, len(encoded), limits.INSERTED_AT_ONCE):
                part = encoded[first : first + limits.INSERTED_AT_ONCE]
                self.connection.execute(limits.POSTGRESQL_INSERT, (part,)).fetchall()

        def copy() -> None:
            with (
                self.connection.cursor() as cursor,
                cursor.copy(f"COPY {limits.SCHEMA}.job (name, args) FROM STDIN") as rows,
            ):
                for args in encoded:
                    rows.write_row(("app.jobs.noop", args))

        return [("unnest, ids back", unnest), ("COPY", copy)]

    def close(self) -> None:
        """The connection."""
        self.connection.close()


class BareSQLite:
    """sqlite3 alone, on a file beside that of the site."""

    def __init__(self, database: Database) -> None:
        self.connection = sqlite3.connect(database.file.with_name("bare.sqlite3"), isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.executescript(limits.SQLITE_CREATE)

    def empty(self) -> None:
        """As if new."""
        self.connection.execute("DELETE FROM job")

    def insert(self, args: str) -> None:
        """One job."""
        self.connection.execute("INSERT INTO job (args) VALUES (?) RETURNING id", (args,)).fetchall()

    def one_by_one(self, encoded: list[str], count: int) -> None:
        """Each in a transaction of its own."""
        for n in range(count):
            self.insert(encoded[n % len(encoded)])

    def together(self, encoded: list[str], transactions: int) -> None:
        """A hundred in each."""
        for _ in range(transactions):
            self.connection.execute("BEGIN IMMEDIATE")
            for n in range(TOGETHER):
                self.insert(encoded[n % len(encoded)])
            self.connection.execute("COMMIT")

    def many(self, encoded: list[str]) -> list[tuple[str, Callable[[], None]]]:
        """All of them."""
        rows = [(args,) for args in encoded]

        def by_thousands() -> None:
            for first in range(0, len(rows), limits.INSERTED_AT_ONCE):
                self.connection.execute("BEGIN IMMEDIATE")
                self.connection.executemany(
                    "INSERT INTO job (args) VALUES (?)", rows[first : first + limits.INSERTED_AT_ONCE]
                )
                self.connection.execute("COMMIT")

        return [("executemany by thousands", by_thousands)]

    def close(self) -> None:
        """The connection."""
        self.connection.close()


BENCHMARK = Enqueue()
