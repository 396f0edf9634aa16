"""Connections to PostgreSQL: the worker's own, and how values are read from any."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psycopg
from psycopg import ClientCursor
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import TextLoader

from django_jobs import conf
from django_jobs.store.sessions import OwnSession
from django_jobs.store.statements import Statement

CHANNEL = "django_jobs"

_LISTEN = Statement("listen", f"LISTEN {CHANNEL}", "")

# These are our own statements, of which we know that they go by an index. Statistics of a queue are stale as a rule,
# and a plan by them can be slower by a factor of a hundred; so the ways that are never right are closed.
_SETTINGS = {
    "TimeZone": "UTC",
    # What the role or the database may have set otherwise: moments as they are read, arrays as they are written, and
    # that a connection which waits for work is not ended for that.
    "DateStyle": "ISO, MDY",
    "array_nulls": "on",
    "idle_session_timeout": "0",
    "default_transaction_isolation": "read committed",
    "jit": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
}
# Of these the ones that can be set for a single transaction, and are worth it with each statement.
_POOLED_SETTINGS = {
    name: value
    for name, value in _SETTINGS.items()
    if name
    not in (
        "default_transaction_isolation",
        "plan_cache_mode",
        "DateStyle",
        "array_nulls",
        "idle_session_timeout",
    )
}


def read_as_text(context: Any) -> None:
    """Let a psycopg connection or cursor return times and JSON as the text that they are; rows decode when asked."""
    context.adapters.register_loader("timestamptz", TextLoader)
    context.adapters.register_loader("json", TextLoader)


class PostgreSQLSession(OwnSession):
    """A connection of the worker's own.

    Behind a pooler in transaction mode (``DJANGO_JOBS["PREPARED_STATEMENTS"]`` is False) a session is lent another
    server connection for each transaction, and what it sets on one stays there, for whoever is lent that next. So there
    the settings go with each statement and end with it: both are one message, which is one transaction.

    :param direct: whether nothing of that kind stands between, whatever the setting says.
    """

    _heard: Any = None  # the connection that a notification came from last

    def __init__(self, alias: str, timeout: float, direct: bool = False) -> None:
        super().__init__(alias, timeout)
        self.pooled = not direct and not conf.get("PREPARED_STATEMENTS")

    def _open(self) -> psycopg.Connection[tuple[Any, ...]]:
        parameters = self.wrapper.get_connection_params()
        for key in ("cursor_factory", "context", "prepare_threshold"):
            parameters.pop(key, None)
        parameters.setdefault("connect_timeout", max(2, int(min(self.timeout, 10))))
        # The server and the kernel notice a dead peer; the deadline of each statement notices the rest.
        parameters.setdefault("keepalives_idle", 10)
        parameters.setdefault("keepalives_interval", 5)
        parameters.setdefault("keepalives_count", 3)
        parameters.setdefault("tcp_user_timeout", int(self.timeout * 1000))
        parameters.setdefault("application_name", "django_jobs")
        connection = psycopg.connect(**parameters, autocommit=True)
        connection.prepare_threshold = None if self.pooled else 0
        read_as_text(connection)
        # One type for all whole numbers, else each size of number would be another prepared statement.
        connection.adapters.register_dumper(int, Int8Dumper)
        if self.pooled:
            self._before = ClientCursor(connection).mogrify(*self._set(_POOLED_SETTINGS, local=True)) + ";"
        else:
            connection.execute(*self._set(_SETTINGS, local=False))
        return connection

    def _set(self, settings: Mapping[str, str], local: bool) -> tuple[str, list[Any]]:
        """The statement that sets how statements run, for the session or for the transaction alone."""
        chosen = {
            **settings,
            "statement_timeout": str(int(self.timeout * 1000)),
            "lock_timeout": str(int(self.lock_timeout * 1000)),
        }
        if role := self.wrapper.settings_dict["OPTIONS"].get("assume_role"):
            chosen["role"] = role
        text = "SELECT " + ", ".join(["set_config(%s, %s, %s)"] * len(chosen))
        return text, [part for name, value in chosen.items() for part in (name, value, local)]

    def _execute(
        self, connection: Any, statement: Statement, parameters: dict[str, Any]
    ) -> list[tuple[Any, ...]]:
        if self.pooled:
            cursor = ClientCursor(connection)
            cursor.execute(self._before + statement.pyformat, parameters)
            cursor.nextset()
        else:
            cursor = connection.execute(statement.pyformat, parameters)
        return cursor.fetchall() if cursor.description else []

    def _cut(self, connection: Any) -> None:
        # On a duplicate of the socket, so that the driver's own descriptor is never closed under it.
        with socket.socket(fileno=os.dup(connection.pgconn.socket)) as copy:
            copy.shutdown(socket.SHUT_RDWR)

    def _usable(self, connection: Any, error: BaseException) -> bool:
        # A server that takes no writes any more was made a standby: the next connection may find the one that does.
        if isinstance(error.__cause__, psycopg.errors.ReadOnlySqlTransaction):
            return False
        return not connection.closed and connection.info.transaction_status == 0  # IDLE

    def listen(self, timeout: float, on_listening: Callable[[], None] = lambda: None) -> Iterator[str]:
        """Listen for wake-ups: the hints that came within ``timeout`` seconds, or earlier when one came.

        :param on_listening: called when the server is known to be there and nothing is missed from now on.
        """
        if self.connection is not self._heard:
            # New, or silent for a while. LISTEN (again) also asks the server, by a deadline, whether it is there.
            self.fetch(_LISTEN, {})
            on_listening()
        self._heard = None
        with self._errors:
            for notification in self.connection.notifies(timeout=timeout, stop_after=1):
                self._heard = self._connection
                yield notification.payload

    def cut(self) -> None:
        """Make whatever waits on the connection fail now; from another thread."""
        if self._connection is not None:
            self._cut(self._connection)
