"""What statements answer, beside the rows themselves."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from django_jobs.states import FINISHED
from django_jobs.store.rows import JobRow, ScheduleRow, WorkerRow


class Ended(NamedTuple):
    """What a finish stored for one job, or (``stored`` false) what it found instead."""

    id: int
    state: str
    stored: bool
    job: JobRow | None = None


class Retried(NamedTuple):
    """A job that was to be retried, as it now is; ``done`` says whether it was, else ``reason`` why not."""

    job: JobRow
    done: bool
    reason: str = ""


def retried(job: JobRow, done: bool) -> Retried:
    """What to tell of a job that was to be retried."""
    if done:
        return Retried(job, True)
    if job.state not in FINISHED:
        return Retried(job, False, f"It is {job.state}, not finished.")
    return Retried(job, False, f"Another job holds its unique key {job.unique_key!r}.")


class Cancelled(NamedTuple):
    """A job that was to be cancelled, as it now is; ``at_once`` says whether it waited, and is cancelled now."""

    job: JobRow
    at_once: bool


class Released(NamedTuple):
    """A job that was to be released, as it now is; ``done`` says whether it was, else ``reason`` why not."""

    job: JobRow
    done: bool
    reason: str = ""


class Updated(NamedTuple):
    """A job that was to be changed, as it now is; ``done`` says whether it was."""

    job: JobRow
    done: bool


class Merged(NamedTuple):
    """A job into whose metadata something was to be merged, as it now is; ``done`` false: there would be too much."""

    job: JobRow
    done: bool


class Ticked(NamedTuple):
    """A tick that was run; ``job`` is None when another live job holds the unique key of the one to insert."""

    schedule: ScheduleRow
    job: JobRow | None


class Heartbeat(NamedTuple):
    """What a worker learns from its heartbeat: its row, the database's time, what is paused, what is cancelled."""

    worker: WorkerRow
    now: dt.datetime
    paused: frozenset[str]
    cancelled: frozenset[int]


class HeldJob(NamedTuple):
    """What is told of a job that a worker has claimed, beside the worker."""

    worker_id: int
    id: int
    name: str
    queue_name: str
    attempt: int
    max_attempts: int
    attempted_at: dt.datetime | None
    cancel_requested_at: dt.datetime | None

    @property
    def state(self) -> str:
        """It runs."""
        return "running"
