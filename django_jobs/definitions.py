"""A job function with its options: it is enqueued, and called, through its definition."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Never, ParamSpec, TypeVar, overload

from asgiref.sync import async_to_sync, iscoroutinefunction, markcoroutinefunction, sync_to_async

from django_jobs import enqueueing, uniqueness
from django_jobs.arguments import Arguments
from django_jobs.backoff import as_policy
from django_jobs.context import JobContext
from django_jobs.options import (
    LEFT_OUT,
    BackoffOption,
    JobBackoff,
    Options,
    UniqueOption,
    changes_of,
    check,
)
from django_jobs.places import Place
from django_jobs.store.rows import JobRow
from django_jobs.unknown_options import unknown_option

if TYPE_CHECKING:
    from django.db.models import Model

P = ParamSpec("P")
# A definition gives what it returns, and takes none: that of a coroutine stands in where one of an awaitable is wanted.
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class JobDefinition(Generic[P, R_co]):
    """A job function with its options: what ``@job`` makes of a function."""

    #: Called after an attempt's outcome is stored, as receivers of ``job_finished`` are, by the same thread: with the
    #: job as stored, what it raised, how that reads, and the alias of its database. Most definitions have none.
    on_stored: Callable[[JobRow, BaseException | None, str | None, str], None] | None = None

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        options: Options,
        *,
        backoff: BackoffOption = None,
        give_up_on: tuple[type[BaseException], ...] = (),
        retry_on: tuple[type[BaseException], ...] | None = None,
        takes_context: bool = False,
        aliases: tuple[str, ...] = (),
        atomic: bool = False,
        redact: Sequence[str] | bool = (),
    ) -> None:
        self.function = function
        self.name = name
        self.options = options
        self.backoff = as_policy(backoff)
        self.give_up_on = give_up_on
        self.retry_on = retry_on
        self.takes_context = takes_context
        self.aliases = aliases
        # An object is async when its __call__ is.
        self.is_async = iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)
        if self.is_async:
            markcoroutinefunction(self)
        self.is_atomic = atomic
        self.redact = redact
        # Whether an attempt is a call of the function in a thread, and nothing more.
        self.is_plain = not self.is_async and not atomic and not options.timeout
        # The same, and the function is called with the job's arguments alone.
        self.is_bare = self.is_plain and not takes_context
        self.arguments = Arguments(function, skip=1 if takes_context else 0)
        self.place = Place.of(function)
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__name__ = getattr(function, "__name__", name)
        self.__qualname__ = getattr(function, "__qualname__", name)
        self.__wrapped__ = function

    def __repr__(self) -> str:
        return f"<job function {self.name}>"

    if not TYPE_CHECKING:  # a checker is to refuse what there is not

        def __getattr__(self, name: str) -> Any:
            hint = ""
            if name in ("delay", "apply_async", "defer", "send"):  # what other queues have
                hint = f"; {self.name}.enqueue() enqueues a call, and .using() says when and where"
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self
            )

    @property
    def queue_name(self) -> str:
        """The queue that jobs of this function go to."""
        return self.options.queue_name

    def using(
        self,
        *,
        queue_name: str | None = LEFT_OUT,
        priority: int | None = LEFT_OUT,
        max_attempts: int | None = LEFT_OUT,
        run_after: dt.datetime | dt.timedelta | None = LEFT_OUT,
        using: str | None = LEFT_OUT,
        unique: UniqueOption | None = LEFT_OUT,
        unique_key: str | None = LEFT_OUT,
        unique_for: dt.timedelta | None = LEFT_OUT,
        on_duplicate: Literal["return", "replace"] | None = LEFT_OUT,
        pending: bool | None = LEFT_OUT,
        tags: Sequence[str | Model] | None = LEFT_OUT,
        timeout: float | dt.timedelta | None = LEFT_OUT,
        backoff: JobBackoff | None = LEFT_OUT,
        **unknown: Never,
    ) -> JobDefinition[P, R_co]:
        """The same function with other options, for the jobs enqueued through what is returned.

        What is left out stays as it is. None takes away ``timeout``, ``tags``, ``unique``, ``unique_key`` and
        ``unique_for``, and for ``max_attempts`` and ``backoff`` it stands for what holds where nothing is said: the
        setting, and the function's. For the others None is as if they were left out.

        :param queue_name: the queue.
        :param priority: -100 to 100, higher first.
        :param max_attempts: how often it is attempted at most, 1 or more.
        :param run_after: an aware datetime, or a timedelta from now, before which it does not run.
        :param using: the alias of the database that holds the job.
        :param unique: as of ``@job``; False for jobs that need not be unique.
        :param unique_key: the key itself. Jobs of other functions with the same key count too.
        :param unique_for: as of ``@job``, for ``unique_key`` too.
        :param on_duplicate: as of ``@job``.
        :param pending: wait until an operator releases it (``operations.release``), whatever the time is.
        :param tags: 20 at most, strings or model instances, to find the jobs of something by.
        :param timeout: how long an attempt may take: seconds, or a timedelta; None or 0 for as long as it wants,
            whatever the function's is.
        :param backoff: how long to wait after a failed attempt: seconds, a timedelta, a sequence of those, or a policy
            of :mod:`django_jobs.backoff`. It is written into the job's row, so it can't be a callable of your own.
        :raises InvalidJob: for a value that is not allowed; the message names it.
        """
        if unknown:
            from django_jobs.decorators import option_names

            raise unknown_option(next(iter(unknown)), option_names(), for_one=True)
        given = {
            "queue_name": queue_name,
            "priority": priority,
            "max_attempts": max_attempts,
            "run_after": run_after,
            "using": using,
            "unique": unique,
            "unique_key": unique_key,
            "unique_for": unique_for,
            "on_duplicate": on_duplicate,
            "pending": pending,
            "tags": tags,
            "timeout": timeout,
            "backoff": backoff,
        }
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.options = check(replace(self.options, **changes_of(given)), self.name)
        uniqueness.check(other)
        return other

    # Positional-only, because the function may have a parameter of its own that is called self.
    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobRow:
        """Enqueue a call with these arguments, in the transaction that is open on the jobs' database.

        :returns: the job as stored. It runs once the transaction has committed, and vanishes if that rolls back.
        :raises InvalidJob: before any SQL, for arguments that don't fit the function or can't be stored.
        """
        return enqueueing.enqueue(self, args, kwargs)

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobRow:
        """:meth:`enqueue`, from async code."""
        return await sync_to_async(partial(self.enqueue, *args, **kwargs))()

    def prepare(self, /, *args: P.args, **kwargs: P.kwargs) -> enqueueing.Prepared:
        """A call that is checked now and enqueued later, by :func:`django_jobs.enqueue_many`.

        :raises InvalidJob: as :meth:`enqueue`.
        """
        return enqueueing.prepare(self, args, kwargs)

    def enqueue_many(self, calls: Iterable[Sequence[Any] | Mapping[str, Any]]) -> list[JobRow]:
        """Enqueue many calls of this function, thousands in one statement; all of them or none.

        :param calls: for each call a tuple or list of positional arguments, or a dict of keyword arguments.
        :returns: the jobs in the order given.
        :raises InvalidJob: before any SQL, naming the call by its position.
        """
        return enqueueing.enqueue_calls(self, calls)

    async def aenqueue_many(self, calls: Iterable[Sequence[Any] | Mapping[str, Any]]) -> list[JobRow]:
        """:meth:`enqueue_many`, from async code."""
        return await sync_to_async(self.enqueue_many)(calls)

    @overload
    def call(self: JobDefinition[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the function here and now, with no queue. An ``async def`` function is run to its end."""
        function = partial(self.function, *self._leading(), *args, **kwargs)
        return async_to_sync(function)() if self.is_async else function()

    @overload
    async def acall(
        self: JobDefinition[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def acall(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    async def acall(self, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """:meth:`call`, from async code."""
        function = partial(self.function, *self._leading(), *args, **kwargs)
        return await (function() if self.is_async else sync_to_async(function)())

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """The function as it was written: called here, and for ``async def`` a coroutine."""
        return self.function(*self._leading(), *args, **kwargs)  # type: ignore[no-any-return]

    def _leading(self) -> tuple[JobContext, ...]:
        return (JobContext.detached(self.name),) if self.takes_context else ()
