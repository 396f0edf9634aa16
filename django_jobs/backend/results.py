"""A job's row as the Tasks framework's ``TaskResult``."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils import timezone

from django_jobs.backend.framework import Task, TaskError, TaskResult, TaskResultStatus
from django_jobs.exceptions import Cancel
from django_jobs.serialization import stored_timestamp
from django_jobs.states import State
from django_jobs.store.rows import JobRow

if TYPE_CHECKING:
    from django_jobs.backend.definitions import TaskDefinition

# What waits, for whatever, is ready to be executed, or to be executed again. Of the two words for an end a cancelled
# task gets the one that says it has no result.
STATUS = {
    State.PENDING: TaskResultStatus.READY,
    State.SCHEDULED: TaskResultStatus.READY,
    State.AVAILABLE: TaskResultStatus.READY,
    State.RUNNING: TaskResultStatus.RUNNING,
    State.COMPLETED: TaskResultStatus.SUCCESSFUL,
    State.FAILED: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,
}

# The key of the metadata under which a task with very many attempts keeps their workers: errors are bounded.
WORKERS = "task_workers"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsTaskResult(TaskResult):  # type: ignore[misc] # it is frozen, whatever its stub says
    """The result of a task on this queue."""

    #: Whether ``enqueue()`` found this one, which holds the unique key, instead of adding another.
    is_duplicate: bool = field(default=False, compare=False)


def result_of(row: JobRow, task: Task, backend: str) -> JobsTaskResult:
    """The task result of a row.

    :param task: as it was enqueued, or as :func:`task_of` tells it from the row.
    :param backend: the alias.
    """
    values: list[Any] = _list(row.args)
    kwargs: Any = row.kwargs
    status = STATUS[State(row.state)]
    workers = workers_of(row)
    result = JobsTaskResult(
        task=task,
        id=str(row.id),
        status=status,
        enqueued_at=_moment(row.created_at),
        started_at=_moment(_started_at(row)),
        finished_at=_moment(row.finalized_at),
        last_attempted_at=_moment(row.attempted_at),
        args=values,
        kwargs=kwargs if isinstance(kwargs, dict) else {},
        backend=backend,
        errors=_errors(row),
        worker_ids=[str(workers.get(attempt) or "unknown") for attempt in range(1, row.attempt + 1)],
        is_duplicate=row.is_duplicate,
    )
    if status == TaskResultStatus.SUCCESSFUL:
        object.__setattr__(result, "_return_value", row.result)
    return result


def task_of(row: JobRow, definition: TaskDefinition, backend: str) -> Task:
    """The task as it was enqueued, as far as the row tells."""
    task = definition.task
    changes: dict[str, Any] = {
        "backend": backend,
        "queue_name": row.queue_name,
        "priority": row.priority,
        "run_after": _moment(row.run_after) if _is_later(row) else None,
    }
    if hasattr(task, "max_attempts") and row.max_attempts != definition.most_attempts(backend):
        changes["max_attempts"] = row.max_attempts
    if all(getattr(task, name) == value for name, value in changes.items()):
        return task
    return replace(task, **changes)


def _is_later(row: JobRow) -> bool:
    # Somebody's SQL may have left either without a time.
    due: dt.datetime | None = row.run_after
    since: dt.datetime | None = row.created_at
    return due is not None and since is not None and due > since


def workers_of(row: JobRow) -> dict[int, int]:
    """The worker of each attempt, as far as it is known: by the errors, of which there is one for each that failed, by
    what was noted of attempts whose errors are dropped, and by the row."""
    metadata: Any = row.metadata
    noted: Any = metadata.get(WORKERS) if isinstance(metadata, dict) else None
    workers: dict[int, int] = {}
    if isinstance(noted, list) and len(noted) <= row.attempt:
        workers.update(enumerate(noted, start=1))
    # From the newest back to the first of this run: an operator's retry starts to count again.
    recent: dict[int, int] = {}
    last = row.attempt
    for error in reversed(_dicts(row.errors)):
        attempt = error.get("attempt")
        if not isinstance(attempt, int) or not 0 < attempt <= last:
            break
        recent.setdefault(attempt, error.get("worker"))
        last = attempt
    workers.update(recent)
    if row.attempt and row.worker_id is not None and row.state in (State.RUNNING, State.COMPLETED):
        workers[row.attempt] = row.worker_id
    return workers


def _started_at(row: JobRow) -> dt.datetime | None:
    """When the first attempt of this run began, as far as the errors tell."""
    earliest = row.attempted_at
    last = row.attempt
    for error in reversed(_dicts(row.errors)):
        attempt = error.get("attempt")
        if not isinstance(attempt, int) or not 0 < attempt <= last:
            break
        last = attempt
        at = stored_timestamp(error.get("attempted_at"))
        if at is not None and (earliest is None or at < earliest):
            earliest = at
    return earliest


def _errors(row: JobRow) -> list[TaskError]:
    errors = [_error(entry) for entry in _dicts(row.errors)]
    if row.state == State.CANCELLED and not any(error.exception_class_path == CANCELLED for error in errors):
        errors.append(TaskError(exception_class_path=CANCELLED, traceback=f"{CANCELLED}\n"))
    return errors


CANCELLED = f"{Cancel.__module__}.{Cancel.__qualname__}"


def _error(entry: dict[str, Any]) -> TaskError:
    name, message = str(entry.get("class", "")), str(entry.get("message", ""))
    path = name if "." in name else f"builtins.{name}"
    trace = str(entry.get("traceback") or "") or (f"{name}: {message}\n" if message else f"{name}\n")
    return TaskError(exception_class_path=path, traceback=trace)


def _moment(moment: dt.datetime | None) -> dt.datetime | None:
    """As ``timezone.now()`` gives moments: aware, unless the site says otherwise."""
    if moment is None or settings.USE_TZ:
        return moment
    return timezone.make_naive(moment, timezone.get_default_timezone())


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in _list(value) if isinstance(entry, dict)]
