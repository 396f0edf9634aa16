"""The jobs: each notes in its process's journal that it began, and that it came to its end."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from django_jobs import JobContext, job
from tests.chaos.journal import note
from tests.workload.models import Effect

# So many that no number of lost workers uses them up: what ends as a dead letter was meant to.
MANY = 1000


@contextmanager
def run_of(context: JobContext) -> Iterator[None]:
    assert context.job is not None
    claim = {"id": context.job.id, "claims": context.job.claims}
    note("began", attempt=context.attempt, **claim)
    try:
        yield
    except BaseException:
        note("raised", **claim)
        raise
    note("ended", **claim)


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


@job(takes_context=True, backoff=0.2, max_attempts=MANY)
def plain(context: JobContext, token: str) -> None:
    with run_of(context):
        pass


@job(takes_context=True, backoff=0.2, max_attempts=MANY, queue_name="slow")
def slow(context: JobContext, token: str, seconds: float) -> str:
    """Ends early when it is told to."""
    with run_of(context):
        for _ in range(int(seconds / 0.05) + 1):
            if context.should_stop():
                return "told"
            pause(0.05)
        return "done"


@job(takes_context=True, backoff=0.1, max_attempts=MANY)
def flaky(context: JobContext, token: str, failures: int) -> None:
    with run_of(context):
        if context.attempt <= failures:
            raise ValueError("not yet")


@job(takes_context=True, backoff=0.1, max_attempts=2)
def doomed(context: JobContext, token: str) -> None:
    """Fails, always."""
    with run_of(context):
        raise ValueError("never")


@job(takes_context=True, backoff=0.2, max_attempts=MANY, atomic=True, timeout=4, queue_name="effects")
def effect(context: JobContext, token: str, seconds: float) -> None:
    """What it writes is committed with its completion, a while later."""
    with run_of(context):
        _leave_effect(context)
        pause(seconds)


@job(takes_context=True, backoff=0.2, max_attempts=MANY, timeout=4, queue_name="effects")
def effect_by_hand(context: JobContext, token: str, seconds: float) -> None:
    """The same; it fails afterwards every other time, which changes nothing."""
    assert context.job is not None
    with run_of(context), transaction.atomic():
        _leave_effect(context)
        pause(seconds)
        context.complete()
        pause(seconds)
    if context.job.id % 2:
        raise ValueError("after the completion")


def _leave_effect(context: JobContext) -> None:
    assert context.job is not None
    Effect.objects.create(job_id=context.job.id, claims=context.job.claims, pid=os.getpid())


@job(takes_context=True, backoff=0.2, max_attempts=MANY, unique="chaos:{key}")
def unique(context: JobContext, token: str, key: int) -> None:
    with run_of(context):
        pause(0.02)


@job(takes_context=True, backoff=0.2, max_attempts=MANY)
def snoozing(context: JobContext, token: str) -> None:
    assert context.job is not None
    with run_of(context):
        if context.job.claims == 1:
            context.snooze(0.3)


@job(takes_context=True, backoff=0.2, max_attempts=MANY)
async def asynchronous(context: JobContext, token: str) -> None:
    with run_of(context):
        await asyncio.sleep(0.05)


@job(takes_context=True, backoff=0.2, max_attempts=MANY, timeout=0.5, queue_name="slow")
def late(context: JobContext, token: str) -> None:
    """Outlives its timeout and the grace after it, deaf to all, at its first run."""
    assert context.job is not None
    with run_of(context):
        pause(2.5 if context.job.claims == 1 else 0.0)


@job(takes_context=True, backoff=0.2, max_attempts=MANY, queue_name="effects", timeout=4)
def rude(context: JobContext, token: str) -> None:
    """Leaves the connection behind in a transaction, broken, or closed."""
    assert context.job is not None
    with run_of(context):
        how = context.job.id % 3
        if how == 0:
            connection.set_autocommit(False)
            Effect.objects.filter(pk=0).update(pid=1)
        elif how == 1:
            transaction.atomic().__enter__()
            Effect.objects.filter(pk=0).update(pid=1)
        else:
            connection.ensure_connection()
            assert connection.connection is not None
            connection.connection.close()


@job(takes_context=True, max_attempts=2, queue_name="poison")
def poison(context: JobContext, token: str) -> None:
    """Kills its process, always."""
    with run_of(context):
        os.kill(os.getpid(), signal.SIGKILL)
