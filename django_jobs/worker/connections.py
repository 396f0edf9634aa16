"""Django's connections of an executor thread: kept from job to job while they are sound and in use."""

from __future__ import annotations

import logging
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
    """The threads in which Django has opened a connection. Most no-op jobs touch no database; asking Django's handler
    for this thread's connections costs more than all else that is done for such a job."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        connection_created.connect(self.note, dispatch_uid="django_jobs.worker.connections")

    def note(self, **kwargs: Any) -> None:
        """A connection was opened in this thread."""
        self.threads.add(threading.get_ident())


_opened = _Opened()


def tidy() -> bool:
    """After a job: leave the thread with sound connections, and no queries logged. Whether it has connections.

    A connection that the job left in a transaction, with autocommit off, broken, or after an error that may have
    broken it, is thrown away together with its wrapper, which remembers such things.
    """
    if threading.get_ident() not in _opened.threads:
        return False
    wrappers = connections.all(initialized_only=True)
    for wrapper in wrappers:
        if wrapper.queries_log:
            wrapper.queries_log.clear()
        if not _sound(wrapper):
            discard(wrapper)
    return bool(wrappers)


def _sound(wrapper: Any) -> bool:
    if wrapper.in_atomic_block or wrapper.closed_in_transaction or wrapper.needs_rollback:
        return False
    raw = wrapper.connection
    if raw is None:
        return True
    if not wrapper.autocommit:
        return bool(wrapper.settings_dict["AUTOCOMMIT"] is False)
    if wrapper.vendor == "postgresql":
        if raw.pgconn.transaction_status != 0:  # not IDLE: in a transaction, in an aborted one, or broken
            return False
    elif wrapper.vendor == "sqlite" and raw.in_transaction:
        return False
    if wrapper.errors_occurred:
        if not wrapper.is_usable():
            return False
        wrapper.errors_occurred = False
    return True


def discard(wrapper: Any) -> None:
    """Close a connection whatever its state, and forget its wrapper; the next job gets new ones."""
    raw, wrapper.connection = wrapper.connection, None
    if raw is not None:
        try:
            raw.close()
        except Exception as error:
            logger.debug("A connection that is thrown away could not be closed: %s", error)
    del connections[wrapper.alias]


def ask_before_use() -> None:
    """Let the next use of each connection of this thread find out first whether the server is still there."""
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is not None:
            wrapper.health_check_enabled = True
            wrapper.health_check_done = False


def close_expired() -> None:
    """Close connections older than a positive ``CONN_MAX_AGE``."""
    for wrapper in connections.all(initialized_only=True):
        age = wrapper.settings_dict.get("CONN_MAX_AGE")
        if age and wrapper.close_at is not None and time.monotonic() >= wrapper.close_at:
            wrapper.close()


def close_all() -> None:
    """Close the connections of this thread, whatever their state."""
    for wrapper in connections.all(initialized_only=True):
        discard(wrapper)
    _opened.threads.discard(threading.get_ident())
