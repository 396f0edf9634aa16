"""The jobs of the load: one for each way that a job can go."""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
import threading
import time
from typing import Any

from django.db import connection

from benchmarks.soaking.mix import EFFECTS, TICK_SECONDS
from django_jobs import JobContext, job, periodic


@job
def plain(number: int) -> None:
    """Nothing."""


@job
def short(number: int) -> None:  # noqa: ARG001
    """Some milliseconds of waiting, as for a small query."""
    time.sleep(0.005)


@job
def result(number: int) -> dict[str, Any]:
    """A result that is stored."""
    return {"number": number, "text": "x" * 200}


@job
async def asynchronous(number: int) -> None:  # noqa: ARG001
    """On the event loop."""
    await asyncio.sleep(0.02)


@job(takes_context=True, atomic=True)
def atomic(context: JobContext) -> None:
    """An effect that is committed with the completion."""
    leave_effect(context)


@job(takes_context=True, queue_name="unkept")
def unkept(context: JobContext) -> None:
    """Its row is deleted as it ends, so it leaves something else."""
    leave_effect(context)


@job(takes_context=True, backoff=1)
def retried(context: JobContext) -> None:
    """Fails once."""
    if context.attempt == 1:
        raise ValueError("the first attempt fails")


@job(max_attempts=2, backoff=0.5)
def failing(number: int) -> None:
    """Fails for good."""
    raise ValueError(f"this one fails: {number}")


@job(takes_context=True)
def snoozed(context: JobContext) -> None:
    """Comes back later, once."""
    assert context.job is not None
    if "snoozed" not in context.job.metadata:
        context.merge_metadata({"snoozed": True})
        context.snooze(1)


@job(unique="soak:{key}")
def unique(key: int) -> None:  # noqa: ARG001
    """At most one of each key."""
    time.sleep(0.005)


@job(takes_context=True)
def told(context: JobContext) -> None:
    """Runs until it is told that it is cancelled."""
    pause = threading.Event()
    deadline = time.monotonic() + 30
    while not context.should_stop():
        if time.monotonic() > deadline:
            raise TimeoutError("was not told to stop")
        pause.wait(0.05)


@job
def probe(address: str, number: int) -> None:
    """Tell when it started."""
    now = time.time()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(f"{number} {now!r}".encode(), address)


@periodic(every=dt.timedelta(seconds=TICK_SECONDS))
@job
def tick() -> None:
    """What a schedule enqueues."""


def leave_effect(context: JobContext) -> None:
    """Write a row."""
    assert context.job is not None
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {EFFECTS} (job_id) VALUES (%s)", [context.job.id])
