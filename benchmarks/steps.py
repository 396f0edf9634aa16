"""What one enqueue() takes, step by step: from the driver's bare INSERT to the call that a site makes."""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, ClassVar

from benchmarks.core import limits
from benchmarks.core.commands import Benchmark, say, site
from benchmarks.core.databases import Database
from benchmarks.core.output import Column, Row
from benchmarks.enqueue import BarePostgreSQL, BareSQLite

ARGS = '{"n": 1}'


class Steps(Benchmark):
    """What one enqueue() takes, step by step, each with all that the one before it does.

    The bare INSERT of `benchmarks enqueue`; the same into the table of jobs, with its columns, checks and indexes, and
    the wake-up; by Django's cursor, which on PostgreSQL prepares nothing; by the store, which makes the row; enqueue()
    itself, which checks and encodes the arguments. Calls alternate by hundreds, each in a transaction of its own;
    PostgreSQL does not wait for the disk, which would hide the rest. Shown are medians of the rounds.
    """

    name = "steps"
    columns: ClassVar = (
        Column("database", "database"),
        Column("step", "step"),
        Column("us", "µs", ".1f"),
        Column("more", "more than the step before, µs", "+.1f"),
        Column("client_us", "client CPU µs", ".1f"),
        Column("ratio", "times the bare INSERT", ".2f"),
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--calls", type=int, default=100, help="in a row; default: 100")
        parser.add_argument("--rounds", type=int, default=30, help="default: 30")

    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        bare = BarePostgreSQL(database) if database.vendor == "postgresql" else BareSQLite(database)
        with site(database, durable=False), closing(driver_of(database)) as driver:
            if database.vendor == "postgresql":
                bare.connection.execute("SET synchronous_commit = off")
            steps = {
                "INSERT into the bare table, by the driver": lambda: bare.insert(ARGS),
                **steps_of_ours(database, driver),
            }
            found: dict[str, list[tuple[float, float]]] = {step: [] for step in steps}
            for step in steps.values():
                repeat(step, options.calls)  # what is prepared and cached is so
            for _ in range(options.rounds):
                for name, step in steps.items():
                    found[name].append(repeat(step, options.calls))
        bare.close()
        rows: list[Row] = []
        for name, times in found.items():
            us, client = (statistics.median(each) for each in zip(*times, strict=True))
            rows.append(
                {
                    "step": name,
                    "us": us,
                    "more": us - rows[-1]["us"] if rows else None,
                    "client_us": client,
                    "ratio": us / rows[0]["us"] if rows else 1.0,
                }
            )
        say(f"{database.vendor}: {rows[0]['us']:.1f} µs bare, {rows[-1]['us']:.1f} µs enqueue()")
        return rows


def repeat(step: Callable[[], object], calls: int) -> tuple[float, float]:
    """Microseconds of a call, by the clock and of CPU."""
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        step()
    return 1e6 * (time.perf_counter() - began) / calls, 1e6 * (time.process_time() - cpu) / calls


def steps_of_ours(database: Database, driver: Any) -> dict[str, Callable[[], object]]:
    """The steps beyond the bare one."""
    from django.db import connection

    from benchmarks.jobs import noop
    from django_jobs.enqueueing import prepare
    from django_jobs.store import django_store
    from django_jobs.store.inserting import usual_parameters
    from django_jobs.store.statements import statement

    new = prepare(noop, (1,), {}).new
    sql = statement(connection.vendor, "insert_now")
    parameters: dict[str, Any] = usual_parameters(new)
    if connection.vendor == "postgresql":
        parameters["notify"] = True
    else:
        parameters["now"] = "2026-01-01 00:00:00.000000"

    def by_the_driver() -> None:
        driver.execute(sql.named if database.vendor == "sqlite" else sql.pyformat, parameters).fetchall()

    def by_django() -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql.pyformat, parameters)
            cursor.fetchall()

    store = django_store("default")
    return {
        "the same into the table of jobs": by_the_driver,
        "by Django's cursor": by_django,
        "by the store": lambda: store.insert(new),
        "enqueue()": lambda: noop.enqueue(1),
    }


def driver_of(database: Database) -> Any:
    """A connection of the driver's own to the site's database; that of PostgreSQL prepares its statements."""
    if database.vendor == "postgresql":
        return limits.connect(database.url)
    connection = sqlite3.connect(database.file, isolation_level=None, timeout=20)
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


BENCHMARK = Steps()
