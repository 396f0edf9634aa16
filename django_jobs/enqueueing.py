"""Enqueueing: check in Python, then one insert in the caller's transaction, wake-up included."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from django_jobs import conf
from django_jobs.databases import jobs_database
from django_jobs.exceptions import InvalidArguments, InvalidJob
from django_jobs.store import django_store
from django_jobs.store.rows import JobRow, NewJob

if TYPE_CHECKING:
    from django_jobs.definitions import JobDefinition

# Jobs inserted by one statement. More would not be faster, and would hold more memory in the server.
CHUNK = 5000


class Prepared(NamedTuple):
    """A call that was checked, to be enqueued by :func:`enqueue_many`."""

    new: NewJob
    using: str | None


def prepare(
    definition: JobDefinition[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Prepared:
    """Check and encode a call. Raises InvalidJob."""
    return Prepared(_template(definition)._replace(**_encoded(definition, args, kwargs)), definition.options.using)


def enqueue(definition: JobDefinition[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> JobRow:
    """Insert one job."""
    new, using = prepare(definition, args, kwargs)
    return django_store(jobs_database(using)).insert(new)


def enqueue_many(prepared: Iterable[Prepared]) -> list[JobRow]:
    """Enqueue calls of any job functions, thousands in one statement; all of them or none.

    :param prepared: what ``some_job.prepare(...)`` returned, for each call.
    :returns: the jobs in the order given.
    :raises InvalidJob: before any SQL, when something else is among them.
    """
    calls = list(prepared)
    for position, call in enumerate(calls):
        if not isinstance(call, Prepared):
            raise InvalidJob(
                f"enqueue_many() got {call!r} at position {position}; pass what some_job.prepare(...) returns, or use "
                f"some_job.enqueue_many() with the arguments."
            )
    aliases = [jobs_database(call.using) for call in calls]
    if len(set(aliases)) > 1:
        raise InvalidJob(
            f"enqueue_many() got jobs for the databases {', '.join(sorted(set(aliases)))}; all or none can only be "
            f"kept in one. Call it once for each."
        )
    return _insert([call.new for call in calls], aliases[0]) if calls else []


async def aenqueue_many(prepared: Iterable[Prepared]) -> list[JobRow]:
    """:func:`enqueue_many`, from async code."""
    return await sync_to_async(enqueue_many)(prepared)


def enqueue_calls(
    definition: JobDefinition[Any, Any], calls: Iterable[Sequence[Any] | Mapping[str, Any]]
) -> list[JobRow]:
    """Insert many calls of one function."""
    template = _template(definition)
    most_bytes = conf.get("MAX_ARGUMENT_BYTES")
    arguments = definition.arguments
    new = []
    options = template[:6]
    for position, call in enumerate(calls):
        args: Sequence[Any] = ()
        kwargs: Mapping[str, Any] = {}
        if isinstance(call, tuple | list):
            args = call
        elif isinstance(call, Mapping):
            kwargs = call
        else:
            raise InvalidArguments(
                f"{definition.name}.enqueue_many(): call {position} is {call!r}; it must be a tuple or list of "
                f"positional arguments, or a dict of keyword arguments. For one argument: [(value,), ...]."
            )
        try:
            arguments.fit(args, kwargs)
            encoded = arguments.encode(args, kwargs, most_bytes)
        except InvalidArguments as error:
            raise InvalidArguments(f"{definition.name}.enqueue_many(): call {position}: {error}") from None
        new.append(NewJob(*options, *encoded))
    return _insert(new, jobs_database(definition.options.using)) if new else []


def _insert(new: list[NewJob], alias: str) -> list[JobRow]:
    store = django_store(alias)
    if len(new) <= CHUNK:
        return store.insert_many(new)
    with transaction.atomic(using=alias):
        return [job for first in range(0, len(new), CHUNK) for job in store.insert_many(new[first : first + CHUNK])]


def _template(definition: JobDefinition[Any, Any]) -> NewJob:
    options = definition.options
    run_after, delay = None, None
    if isinstance(options.run_after, dt.timedelta):
        delay = options.run_after.total_seconds()
    elif options.run_after is not None:
        run_after = options.run_after
        if timezone.is_naive(run_after):
            run_after = timezone.make_aware(run_after, timezone.get_default_timezone())
    return NewJob(
        definition.name,
        options.queue_name,
        options.priority,
        options.max_attempts or conf.get("MAX_ATTEMPTS"),
        run_after,
        delay,
    )


def _encoded(
    definition: JobDefinition[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, str]:
    try:
        definition.arguments.fit(args, kwargs)
        encoded_args, encoded_kwargs = definition.arguments.encode(args, kwargs, conf.get("MAX_ARGUMENT_BYTES"))
    except InvalidArguments as error:
        raise InvalidArguments(f"{definition.name}: {error}") from None
    return {"args": encoded_args, "kwargs": encoded_kwargs}
