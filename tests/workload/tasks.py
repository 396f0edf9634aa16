"""Tasks of Django's framework, for the tests of the backend: found by workers as those of any app."""

import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import django

from django_jobs import current_job
from django_jobs.backend import JobsTask

if django.VERSION >= (6, 0):
    from django.tasks import TaskContext, task
else:
    from django_tasks import TaskContext, task

#: What ran, for tests that run the worker in this process.
ran: list[Any] = []


@task
def noop(*args: Any, **kwargs: Any) -> None:
    pass


@task(priority=5)
async def noop_async(*args: Any, **kwargs: Any) -> None:
    pass


@task
def echo(value: Any = None) -> Any:
    return value


@task
async def echo_async(value: Any = None) -> Any:
    return value


@task
def record(value: Any = None) -> None:
    ran.append(value)


@task
def fail(message: str = "no") -> None:
    raise ValueError(message)


@task
async def fail_async(message: str = "no") -> None:
    raise ValueError(message)


@task
def exit_process() -> None:
    sys.exit("the task exits")


@task
def unwritable() -> Any:
    return threading.Lock()


@task
def odd_keys() -> Any:
    return {1: (b"text", range(2)), None: True}


@task
async def odd_keys_async() -> Any:
    return odd_keys.func()


@task(takes_context=True)
def attempts_and_id(context: TaskContext) -> list[Any]:
    result = context.task_result
    return [context.attempt, result.attempts, result.id, str(result.status), result.worker_ids, result.args]


@task(takes_context=True)
async def context_async(context: TaskContext, value: int) -> list[Any]:
    return [context.attempt, context.task_result.id, value]


@task
def snooze() -> None:
    context = current_job()
    assert context is not None
    context.snooze(3600)


@task
def cancel() -> None:
    context = current_job()
    assert context is not None
    context.cancel("not needed")


@task(backend="dummy")
def elsewhere(value: int = 0) -> int:
    return value + 1


def _options(**options: Any) -> Callable[..., Any]:
    """``@task(max_attempts=...)``; on Django 6.0, whose decorator passes none on, what that makes of it."""
    if (6, 0) <= django.VERSION < (6, 1):
        return partial(_task_of, options)
    return task(**options)


def _task_of(options: dict[str, Any], function: Callable[..., Any]) -> JobsTask:
    return JobsTask(func=function, **options)


@_options(max_attempts=3, backoff=0, give_up_on=[LookupError], unique="thing:{number}", timeout=60)
def with_options(number: int = 0) -> int:
    if number < 0:
        raise LookupError(number)
    if number > 0:
        raise ValueError(number)
    return number


@_options(max_attempts=40, backoff=0)
def fail_often() -> None:
    raise ValueError("again")


@_options(atomic=True)
def fail_atomically() -> None:
    from tests.workload.models import Effect

    Effect.objects.create(job_id=1, claims=1, pid=1)
    raise ValueError("undone")
