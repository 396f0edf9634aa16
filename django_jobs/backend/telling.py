"""The framework's signals: a task was enqueued, starts, is finished. A receiver that raises is logged, and harms
nothing else."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.db import connections, transaction
from django.dispatch import Signal

from django_jobs.backend.framework import BaseTaskBackend, Task, signals, task_backends
from django_jobs.backend.results import JobsTaskResult, result_of, task_of
from django_jobs.states import FINISHED
from django_jobs.store.rows import JobRow

if TYPE_CHECKING:
    from django_jobs.backend.definitions import TaskDefinition

logger = logging.getLogger("django_jobs.signals")

# The framework's own receivers, one of each signal, write log lines and use no database.
_LOGGERS = 1


def may_query(signal: Signal) -> bool:
    """Whether there are receivers that may use the database."""
    return len(signal.receivers) > _LOGGERS


def backend_named(alias: str) -> BaseTaskBackend:
    """The backend with this alias."""
    backend: BaseTaskBackend = task_backends[alias]
    return backend


def backend_for(row: JobRow, task: Task, using: str) -> BaseTaskBackend:
    """The backend that a job belongs to: the task's own if that can be, else the first one that serves its queue in
    its database."""
    from django_jobs.backend.jobs_backend import JobsBackend

    aliases = [task.backend, *(alias for alias in task_backends if alias != task.backend)]
    backends = [backend for alias in aliases if isinstance(backend := task_backends[alias], JobsBackend)]
    for backend in backends:
        if backend.holds(row.queue_name, using):
            return backend
    return backends[0] if backends else backend_named(task.backend)


def enqueued(backend: BaseTaskBackend, result: JobsTaskResult, using: str) -> None:
    """Send ``task_enqueued``, in the transaction that is open on ``using``, if one is."""
    if not may_query(signals.task_enqueued) or not connections[using].in_atomic_block:
        _send(signals.task_enqueued, backend, result)
        return
    try:
        # In a savepoint: an error of the database in a receiver must not take the caller's transaction with it.
        with transaction.atomic(using=using):
            _send(signals.task_enqueued, backend, result)
    except Exception:
        logger.exception("A receiver of task_enqueued broke the transaction; what receivers wrote is undone")


def started(definition: TaskDefinition, job: JobRow, using: str) -> JobsTaskResult:
    """Send ``task_started``, and return the result as it is now."""
    backend = backend_for(job, definition.task, using)
    result = result_of(job, task_of(job, definition, backend.alias), backend.alias)
    if not may_query(signals.task_started) or not connections[using].in_atomic_block:
        _send(signals.task_started, backend, result)
        return result
    try:
        with transaction.atomic(using=using):  # a task's own transaction, by atomic=True
            _send(signals.task_started, backend, result)
    except Exception:
        logger.exception("A receiver of task_started broke the transaction; what receivers wrote is undone")
    return result


def stored(
    definition: TaskDefinition, job: JobRow, error: BaseException | None, message: str | None, using: str
) -> None:
    """Send ``task_finished``, if that was the end: an attempt that is followed by another one finishes nothing.

    Of a failure in an ``except`` block, with the exception: the framework's logger asks for it by ``sys.exc_info()``.
    """
    if job.state not in FINISHED:
        return
    backend = backend_for(job, definition.task, using)
    result = result_of(job, task_of(job, definition, backend.alias), backend.alias)
    if job.state == "completed":
        _send(signals.task_finished, backend, result)
        return
    error = error or RuntimeError(message or job.state)
    trace = error.__traceback__
    try:
        raise error
    except BaseException:  # noqa: BLE001 - it is what the task has raised, whatever that is
        error.__traceback__ = trace
        _send(signals.task_finished, backend, result)


def _send(signal: Signal, backend: BaseTaskBackend, result: Any) -> None:
    try:
        signal.send_robust(type(backend), task_result=result)
    except BaseException:  # SystemExit and its like, which must not end the thread of an executor
        logger.exception("A receiver of a signal of task %s failed", result.id)
