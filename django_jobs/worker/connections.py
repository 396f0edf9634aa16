"""Django's connections of an executor thread: kept from job to job while they are sound and in use."""

from __future__ import annotations

import logging
import select
import threading
import time
from typing import Any

from django.db import connections
from django.db.backends.signals import connection_created

logger = logging.getLogger("django_jobs.worker")

# A connection that no job of the thread has used for so long is closed; idle workers hold none.
KEEP_SECONDS = 60.0
# After so long without use, the next use asks first whether the server is still there.
TRUST_SECONDS = 5.0


class _Opened:
    """The threads in which Django has opened a connection.

    A job that touches no database should not pay for those that do, and to ask Django's handler for the connections of
    a thread costs more than all else that is done around a job.
    """

    def __init__(self) -> None:
        self.threads: set[int] = set()
        connection_created.connect(self.note, dispatch_uid="django_jobs.worker.connections")

    def note(self, **kwargs: Any) -> None:
        """A connection was opened in this thread."""
        self.threads.add(threading.get_ident())


_opened = _Opened()


def tidy() -> bool:
    """After a job: leave the thread with sound connections, and no queries logged. Whether any is kept. Never raises.

    A connection that the job left in a transaction, with autocommit off, broken, or after an error that may have
    broken it, is thrown away together with its wrapper, which remembers such things. One of a pool is put back into it:
    there are fewer than executors, and others wait.
    """
    if threading.get_ident() not in _opened.threads:
        return False
    kept = False
    for wrapper in connections.all(initialized_only=True):
        if wrapper.queries_log:
            wrapper.queries_log.clear()
        try:
            if not _sound(wrapper):
                discard(wrapper)
            elif wrapper.connection is not None:
                if wrapper.settings_dict["OPTIONS"].get("pool") or _is_expired(wrapper):
                    wrapper.close()
                else:
                    kept = True
        except Exception as error:
            logger.debug("A connection can't be looked at, and is thrown away: %s", error)
            discard(wrapper)
    return kept


def _sound(wrapper: Any) -> bool:
    if wrapper.in_atomic_block or wrapper.closed_in_transaction or wrapper.needs_rollback:
        return False
    raw = wrapper.connection
    if raw is None:
        return True
    if not wrapper.autocommit and wrapper.settings_dict["AUTOCOMMIT"]:
        return False
    if wrapper.vendor == "postgresql":
        if raw.pgconn.transaction_status != 0:  # not IDLE: in a transaction, in an aborted one, or broken
            return False
        # The server has nothing to say unasked, but that it ends the session.
        if _has_input(raw.pgconn.socket):
            return False
    elif wrapper.vendor == "sqlite" and raw.in_transaction:
        return False
    if wrapper.errors_occurred:
        if not wrapper.is_usable() or _is_read_only(wrapper):
            return False
        wrapper.errors_occurred = False
    return True


def _is_read_only(wrapper: Any) -> bool:
    """Whether the server takes no writes: after a failover the next connection may find the one that does."""
    if wrapper.vendor != "postgresql":
        return False
    return bool(wrapper.connection.execute("SHOW transaction_read_only").fetchone()[0] == "on")


def _has_input(descriptor: int) -> bool:
    """Whether there is something to read on a socket, its end included."""
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def discard(wrapper: Any) -> None:
    """Close a connection whatever its state, and forget its wrapper; the next job gets new ones."""
    raw, wrapper.connection = wrapper.connection, None
    if raw is not None:
        try:
            raw.close()
            pool = getattr(raw, "_pool", None)
            if pool is not None:
                pool.putconn(raw)  # which sees that it is closed, and makes another one
        except Exception as error:
            logger.debug("A connection that is thrown away could not be closed: %s", error)
    del connections[wrapper.alias]


def ask_before_use() -> None:
    """Let the next use of each connection of this thread find out first whether the server is still there."""
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is not None:
            wrapper.health_check_enabled = True  # type: ignore[attr-defined]
            wrapper.health_check_done = False  # type: ignore[attr-defined]


def _is_expired(wrapper: Any) -> bool:
    """Whether the connection is older than a positive ``CONN_MAX_AGE``; 0 does not mean a reconnect for each job."""
    return bool(
        wrapper.close_at is not None
        and wrapper.settings_dict.get("CONN_MAX_AGE")
        and time.monotonic() >= wrapper.close_at
    )


def close_all() -> None:
    """Close the connections of this thread, whatever their state."""
    for wrapper in connections.all(initialized_only=True):
        discard(wrapper)
    _opened.threads.discard(threading.get_ident())
