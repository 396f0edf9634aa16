"""An attempt that is over."""

from __future__ import annotations

from typing import NamedTuple

from django_jobs.store.rows import JobRow, Outcome

# The error class of an attempt that took longer than its timeout.
TIMED_OUT = "django_jobs.TimedOut"
# That of a job whose name this worker does not know.
UNREGISTERED = "django_jobs.NotRegistered"


class Attempted(NamedTuple):
    """An attempt that is over: its outcome, to be stored, and what a log line says of it."""

    outcome: Outcome
    job: JobRow
    seconds: float
    error: str | None = None
    trace: str | None = None
    #: What is to be merged into the job's metadata first, as JSON.
    metadata: str | None = None
    #: The job stored its completion itself, in a transaction that is committed.
    stored: bool = False
    #: What it raised, where the job's definition is told of that; it holds all that it happened in.
    exception: BaseException | None = None
