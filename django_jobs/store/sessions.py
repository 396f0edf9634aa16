"""How a store reaches its database: a session, and what those on connections of their own have in common."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import DatabaseErrorWrapper

from django_jobs.store.deadlines import Deadline, watchdog
from django_jobs.store.statements import Statement


class Session(ABC):
    """Runs one statement at a time and counts them. Errors are Django's (``django.db.utils``)."""

    timeout: float  # seconds that a statement may take, where the session keeps a deadline
    # Seconds that a statement may wait for a row that another transaction holds, of a connection that is opened after
    # this is set; 0: as long as it may take. For PostgreSQL: SQLite has no rows that are held.
    lock_timeout: float = 0.0

    def __init__(self) -> None:
        self.statements = 0

    @abstractmethod
    def fetch(self, statement: Statement, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Run a statement and return all of its rows."""

    @property
    def in_transaction(self) -> bool:
        """Whether a statement is part of a transaction that others began."""
        return False

    def savepoint(self) -> AbstractContextManager[None]:
        """A block that an exception undoes and leaves the caller's transaction whole; without one, just a block."""
        return contextlib.nullcontext()

    def transaction(self) -> AbstractContextManager[None]:
        """Statements that are stored together, or, after an exception, not at all. Brief, and not to be nested.

        For what takes two statements on a database and one on the other, which need not have this.
        """
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 - Django's connection is not ours to close
        """Close the connection, if the session has one of its own; the next statement opens a new one."""


class OwnSession(Session):
    """Statements on a connection of its own, opened when first used, and again after it broke.

    Every statement has a deadline that this process keeps: past it the connection is cut from below, since a
    half-open one answers nothing and fails nothing.

    :param alias: the database.
    :param timeout: seconds that a statement, or a connection attempt, may take.
    """

    def __init__(self, alias: str, timeout: float) -> None:
        super().__init__()
        self.alias = alias
        self.timeout = timeout
        self.connects = 0
        self._connection: Any = None
        # A wrapper of its own, never connected: it knows the parameters, and turns errors into Django's.
        self.wrapper: BaseDatabaseWrapper = connections.create_connection(alias)
        self._errors = DatabaseErrorWrapper(self.wrapper)

    @abstractmethod
    def _open(self) -> Any:
        """A new connection of the driver's, in autocommit."""

    @abstractmethod
    def _execute(
        self, connection: Any, statement: Statement, parameters: dict[str, Any]
    ) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def _cut(self, connection: Any) -> None:
        """Make a statement that runs on ``connection`` fail now. Called from another thread."""

    @abstractmethod
    def _usable(self, connection: Any, error: BaseException) -> bool:
        """Whether the connection can be used for another statement after one that failed with this error."""

    @property
    def connection(self) -> Any:
        """The driver's connection, opened now if need be."""
        if self._connection is None:
            with self._errors:
                self._connection = self._open()
            self.connects += 1
        return self._connection

    def fetch(self, statement: Statement, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        connection = self.connection
        deadline = Deadline(self.timeout, lambda: self._cut(connection))
        watchdog.watch(deadline)
        try:
            with self._errors:
                rows = self._execute(connection, statement, parameters)
            self.statements += 1
            return rows
        except BaseException as error:
            if not self._usable(connection, error):
                self.close()
            raise
        finally:
            watchdog.forget(deadline)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # it is gone either way
                connection.close()
