"""A job followed to its end: its row read again, once or until the job is finished."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.transaction import TransactionManagementError

from django_jobs.serialization import shown

if TYPE_CHECKING:
    from django_jobs.store.rows import JobRow

Row = TypeVar("Row", bound="JobRow")

# The row is read again after this long, then after a half longer each time.
SHORTEST_PAUSE = 0.01
LONGEST_PAUSE = 0.25


def alias_of(job: JobRow, using: str | None) -> str:
    """The database that the job is in: as said, or as it was enqueued, or where jobs are."""
    from django_jobs.databases import jobs_database

    return jobs_database(using or getattr(job, "using", None))


def refresh(job: Row, using: str | None) -> Row:
    """See :meth:`~django_jobs.store.rows.JobRow.refresh`."""
    from django_jobs.models import Job
    from django_jobs.store import django_store

    alias = alias_of(job, using)
    rows = django_store(alias).get([job.id])
    if not rows:
        raise Job.DoesNotExist(
            f"There is no job {job.id} in database {alias!r} any more; it was deleted or purged."
        )
    job.values = rows[0].values
    return job


async def arefresh(job: Row, using: str | None) -> Row:
    """See :meth:`~django_jobs.store.rows.JobRow.arefresh`."""
    return await sync_to_async(refresh)(job, using)


def wait(job: Row, timeout: float | None, using: str | None) -> Row:
    """See :meth:`~django_jobs.store.rows.JobRow.wait`."""
    for pause in _pauses(job, timeout):
        if _is_over(job, using):
            return job
        time.sleep(pause)
    return job


async def await_end(job: Row, timeout: float | None, using: str | None) -> Row:  # noqa: ASYNC109 - as wait()
    """See :meth:`~django_jobs.store.rows.JobRow.await_end`."""
    look = sync_to_async(_is_over)
    for pause in _pauses(job, timeout):
        if await look(job, using):
            return job
        await asyncio.sleep(pause)
    return job


def _is_over(job: JobRow, using: str | None) -> bool:
    refresh(job, using)
    if job.is_finished:
        return True
    alias = alias_of(job, using)
    if connections[alias].in_atomic_block:
        raise TransactionManagementError(
            f"Job {job.id} is {job.state}, and can't be waited for inside transaction.atomic(): a worker sees what you "
            f"enqueue when it is committed. Wait after the block."
        )
    return False


def _pauses(job: JobRow, timeout: float | None) -> Iterator[float]:
    """How long to pause after each look. Raises TimeoutError when the time is over."""
    given: Any = timeout
    if given is not None and (
        not isinstance(given, int | float) or isinstance(given, bool) or math.isnan(given)
    ):
        raise TypeError(f"wait(timeout={shown(given)}): it must be a number of seconds, or None.")
    end = None if timeout is None else time.monotonic() + timeout
    pause = SHORTEST_PAUSE
    while True:
        left = None if end is None else end - time.monotonic()
        yield pause if left is None else max(0.0, min(pause, left))
        if left is not None and left <= 0:
            raise TimeoutError(f"Job {job.id} is {job.state}, and not finished after {timeout:g} seconds.")
        pause = min(pause * 1.5, LONGEST_PAUSE)
