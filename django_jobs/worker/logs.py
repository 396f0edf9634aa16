"""Logging that never fails who logs: a handler of the site's, or one whose stream a job has closed, may raise."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Callable

NAME = "django_jobs"

_guarded: set[str] = set()
_told = threading.Event()


def guard_logs() -> None:
    """Let the loggers of this package swallow what handlers and filters raise; the first time, stderr is told.

    Else one that fails would end the part of the worker that logs: a thread, and with it the worker's heartbeat, or
    what is still to be done with jobs that were found. To be called when a worker starts, and again does no harm.
    """
    loggers = list(logging.root.manager.loggerDict.items())
    for name, logger in loggers:
        if name.partition(".")[0] == NAME and isinstance(logger, logging.Logger) and name not in _guarded:
            _guarded.add(name)
            logger.handle = _swallowing(logger.handle)  # type: ignore[method-assign, assignment]


def _swallowing(handle: Callable[[logging.LogRecord], None]) -> Callable[[logging.LogRecord], None]:
    def handle_or_not(record: logging.LogRecord) -> None:
        try:
            try:
                handle(record)
            except Exception:
                if not record.exc_info:
                    raise
                # It may be the exception that fails at being told.
                record.msg, record.args = f"{record.getMessage()} (what it was can't be told)", None
                record.exc_info = record.exc_text = None
                handle(record)
        except Exception as error:  # nobody could be told but by a log
            _tell_once(error)

    return handle_or_not


def _tell_once(error: Exception) -> None:
    if not _told.is_set():
        _told.set()
        with contextlib.suppress(Exception):  # a job may have closed that, too
            print(f"A logging handler fails, and what is logged is lost: {error!r}", file=sys.__stderr__)
