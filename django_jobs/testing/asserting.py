"""What waits in the queue, asserted in words that say what is there instead."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from asgiref.sync import sync_to_async

from django_jobs.databases import jobs_database
from django_jobs.definitions import JobDefinition
from django_jobs.job_registry import registry
from django_jobs.models import Job
from django_jobs.serialization import shown
from django_jobs.states import WAITING
from django_jobs.store import django_store
from django_jobs.store.rows import JobRow

# How many jobs a message tells of.
TOLD = 10


def enqueued_jobs(
    job: Any = None, *, queue_name: str | None = None, using: str | None = None
) -> list[JobRow]:
    """The jobs that wait, in the order of their ids: available, scheduled and pending ones.

    :param job: of this function only: what ``@job`` or ``@task`` made, or a name.
    :param queue_name: of this queue only.
    :param using: the alias of the database.
    """
    alias = jobs_database(using)
    jobs = Job.objects.using(alias).filter(state__in=WAITING)
    if job is not None:
        jobs = jobs.filter(name=_name(job))
    if queue_name is not None:
        jobs = jobs.filter(queue_name=queue_name)
    return django_store(alias).get(jobs.order_by("pk").values_list("pk", flat=True))


def assert_enqueued(
    job: Any,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None,
    count: int | None = None,
    using: str | None = None,
    **columns: Any,
) -> JobRow:
    """Assert that such a job waits, and return it (the first, if there are several).

    :param job: what ``@job`` or ``@task`` made of the function, or its name.
    :param args: with these positional arguments. How they were passed does not matter: ``args=[5]`` and
        ``kwargs={"user_id": 5}`` are the same call of ``welcome(user_id)``.
    :param kwargs: with these keyword arguments. Without both, with any.
    :param queue_name: in this queue.
    :param count: exactly so many of them.
    :param using: the alias of the database.
    :param columns: with these values of others of its fields: ``priority=5``, ``state="scheduled"``, ``tags=["a"]``.
    :raises AssertionError: when there is none, or not ``count``; the message tells what waits instead.
    """
    found = _matching(job, args, kwargs, queue_name, using, columns)
    if not found or (count is not None and len(found) != count):
        wanted = _described(job, args, kwargs, queue_name, columns)
        number = f"{len(found)} of {count}" if found else "none" if count is None else f"none of {count}"
        raise AssertionError(f"{wanted}: {number} enqueued. {_told(using)}")
    return found[0]


async def aassert_enqueued(job: Any, **options: Any) -> JobRow:
    """:func:`assert_enqueued`, from async code."""
    return await sync_to_async(assert_enqueued)(job, **options)


def assert_not_enqueued(
    job: Any,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None,
    using: str | None = None,
    **columns: Any,
) -> None:
    """Assert that no such job waits. The parameters are those of :func:`assert_enqueued`."""
    found = _matching(job, args, kwargs, queue_name, using, columns)
    if found:
        wanted = _described(job, args, kwargs, queue_name, columns)
        raise AssertionError(f"{wanted}: {len(found)} enqueued, and there should be none. {_told(using)}")


def _matching(
    job: Any,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
    queue_name: str | None,
    using: str | None,
    columns: Mapping[str, Any],
) -> list[JobRow]:
    for name in columns:
        if name.startswith("_") or not hasattr(JobRow, name):
            near = difflib.get_close_matches(
                name, [field.name for field in Job._meta.fields], n=1, cutoff=0.5
            )
            hint = f"did you mean {near[0]!r}?" if near else "its fields are those of django_jobs.models.Job."
            raise TypeError(f"A job has no {name!r}; {hint}")
    jobs = enqueued_jobs(job, queue_name=queue_name, using=using)
    if args is not None or kwargs is not None:
        call = _call(job, args or (), kwargs or {})
        jobs = [each for each in jobs if _call(job, each.args, each.kwargs) == call]
    return [each for each in jobs if all(getattr(each, name) == value for name, value in columns.items())]


def _call(job: Any, args: Any, kwargs: Any) -> Any:
    """A call as what is the same for all ways to write it."""
    args, kwargs = _plain(args), _plain(kwargs)
    definition = registry.get(_name(job))
    if definition is None:
        return args, kwargs
    try:
        return definition.arguments.signature.bind(*args, **kwargs).arguments
    except TypeError:
        return args, kwargs


def _plain(value: Any) -> Any:
    """As JSON has it: a tuple comes back as a list."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _name(job: Any) -> str:
    if isinstance(job, str):
        return job
    if isinstance(job, JobDefinition):
        return job.name
    path = getattr(job, "module_path", None)  # a task of Django's framework
    if isinstance(path, str):
        return path
    raise TypeError(f"{shown(job)} is no job: pass what @job or @task made of the function, or its name.")


def _described(
    job: Any,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
    queue_name: str | None,
    columns: Mapping[str, Any],
) -> str:
    given = {"args": args, "kwargs": kwargs, "queue_name": queue_name, **columns}
    said = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
    return f"{_name(job)} with {said}" if said else _name(job)


def _told(using: str | None) -> str:
    waiting = enqueued_jobs(using=using)
    if not waiting:
        return "Nothing waits."
    lines = [
        f"  {each.id}: {each.name} args={each.args!r} kwargs={each.kwargs!r} queue_name={each.queue_name!r} "
        f"{each.state}"
        for each in waiting[:TOLD]
    ]
    more = f"\n  ... and {len(waiting) - TOLD} more" if len(waiting) > TOLD else ""
    return "There wait:\n" + "\n".join(lines) + more
