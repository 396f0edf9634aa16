"""The last writes of a stop: one lost connection should not cost a lease, or attempts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import Error as DatabaseError

from django_jobs.worker.parts import one_line, pause_after, until

logger = logging.getLogger("django_jobs.worker")

# How often one of them is tried.
TRIES = 3

T = TypeVar("T")


def insistently(write: Callable[[], T], end: float) -> T:
    """Do it, and again if need be, until ``end`` on the monotonic clock; raise what the last try has raised."""
    failures = 0
    while True:
        try:
            return write()
        except (DatabaseError, OSError) as error:
            failures += 1
            if failures >= TRIES or not until(end):
                raise
            logger.debug("One of the last writes is tried again: %s", one_line(error))
            time.sleep(min(pause_after(failures), until(end)))
