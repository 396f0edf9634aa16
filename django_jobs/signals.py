"""Signals: a job was enqueued, its attempt starts, its attempt is over and stored.

Who listens pays: without receivers nothing is made and nothing is read. A receiver that raises is logged and harms
nothing: not the enqueueing, not the job, not the worker. The sender is the job function
(:class:`~django_jobs.definitions.JobDefinition`), or None where no function is registered under the job's name (any
more)::

    @receiver(job_finished, sender=welcome)
    def tell(job, outcome, **kwargs): ...
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from django.db import connections, transaction
from django.dispatch import Signal

from django_jobs.store.rows import JobRow

logger = logging.getLogger("django_jobs.signals")

#: After the insert, in the caller's transaction: it may still roll back (use ``transaction.on_commit`` for what must
#: not happen then). Arguments: ``job``, the row as inserted; ``using``, the alias of its database. Of a duplicate, of
#: which nothing was inserted, nothing is sent. What receivers write is undone, and nothing else, when one of them
#: breaks the transaction.
job_enqueued = Signal()

#: In the executor, right before the call. Argument: ``job``, the row as claimed. What it takes is the job's time.
job_started = Signal()

#: After an attempt's outcome is stored, in the order of each job's attempts; not when the claim was lost. Arguments:
#: ``job``, the row as stored (and deleted with that, if such a job is not kept at all); ``outcome``: "completed",
#: "failed" (a dead letter), "retried", "snoozed" or "cancelled"; ``seconds`` that the attempt took; ``error``, its
#: class and message, or None. Sent by the thread that stores outcomes: a slow receiver holds that up, so leave long
#: work to a job.
job_finished = Signal()


def send(signal: Signal, name: str, **arguments: Any) -> None:
    """Send a signal about a job of that name; whatever a receiver raises is logged.

    :param name: the name in the row, by which the sender is found.
    """
    from django_jobs.job_registry import registry

    try:
        # Django logs an Exception of a receiver itself, with its traceback, and goes on to the next one.
        signal.send_robust(registry.get(name), **arguments)
    except BaseException:  # SystemExit and its like, which must not end the thread of an executor
        logger.exception("A receiver of a signal of job %s failed", name)


def send_enqueued(jobs: Iterable[JobRow], using: str) -> None:
    """Send :data:`job_enqueued` for each of the jobs, in the transaction that is open on ``using``, if one is."""
    inserted = [job for job in jobs if not job.is_duplicate]
    if not connections[using].in_atomic_block:
        for job in inserted:
            send(job_enqueued, job.name, job=job, using=using)
        return
    try:
        # In a savepoint: an error of the database in a receiver must not take the caller's transaction with it.
        with transaction.atomic(using=using):
            for job in inserted:
                send(job_enqueued, job.name, job=job, using=using)
    except Exception:
        logger.exception("A receiver of job_enqueued broke the transaction; what receivers wrote is undone")
