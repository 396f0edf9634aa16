"""Enqueueing: check in Python, then one insert in the caller's transaction, wake-up included."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from django_jobs import conf
from django_jobs.databases import jobs_database
from django_jobs.exceptions import InvalidArguments, InvalidJob
from django_jobs.serialization import shown
from django_jobs.store import django_store
from django_jobs.store.rows import JobRow, NewJob

if TYPE_CHECKING:
    from django_jobs.definitions import JobDefinition

# Jobs inserted by one statement. More would not be faster, and would hold more memory in the server.
CHUNK = 5000
# And their arguments: a statement's text is limited on both databases (1 GB), and quoting makes it longer.
CHUNK_CHARACTERS = 50_000_000


class Prepared(NamedTuple):
    """A call that was checked, to be enqueued by :func:`enqueue_many`."""

    new: NewJob
    using: str | None


def prepare(definition: JobDefinition[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Prepared:
    """Check and encode a call. Raises InvalidJob."""
    try:
        definition.arguments.fit(args, kwargs)
        encoded = definition.arguments.encode(args, kwargs, conf.get("MAX_ARGUMENT_BYTES"))
    except InvalidArguments as error:
        raise InvalidArguments(f"{definition.name}: {error}") from None
    return Prepared(NewJob(*_options(definition), *encoded, *_more(definition)), definition.options.using)


def enqueue(definition: JobDefinition[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> JobRow:
    """Insert one job."""
    new, using = prepare(definition, args, kwargs)
    row = django_store(jobs_database(using)).insert(new)
    if using is not None:
        row.using = using
    return row


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
                f"enqueue_many() got {shown(call)} at position {position}; pass what some_job.prepare(...) returns, "
                f"or use some_job.enqueue_many() with the arguments."
            )
    if not calls:
        return []
    aliases = {jobs_database(using) for using in {call.using for call in calls}}
    if len(aliases) > 1:
        raise InvalidJob(
            f"enqueue_many() got jobs for the databases {', '.join(sorted(aliases))}; all or none can only be kept in "
            f"one. Call it once for each."
        )
    rows = _insert([call.new for call in calls], aliases.pop())
    for row, call in zip(rows, calls, strict=True):
        if call.using is not None:
            row.using = call.using
    return rows


async def aenqueue_many(prepared: Iterable[Prepared]) -> list[JobRow]:
    """:func:`enqueue_many`, from async code."""
    return await sync_to_async(enqueue_many)(prepared)


def enqueue_calls(
    definition: JobDefinition[Any, Any], calls: Iterable[Sequence[Any] | Mapping[str, Any]]
) -> list[JobRow]:
    """Insert many calls of one function."""
    options, more = _options(definition), _more(definition)
    most_bytes = conf.get("MAX_ARGUMENT_BYTES")
    arguments = definition.arguments
    new = []
    for position, call in enumerate(calls):
        args: Sequence[Any] = ()
        kwargs: Mapping[str, Any] = {}
        if isinstance(call, (tuple, list)):  # a union is slower, and this runs for every job
            args = call
        elif isinstance(call, Mapping):
            kwargs = call if type(call) is dict else dict(call.items())
        else:
            raise InvalidArguments(
                f"{definition.name}.enqueue_many(): call {position} is {shown(call)}; it must be a tuple or list of "
                f"positional arguments, or a dict of keyword arguments. For one argument: [(value,), ...]."
            )
        try:
            arguments.fit(args, kwargs)
            encoded = arguments.encode(args, kwargs, most_bytes)
        except InvalidArguments as error:
            raise InvalidArguments(f"{definition.name}.enqueue_many(): call {position}: {error}") from None
        new.append(NewJob(*options, *encoded, *more))
    using = definition.options.using
    rows = _insert(new, jobs_database(using)) if new else []
    if using is not None:
        for row in rows:
            row.using = using
    return rows


def _insert(new: list[NewJob], alias: str) -> list[JobRow]:
    store = django_store(alias)
    chunks = list(_chunks(new))
    if len(chunks) == 1:
        return store.insert_many(new)
    with transaction.atomic(using=alias):
        return [job for chunk in chunks for job in store.insert_many(chunk)]


def _chunks(new: list[NewJob]) -> Iterator[list[NewJob]]:
    sizes = [len(job.args) + len(job.kwargs) for job in new]
    if len(new) <= CHUNK and sum(sizes) <= CHUNK_CHARACTERS:
        yield new
        return
    first = size = 0
    for index, more in enumerate(sizes):
        if index > first and (index - first == CHUNK or size + more > CHUNK_CHARACTERS):
            yield new[first:index]
            first, size = index, 0
        size += more
    yield new[first:]


def _more(definition: JobDefinition[Any, Any]) -> tuple[Any, ...]:
    """The fields of a NewJob that come after its arguments; none for a usual job."""
    timeout = definition.options.timeout
    return () if timeout is None else (False, timeout)


def _options(
    definition: JobDefinition[Any, Any],
) -> tuple[str, str, int, int, dt.datetime | None, float | None]:
    """The fields of a NewJob that come before its arguments."""
    options = definition.options
    run_after, delay = None, None
    if isinstance(options.run_after, dt.timedelta):
        delay = options.run_after.total_seconds()
    elif options.run_after is not None:
        run_after = options.run_after
        if timezone.is_naive(run_after):
            run_after = timezone.make_aware(run_after, timezone.get_default_timezone())
    return (
        definition.name,
        options.queue_name,
        options.priority,
        options.max_attempts or conf.get("MAX_ATTEMPTS"),
        run_after,
        delay,
    )
