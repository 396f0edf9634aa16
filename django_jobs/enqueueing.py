"""Enqueueing: check in Python, then one insert in the caller's transaction, wake-up included."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from django_jobs import conf, signals, stored_backoff, uniqueness
from django_jobs.databases import jobs_database
from django_jobs.exceptions import InvalidArguments, InvalidJob
from django_jobs.options import Described, Options
from django_jobs.serialization import encode, shown
from django_jobs.store import django_store
from django_jobs.store.rows import JobRow, NewJob
from django_jobs.texts import Text

if TYPE_CHECKING:
    from django_jobs.stored_backoff import Stored

# Jobs inserted by one statement. More would not be faster, and would hold more memory in the server.
CHUNK = 5000
# Of jobs with unique keys more: a statement inserts its keys in order, so that two callers with the same ones don't
# wait for each other in a circle, but of two statements in a transaction the second may have keys before the first's.
KEYED_CHUNK = 50_000
# And their arguments: a statement's text is limited on both databases (1 GB), and quoting makes it longer.
CHUNK_CHARACTERS = 50_000_000


Insert = Callable[[list[NewJob]], list[JobRow]]
#: Goes around each insert, if there is one: it is given the jobs and what inserts them. For tracing.
around_insert: Callable[[list[NewJob], Insert], list[JobRow]] | None = None

More = Callable[[NewJob, Sequence[Any], Mapping[str, Any]], NewJob]

#: Called with jobs just inserted and their database, after the receivers of the signal: by ``django_jobs.testing``.
followers: tuple[Callable[[list[JobRow], str], None], ...] = ()


# Past the named tuple's own constructor, which is a function in Python; and the fields after a job's arguments.
_make = partial(tuple.__new__, NewJob)
_USUAL = NewJob("")[8:]


class Prepared(NamedTuple):
    """A call that was checked, to be enqueued by :func:`enqueue_many`."""

    new: NewJob
    using: str | None


def prepare(definition: Described, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Prepared:
    """Check and encode a call. Raises InvalidJob."""
    options = definition.options
    return Prepared(_new(definition, options, args, kwargs), options.using)


def _new(definition: Described, options: Options, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NewJob:
    try:
        definition.arguments.fit(args, kwargs)
        encoded = definition.arguments.encode(args, kwargs, conf.get("MAX_ARGUMENT_BYTES"))
    except InvalidArguments as error:
        raise InvalidArguments(
            Text("%(name)s: %(error)s", {"name": definition.name, "error": error})
        ) from None
    if options.is_usual:
        most = options.max_attempts or conf.get("MAX_ATTEMPTS")
        return _make(
            (definition.name, options.queue_name, options.priority, most, None, None, *encoded, *_USUAL)
        )
    new = NewJob(*_options(definition), *encoded)
    more = _more(definition)
    return new if more is None else more(new, args, kwargs)


def enqueue(definition: Described, args: Sequence[Any], kwargs: Mapping[str, Any]) -> JobRow:
    """Insert one job."""
    options = definition.options
    using = options.using
    return insert(_new(definition, options, args, kwargs), jobs_database(using), using)


def insert(new: NewJob, alias: str, using: str | None = None) -> JobRow:
    """Insert a job that was checked into the database ``alias``; ``using`` is what was given for it, if it was."""
    store = django_store(alias)
    if around_insert is None:
        jobs = [store.insert(new)]
    else:
        jobs = around_insert([new], lambda jobs: [store.insert(jobs[0])])
    return _told(jobs, alias, () if using is None else (using,))[0]


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
    return _insert([call.new for call in calls], aliases.pop(), [call.using for call in calls])


async def aenqueue_many(prepared: Iterable[Prepared]) -> list[JobRow]:
    """:func:`enqueue_many`, from async code."""
    return await sync_to_async(enqueue_many)(prepared)


def enqueue_calls(definition: Described, calls: Iterable[Sequence[Any] | Mapping[str, Any]]) -> list[JobRow]:
    """Insert many calls of one function."""
    options = _options(definition)
    most_bytes = conf.get("MAX_ARGUMENT_BYTES")
    arguments = definition.arguments
    more = _more(definition)
    make, usual = _make, _USUAL  # this runs for every job
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
        one = make((*options, *encoded, *usual))
        new.append(one if more is None else more(one, args, kwargs))
    using = definition.options.using
    return _insert(new, jobs_database(using), () if using is None else repeat(using)) if new else []


def _insert(new: list[NewJob], alias: str, usings: Iterable[str | None]) -> list[JobRow]:
    store = django_store(alias)

    def insert_all(new: list[NewJob]) -> list[JobRow]:
        chunks = list(_chunks(new))
        if len(chunks) == 1:
            return store.insert_many(new)
        with transaction.atomic(using=alias):
            return [job for chunk in chunks for job in store.insert_many(chunk)]

    jobs = insert_all(new) if around_insert is None else around_insert(new, insert_all)
    return _told(jobs, alias, usings)


def _told(jobs: list[JobRow], alias: str, usings: Iterable[str | None]) -> list[JobRow]:
    """Jobs just inserted: each knows the database that it was given, if it was, and then receivers hear of it.

    ``usings`` are what was given for each, or nothing where none was.
    """
    for job, using in zip(jobs, usings, strict=False):
        if using is not None:
            job.using = using
    if signals.job_enqueued.receivers:
        signals.send_enqueued(jobs, alias)
    for follower in followers:
        follower(jobs, alias)
    return jobs


def _chunks(new: list[NewJob]) -> Iterator[list[NewJob]]:
    sizes = [len(job.args) + len(job.kwargs) for job in new]
    most = CHUNK if all(job.unique_key is None for job in new) else KEYED_CHUNK
    if len(new) <= most and sum(sizes) <= CHUNK_CHARACTERS:
        yield new
        return
    first = size = 0
    for index, more in enumerate(sizes):
        if index > first and (index - first == most or size + more > CHUNK_CHARACTERS):
            yield new[first:index]
            first, size = index, 0
        size += more
    yield new[first:]


def _more(definition: Described) -> More | None:
    """What adds to a NewJob what few jobs have; None for a definition of which no job has any of it."""
    options = definition.options
    key_of = uniqueness.key_function(definition)
    tags = encode(list(options.tags)) if options.tags else None
    timeout = cast("float | None", options.timeout)  # in seconds, once checked
    # Checked, too.
    metadata = None if options.backoff is None else stored_backoff.encoded(cast("Stored", options.backoff))
    if key_of is None and not options.pending and tags is None and timeout is None and metadata is None:
        return None
    seconds = None if options.unique_for is None else int(options.unique_for.total_seconds())
    replace = options.on_duplicate == "replace"

    def more(new: NewJob, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NewJob:
        key = key_of(args, kwargs) if key_of is not None else None
        if key is None:
            return new._replace(pending=options.pending, timeout=timeout, tags=tags, metadata=metadata)
        return new._replace(
            pending=options.pending,
            timeout=timeout,
            tags=tags,
            metadata=metadata,
            unique_key=key,
            unique_for=seconds,
            replace=replace,
        )

    return more


def _options(
    definition: Described,
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
