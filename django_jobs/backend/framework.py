"""The Tasks framework: Django's own (6.0 and later), else the package django-tasks, which has the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import django

if TYPE_CHECKING:
    from django.tasks import TaskContext, TaskResultStatus, signals, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task as _Task, TaskError, TaskResult as _TaskResult
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
    from django.utils.json import normalize_json

    Task: TypeAlias = _Task[..., Any]
    TaskResult: TypeAlias = _TaskResult[..., Any]
elif django.VERSION >= (6, 0):
    from django.tasks import TaskContext, TaskResult, TaskResultStatus, signals, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskError
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
    from django.utils.json import normalize_json
else:
    try:
        from django_tasks import TaskContext, TaskResult, TaskResultStatus, signals, task_backends
    except ImportError as error:
        raise ImportError(
            "django_jobs.backend needs Django 6.0 or later, or the package django-tasks: "
            "pip install 'django-runjobs[tasks]'. (@job needs neither.)"
        ) from error
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskError
    from django_tasks.exceptions import InvalidTaskError as InvalidTask, TaskResultDoesNotExist
    from django_tasks.utils import normalize_json

__all__ = [
    "BaseTaskBackend",
    "InvalidTask",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultStatus",
    "normalize_json",
    "signals",
    "task_backends",
]
