"""Tasks that are declared, but not for this queue's backend by default: found when a row names one.

``@task(backend="other")`` makes a task that this queue never hears of, until ``.using(backend=...)`` sends it here; a
worker then meets its name first in a row. Nothing is imported for it: only what an import has put under that name, and
is a task, counts.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_jobs.definitions import JobDefinition


def find(name: Any) -> JobDefinition[Any, Any] | None:
    """The definition of the task that a module, imported already, has at this dotted path; else None."""
    if "django.tasks.base" not in sys.modules and "django_tasks.base" not in sys.modules:
        return None
    task = (
        _value_at(name) if isinstance(name, str) else None
    )  # somebody's SQL may have written anything there
    if task is None:
        return None
    from django_jobs.backend import framework

    if not isinstance(task, framework.Task) or task.module_path != name or not _has_backend():
        return None
    from django_jobs.backend.definitions import definition_of

    try:
        return definition_of(task)
    except framework.InvalidTask:
        return None


def _value_at(path: str) -> Any:
    """What stands there, by the modules' and classes' own dictionaries: a ``__getattr__`` could import anything."""
    module, _, rest = path.rpartition(".")
    names = [rest]
    while module and module not in sys.modules:
        module, _, rest = module.rpartition(".")
        names.insert(0, rest)
    value: Any = sys.modules.get(module)
    for name in names:
        if value is None or not hasattr(value, "__dict__"):
            return None
        value = vars(value).get(name)
    return value.__func__ if isinstance(value, staticmethod) else value


def _has_backend() -> bool:
    from django_jobs.backend import JobsBackend
    from django_jobs.backend.framework import task_backends

    return any(isinstance(task_backends[alias], JobsBackend) for alias in task_backends)
