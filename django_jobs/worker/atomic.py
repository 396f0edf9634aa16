"""``@job(atomic=True)``: the function and the completion of its job in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction

from django_jobs.context import JobContext
from django_jobs.exceptions import Cancel, Control, TimedOut
from django_jobs.worker.copies import copied, leave


def call(context: JobContext, function: Callable[[], Any]) -> Any:
    """Call ``function``, which is to complete the job of ``context``, in a transaction that also stores the completion.

    What it raises rolls back all that it wrote, and so does a word on its own outcome (a Snooze, say), raised or
    returned, or a return because it was told to end: the job is not completed then, and its effects must not stay.

    :raises ClaimLost: when the job is no longer this worker's; nothing is committed.
    """
    with transaction.atomic(using=context.using):
        job_id = None if context.job is None else context.job.id
        try:
            result = function()
        except BaseException as error:
            if copied:
                leave(error, job_id)
            raise
        if copied:  # a process that the job has forked: this transaction is the worker's
            leave(None, job_id)
        if issubclass(type(result), Control):
            raise result
        told = context.told()
        if told == "cancelled":
            raise Cancel("Cancelled by request.")
        if told == "late":
            raise TimedOut("It returned because its time was over; what it wrote is rolled back.")
        context.complete_once(result)
    return result
