"""Connections to SQLite: the worker's own, and how rows are fetched from any."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import OperationalError

from django_jobs.serialization import Undecodable
from django_jobs.store.sessions import OwnSession
from django_jobs.store.sqlite_functions import add_functions
from django_jobs.store.statements import Statement

logger = logging.getLogger("django_jobs.store")

# How soon a commit of another connection is noticed (PRAGMA data_version is read this often).
WATCH_INTERVAL = 0.01

# Statements that take no write lock.
_READS = frozenset(
    {
        "cancel_requests",
        "count_available",
        "count_dead",
        "count_queues",
        "count_states",
        "due_schedules",
        "failures",
        "get",
        "glance",
        "history",
        "live_workers",
        "next_due",
        "queue_history",
        "running",
        "schedules",
        "select_available",
        "select_expired",
        "select_finished",
        "select_given",
        "select_newest",
        "select_pending",
        "select_queues",
        "select_running",
        "select_scheduled",
        "unfolded_stats",
        "waiting",
        "waiting_queues",
    }
)


class _WriteLocks:
    """One lock for each file, for the write statements of this process's own connections.

    SQLite has one writer at a time, and who meets another one sleeps, for longer each time, before it looks again.
    The worker's parts would often sleep beside a free database; a lock wakes the next at once.
    """

    def __init__(self) -> None:
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def of(self, file: str) -> threading.Lock:
        """The lock of that file."""
        with self._guard:
            return self._locks.setdefault(file, threading.Lock())


_write_locks = _WriteLocks()


def rows_of(cursor: sqlite3.Cursor) -> list[tuple[Any, ...]]:
    """All rows of a statement that was executed; text that is not UTF-8 comes as an Undecodable. Of a statement that
    returns none, the number of rows it changed.

    To the end, always: a RETURNING that is not fetched to the end keeps the write lock. And by then the statement is
    carried out: to fail on the text of one row would hide a whole claim, which nobody would ever finish.
    """
    if cursor.description is None:
        return [(cursor.rowcount,)]
    rows: list[tuple[Any, ...]] = []
    try:
        rows.extend(cursor)
    except sqlite3.OperationalError as error:
        if not str(error).startswith("Could not decode"):
            raise
        # The cursor still stands at that row. Decoding in Python is slow, so only such statements pay for it.
        cursor.connection.text_factory = tolerant
        try:
            rows.extend(cursor)
        finally:
            cursor.connection.text_factory = str
    return rows


def readable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows whose bytes, which SQLite lets somebody's SQL write into any column, are text. For who reads few rows, and
    sorts or joins what it reads."""
    return [tuple(map(_readable, row)) if bytes in map(type, row) else row for row in rows]


def _readable(value: Any) -> Any:
    return tolerant(value) if isinstance(value, bytes) else value


def tolerant(data: bytes) -> str:
    """Text of any bytes: an Undecodable of what is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return Undecodable(data.decode(errors="backslashreplace"))


def _identity(path: str) -> tuple[int, int]:
    """What tells a file from another one of its name."""
    status = os.stat(path)  # noqa: PTH116 - called often
    return status.st_dev, status.st_ino


class SQLiteSession(OwnSession):
    """A connection of the worker's own, to the same file."""

    def __init__(self, alias: str, timeout: float) -> None:
        super().__init__(alias, timeout)
        settings = self.wrapper.settings_dict
        self._name = str(settings["NAME"])
        self._writing = _write_locks.of(self._name)
        self._is_uri = bool(settings.get("OPTIONS", {}).get("uri", False)) or self._name.startswith("file:")
        if not self._is_uri and self._name not in ("", ":memory:"):
            self._name = str(Path(self._name).absolute())  # a job may change the folder
        self._path: str | None = None  # of the open file, with what tells it from another one of that name
        self._file: tuple[int, int] | None = None
        self._in_transaction = False

    @property
    def connection(self) -> Any:
        """The driver's connection; another one where the file is another: SQLite itself goes on with what was deleted,
        and nobody would ever do the jobs that are in the new one."""
        if self._path is not None and self._connection is not None and not self._in_transaction:
            try:
                found = _identity(self._path)
            except FileNotFoundError:
                raise OperationalError(
                    f"The database's file {self._path} was deleted or moved away."
                ) from None
            if found != self._file:
                logger.error("The database's file %s was replaced; it is opened anew", self._path)
                self.close()  # it leaves the new file's log alone
        return super().connection

    def _open(self) -> sqlite3.Connection:
        options = self.wrapper.settings_dict.get("OPTIONS", {})
        connection = sqlite3.connect(
            self._name,
            timeout=min(float(options.get("timeout", 5.0)), self.timeout),
            isolation_level=None,
            check_same_thread=False,
            uri=self._is_uri,
        )
        add_functions(connection)
        for pragma in str(options.get("init_command", "")).split(";"):
            if pragma.strip():
                connection.execute(pragma)
        self._path = (
            next(
                (path for _, name, path in connection.execute("PRAGMA database_list") if name == "main"), None
            )
            or None
        )
        self._file = None if self._path is None else _identity(self._path)
        return connection

    def _execute(
        self, connection: Any, statement: Statement, parameters: dict[str, Any]
    ) -> list[tuple[Any, ...]]:
        if statement.name in _READS or self._in_transaction:
            return rows_of(connection.execute(statement.named, parameters))
        with self._writing:
            return rows_of(connection.execute(statement.named, parameters))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        connection = self.connection
        with self._writing, self._errors:
            connection.execute("BEGIN IMMEDIATE")
            self._in_transaction = True
            try:
                yield
                connection.execute("COMMIT")
            finally:
                self._in_transaction = False
                # A statement that failed has closed the connection, and with it the transaction.
                if connection is self._connection and connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _cut(self, connection: Any) -> None:
        connection.interrupt()

    def _usable(self, connection: Any, error: BaseException) -> bool:
        try:
            return not connection.in_transaction
        except sqlite3.ProgrammingError:  # it is closed
            return False

    def file(self) -> str | None:
        """The file that holds the database, with its whole path; None where there is none."""
        return self._path if self.connection else None

    def data_version(self) -> int:
        """A number that changes when another connection, of any process, has committed."""
        connection = self.connection
        with self._errors:
            return int(connection.execute("PRAGMA data_version").fetchone()[0])
