"""Each operation of the queue, beside the same by the ORM."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from benchmarks.core.commands import Benchmark, say, site
from benchmarks.core.databases import Database
from benchmarks.core.history import fill
from benchmarks.core.output import Column, Row

HISTORY = 10_000
LIVING_ON = "connection used and given back"


class Operations(Benchmark):
    """Each operation of the queue, beside the same by the ORM as most Django code would write it: models, get, save,
    select_for_update, in a transaction where one is needed.

    Times are medians in microseconds, of calls that alternate; statements are those that the database gets, BEGIN and
    COMMIT included. 10,000 finished jobs are in the table. PostgreSQL does not wait for the disk at COMMIT
    (synchronous_commit = off), which takes both ways the same time and would hide the rest; with --durable it does.
    "Connection used and given back": a thread's connection, used by a job, in eight threads that live on. Before as at
    the end of a request (close_old_connections with Django's default CONN_MAX_AGE), after as the worker does it.
    "Thread used a connection": before, a thread is started, updates a row, closes its connections and ends; after, for
    "and ends" the same in a worker's executor, which is started and stopped for it, and for "and is left" in a thread
    that a worker keeps for what async jobs do synchronously, and that goes on to the next job with its connection.
    """

    name = "operations"
    columns: ClassVar = (
        Column("database", "database"),
        Column("operation", "operation"),
        Column("before_us", "ORM µs"),
        Column("after_us", "queue µs"),
        Column("factor", "factor", ".2f"),
        Column("before_statements", "ORM statements"),
        Column("after_statements", "queue statements"),
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--calls", type=int, default=300, help="of each operation; default: 300")
        parser.add_argument(
            "--stale",
            type=int,
            default=100_000,
            metavar="ROWS",
            help="completed at ANALYZE, as many waiting and a tenth running after it; default: 100000",
        )
        parser.add_argument("--durable", action="store_true", help="wait for the disk at each COMMIT")
        parser.add_argument("--only", metavar="TEXT", help="operations with this in their name")

    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        with site(database, durable=options.durable) as meter:
            from benchmarks.cases import Cases
            from benchmarks.thread_cases import ThreadCases, together

            fill(meter, HISTORY)
            meter.settle()
            cases = Cases(meter)
            wanted = options.only or ""
            rows = []
            for case in cases.all():
                if wanted in case.name:
                    calls = max(3, options.calls // 10) if "batch" in case.name else options.calls
                    rows.append(compare(case, cases, calls))
            if wanted in LIVING_ON:
                rows.append(row_of(LIVING_ON, together(options.calls, seconds), [None, None]))
            threads = ThreadCases(cases)
            chosen = [case for case in threads.all() if wanted in case.name]
            rows += [compare(case, cases, max(3, options.calls // 3), count=False) for case in chosen]
            threads.close()
            if wanted in "complete, stale statistics":
                for case in cases.stale(options.stale):
                    calls = max(3, options.calls // 30) if "1,000" in case.name else options.calls
                    rows.append(compare(case, cases, calls))
            cases.close()
        return rows


def compare(case: Any, cases: Any, calls: int, count: bool = True) -> Row:
    """Both ways of one operation, call by call in turn.

    :param count: the statements, too: of what this thread sends.
    """
    things = list(case.prepare(2 * calls + 2))
    before, after = things[:calls], things[calls : 2 * calls]
    statements: list[int | None] = [
        statements_of(lambda: case.before(things[2 * calls]), cases),
        statements_of(lambda: case.after(things[2 * calls + 1]), cases),
    ]
    if not count:
        statements = [None, None]
    times: tuple[list[float], list[float]] = ([], [])
    for one, other in zip(before, after, strict=True):
        times[0].append(seconds(lambda: case.before(one)))  # noqa: B023 - called at once
        times[1].append(seconds(lambda: case.after(other)))  # noqa: B023
    return row_of(case.name, times, statements)


def row_of(name: str, times: tuple[list[float], list[float]], statements: Sequence[int | None]) -> Row:
    """A row of the table."""
    before, after = (1e6 * statistics.median(each) for each in times)
    say(f"{name}: {before:,.0f} -> {after:,.0f} µs, statements {statements[0]} -> {statements[1]}")
    return {
        "operation": name,
        "before_us": before,
        "after_us": after,
        "factor": before / after,
        "before_statements": statements[0],
        "after_statements": statements[1],
    }


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def statements_of(call: Callable[[], object], cases: Any) -> int:
    """How many statements a call sends, on Django's connection and on the worker's own."""
    from django.db import connection

    own = cases.statements
    connection.force_debug_cursor = True
    connection.queries_log.clear()
    try:
        call()
        return len(connection.queries_log) + int(cases.statements - own)
    finally:
        connection.force_debug_cursor = False


BENCHMARK = Operations()
