"""What is looked at on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from django.db import connections

from django_jobs.doctor.common import expected_indexes
from django_jobs.doctor.findings import ERROR, OK, WARNING, Finding

OLDEST = (3, 37, 0)
SHORT_TIMEOUT_MS = 10_000
# Pages of the write-ahead log that a reader keeps from being written back (4 kB each).
LONG_LOG_PAGES = 25_000


def version(alias: str) -> Iterator[Finding]:  # noqa: ARG001
    """Whether SQLite is new enough."""
    text = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST:
        yield Finding(ERROR, "version", f"SQLite is {text}; 3.37 is the oldest that has all that is needed.")
    else:
        yield Finding(OK, "version", f"SQLite {text}.")


def journal(alias: str) -> Iterator[Finding]:
    """Whether readers and writers wait for each other."""
    mode = str(_value(alias, "PRAGMA journal_mode")).lower()
    if mode == "wal":
        yield Finding(OK, "journal", "The write-ahead log is on.")
    elif mode == "memory":
        yield Finding(
            WARNING, "journal", "The database is in memory: no other process sees its jobs.", "Use a file."
        )
    else:
        yield Finding(
            ERROR,
            "journal",
            f"The journal mode is {mode}: readers and writers wait for each other.",
            "OPTIONS: 'init_command': 'PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;'",
        )


def transactions(alias: str) -> Iterator[Finding]:
    """Whether a transaction can fail for having read first."""
    mode = getattr(connections[alias], "transaction_mode", None)
    if str(mode).upper() in ("IMMEDIATE", "EXCLUSIVE"):
        yield Finding(OK, "transactions", f"They begin as {mode}.")
    else:
        yield Finding(
            ERROR,
            "transactions",
            f"They begin as {mode or 'DEFERRED'}: one that reads and then writes fails at once beside a writer.",
            "OPTIONS: 'transaction_mode': 'IMMEDIATE'",
        )


def busy_timeout(alias: str) -> Iterator[Finding]:
    """How long the write lock is waited for."""
    milliseconds = int(_value(alias, "PRAGMA busy_timeout"))
    if milliseconds < SHORT_TIMEOUT_MS:
        yield Finding(
            WARNING,
            "busy timeout",
            f"The write lock is waited for only {milliseconds / 1000:g} s; then 'database is locked' is raised.",
            "OPTIONS: 'timeout': 20",
        )
    else:
        yield Finding(OK, "busy timeout", f"{milliseconds / 1000:g} s.")


def old_readers(alias: str) -> Iterator[Finding]:
    """Whether somebody's transaction keeps the log from being written back, so that it grows."""
    # In a transaction SQLite refuses it, and there is no log in other modes; both tell nothing.
    if connections[alias].in_atomic_block:
        return
    _, pages, written = _row(alias, "PRAGMA wal_checkpoint(PASSIVE)")
    if pages - written > LONG_LOG_PAGES:
        yield Finding(
            WARNING,
            "old transactions",
            f"{pages - written} pages of the write-ahead log can't be written back: a process has a read open.",
            "Look for a long transaction, or a query that was not read to its end.",
        )
    else:
        yield Finding(OK, "old transactions", "None keeps the write-ahead log from being written back.")


def indexes(alias: str) -> Iterator[Finding]:
    """Whether the indexes that the statements go by are there."""
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'django_jobs_job'")
        there = {name for (name,) in cursor.fetchall()}
    if missing := sorted(expected_indexes() - there):
        yield Finding(
            ERROR,
            "indexes",
            f"These are missing, and claims get slower with every job: {', '.join(missing)}.",
            "Make them as the migrations of django_jobs do (manage.py sqlmigrate django_jobs 0001).",
        )
    else:
        yield Finding(OK, "indexes", "All are there.")


def _row(alias: str, sql: str) -> tuple[Any, ...]:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql)
        row: tuple[Any, ...] = cursor.fetchone()
        return row


def _value(alias: str, sql: str) -> Any:
    return _row(alias, sql)[0]


SETTINGS = [version, journal, transactions, busy_timeout]
TABLES = [indexes, old_readers]
