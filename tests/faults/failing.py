"""Statements that fail when told to, on the connections of a worker's own: as the driver would, before or after."""

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from django_jobs.store.sessions import OwnSession

BEFORE = "before it took effect"
AFTER = "after it took effect"


def closed(vendor: str) -> Exception:
    if vendor == "postgresql":
        import psycopg

        return psycopg.OperationalError("the connection is closed")
    return sqlite3.OperationalError("disk I/O error")


def locked(vendor: str) -> Exception:
    """Another one holds it for too long."""
    if vendor == "postgresql":
        import psycopg

        return psycopg.errors.LockNotAvailable("canceling statement due to lock timeout")
    return sqlite3.OperationalError("database is locked")


def deadlock(vendor: str) -> Exception:
    if vendor == "postgresql":
        import psycopg

        return psycopg.errors.DeadlockDetected("deadlock detected")
    return sqlite3.OperationalError("database table is locked")


def timed_out(vendor: str) -> Exception:
    """The server gives up this statement, and the connection is sound."""
    if vendor == "postgresql":
        import psycopg

        return psycopg.errors.QueryCanceled("canceling statement due to statement timeout")
    return sqlite3.OperationalError("interrupted")


class Failures:
    """Lets each statement of the worker fail once, at its ``nth`` run.

    :param make: the driver's error.
    :param place: ``BEFORE`` or ``AFTER``.
    :param only: the statements that fail; by default all.
    :param cuts: whether the connection is gone with it.
    """

    def __init__(
        self,
        make: Callable[[str], Exception],
        place: str,
        only: set[str] | None = None,
        cuts: bool = False,
        nth: int = 1,
    ) -> None:
        self.make = make
        self.place = place
        self.only = only
        self.cuts = cuts
        self.nth = nth
        self.runs: Counter[str] = Counter()
        self.failed: set[str] = set()
        self._lock = threading.Lock()

    def _is_due(self, name: str) -> bool:
        with self._lock:
            self.runs[name] += 1
            if name in self.failed or self.runs[name] < self.nth:
                return False
            if self.only is not None and name not in self.only:
                return False
            self.failed.add(name)
            return True

    def install(self, session: OwnSession) -> None:
        """Put it between a session and its driver."""
        execute = session._execute
        vendor = session.wrapper.vendor

        def fail(connection: Any) -> None:
            if self.cuts:
                connection.close()
            raise self.make(vendor)

        def run(connection: Any, statement: Any, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
            due = self._is_due(statement.name)
            if due and self.place == BEFORE:
                fail(connection)
            rows = execute(connection, statement, parameters)
            if due:
                fail(connection)
            return rows

        session._execute = run  # type: ignore[method-assign]
