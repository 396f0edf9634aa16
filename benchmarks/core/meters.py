"""Watching a database while a worker works: whether all is done, by the database's clock, and what it cost.

A meter has a connection of its own, and what that does is not counted.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.core.databases import Database
from benchmarks.core.processes import cpu_of, server_of
from benchmarks.core.statements import is_job_read, is_reset

MARK = "/* benchmarks */"
LIVE = ("available", "running", "scheduled", "pending")
TABLES = (
    "django_jobs_job",
    "django_jobs_worker",
    "django_jobs_queue",
    "django_jobs_leadership",
)


class Counters(NamedTuple):
    """What a database did so far; None where it does not tell. ``cpu`` in seconds, ``log`` in bytes."""

    statements: int | None = None
    commits: int | None = None
    log: int | None = None
    cpu: float | None = None
    sessions: int | None = None
    resets: int | None = None
    job_reads: int | None = None


class Meter(ABC):
    """Watches the database of a benchmark."""

    @abstractmethod
    def run(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement that is not counted."""

    @abstractmethod
    def empty(self) -> None:
        """Empty the tables, as if new."""

    @abstractmethod
    def settle(self) -> None:
        """Bring statistics up to date, and write out what is to be written, so that it is not done while measured."""

    @abstractmethod
    def now(self) -> float:
        """The database's time, in seconds."""

    @abstractmethod
    def workers(self) -> dict[int, float]:
        """The process ids of the workers, and when each started, by the database's clock."""

    @abstractmethod
    def counters(self) -> Counters:
        """What was done so far, without what this meter did."""

    @abstractmethod
    def connections(self) -> int | None:
        """How many connections there are now, without this one."""

    @abstractmethod
    def close(self) -> None: ...

    def last_job(self) -> int:
        """The id of the newest job; 0 if there is none."""
        return int(self.run(f"SELECT {MARK} COALESCE(max(id), 0) FROM django_jobs_job")[0][0])

    def count(self, state: str) -> int:
        """How many jobs are in a state."""
        return int(self.run(f"SELECT {MARK} count(*) FROM django_jobs_job WHERE state = '{state}'")[0][0])

    def is_done(self, last: int) -> bool:
        """Whether no job is left to do; first a look at the last one, which costs next to nothing."""
        rows = self.run(f"SELECT {MARK} state FROM django_jobs_job WHERE id = {int(last)}")
        if rows and rows[0][0] in LIVE:
            return False
        states = " OR ".join(
            f"EXISTS (SELECT 1 FROM django_jobs_job WHERE state = '{state}')" for state in LIVE[:3]
        )
        return not self.run(f"SELECT {MARK} {states}")[0][0]

    def wait_until_done(
        self, last: int, alive: Callable[[], None], seconds: float = 900.0, pause: float = 0.01
    ) -> float:
        """Wait until no job is left to do, and return the database's time then.

        :param alive: raises when the workers have ended.
        """
        deadline = time.monotonic() + seconds
        while not self.is_done(last):
            alive()
            if time.monotonic() > deadline:
                raise TimeoutError(f"the jobs were not done within {seconds:g} s")
            time.sleep(pause)
        return self.now()


class PostgreSQLMeter(Meter):
    """By ``pg_stat_statements``, where the server has it, and PostgreSQL's own statistics."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute("SET enable_seqscan = off")  # statistics may be stale
        self.done = 0
        self.server = server_of(int(self.run("SELECT pg_backend_pid()")[0][0]))
        self.has_statements = bool(
            self.run("SELECT 1 FROM pg_extension WHERE extname = 'pg_stat_statements'")
            and "pg_stat_statements" in self.run("SHOW shared_preload_libraries")[0][0]
        )

    def run(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        self.done += 1
        cursor = self.connection.execute(sql, parameters or None)
        return cursor.fetchall() if cursor.description else []

    def empty(self) -> None:
        self.run(f"TRUNCATE {', '.join(TABLES)} RESTART IDENTITY CASCADE")

    def settle(self) -> None:
        self.run("VACUUM ANALYZE")
        self.run("CHECKPOINT")

    def now(self) -> float:
        return float(self.run(f"SELECT {MARK} extract(epoch FROM clock_timestamp())")[0][0])

    def workers(self) -> dict[int, float]:
        rows = self.run(
            f"SELECT {MARK} pid, extract(epoch FROM started_at) FROM django_jobs_worker WHERE stopped_at IS NULL"
        )
        return {pid: float(started) for pid, started in rows}

    def connections(self) -> int | None:
        rows = self.run(
            f"SELECT {MARK} count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return int(rows[0][0])

    def counters(self) -> Counters:
        self.run("SELECT pg_stat_force_next_flush()")
        self.run("SELECT pg_stat_clear_snapshot()")
        commits, sessions = self.run(
            "SELECT xact_commit, sessions FROM pg_stat_database WHERE datname = current_database()"
        )[0]
        log = int(self.run("SELECT pg_current_wal_lsn() - '0/0'")[0][0])
        statements = resets = reads = None
        if self.has_statements:
            statements = resets = reads = 0
            for text, calls in self.run(
                "SELECT query, calls FROM pg_stat_statements WHERE toplevel "
                "AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
            ):
                if MARK in text or "pg_stat_" in text or "pg_current_wal_lsn" in text:
                    continue
                statements += calls
                resets += calls if is_reset(text) else 0
                reads += calls if is_job_read(text) else 0
        cpu = None if self.server is None else cpu_of(self.server, descendants=True)
        return Counters(statements, int(commits) - self.done, log, cpu, int(sessions), resets, reads)

    def close(self) -> None:
        self.connection.close()


class SQLiteMeter(Meter):
    """A reader's connection. SQLite works in the process that uses it, so most is counted there (``core.tracing``)."""

    def __init__(self, database: Database) -> None:
        self.connection = sqlite3.connect(database.file, isolation_level=None, timeout=30)

    def run(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, parameters).fetchall()

    def empty(self) -> None:
        for table in TABLES:
            self.run(f"DELETE FROM {table}")
        self.run("DELETE FROM sqlite_sequence")
        self.run("VACUUM")
        self.settle()

    def settle(self) -> None:
        self.run("PRAGMA wal_checkpoint(TRUNCATE)")

    def now(self) -> float:
        return time.time()

    def workers(self) -> dict[int, float]:
        rows = self.run("SELECT pid, started_at FROM django_jobs_worker WHERE stopped_at IS NULL")
        return {pid: dt.datetime.fromisoformat(f"{started}+00:00").timestamp() for pid, started in rows}

    def connections(self) -> int | None:
        return None

    def counters(self) -> Counters:
        return Counters()

    def close(self) -> None:
        self.connection.close()


def meter_of(database: Database) -> Meter:
    """The meter of that database."""
    return PostgreSQLMeter(database.url) if database.vendor == "postgresql" else SQLiteMeter(database)
