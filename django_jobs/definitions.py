"""``@job``, and the registry of job functions.

A row names its function; only what is registered here is ever called because a row says so.
"""

from __future__ import annotations

import datetime as dt
import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, overload

from asgiref.sync import async_to_sync, sync_to_async

from django_jobs import enqueueing, options as checked
from django_jobs.arguments import Arguments
from django_jobs.backoff import as_policy
from django_jobs.context import JobContext
from django_jobs.exceptions import InvalidJob
from django_jobs.store.rows import JobRow

P = ParamSpec("P")
R = TypeVar("R")

Delay = float | dt.timedelta
BackoffOption = Delay | Sequence[Delay] | Callable[[int, BaseException | None, Any], Delay] | None


@dataclass(frozen=True)
class Options:
    """What can differ from one job of a function to the next; ``.using()`` changes it."""

    queue_name: str = "default"
    priority: int = 0
    max_attempts: int | None = None
    run_after: dt.datetime | dt.timedelta | None = None
    using: str | None = None


class JobDefinition(Generic[P, R]):
    """A job function with its options: what ``@job`` makes of a function."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        options: Options,
        *,
        backoff: BackoffOption = None,
        give_up_on: tuple[type[BaseException], ...] = (),
        takes_context: bool = False,
        aliases: tuple[str, ...] = (),
    ) -> None:
        self.function = function
        self.name = name
        self.options = options
        self.backoff = as_policy(backoff)
        self.give_up_on = give_up_on
        self.takes_context = takes_context
        self.aliases = aliases
        self.is_async = inspect.iscoroutinefunction(function)
        self.arguments = Arguments(function, skip=1 if takes_context else 0)
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __repr__(self) -> str:
        return f"<job function {self.name}>"

    @property
    def queue_name(self) -> str:
        """The queue that jobs of this function go to."""
        return self.options.queue_name

    def using(
        self,
        *,
        queue_name: str | None = None,
        priority: int | None = None,
        max_attempts: int | None = None,
        run_after: dt.datetime | dt.timedelta | None = None,
        using: str | None = None,
        **unknown: Any,
    ) -> JobDefinition[P, R]:
        """The same function with other options, for the jobs enqueued through what is returned.

        :param queue_name: the queue.
        :param priority: -100 to 100, higher first.
        :param max_attempts: how often it is attempted at most, 1 or more.
        :param run_after: an aware datetime, or a timedelta from now, before which it does not run.
        :param using: the alias of the database that holds the job.
        :raises InvalidJob: for a value that is not allowed; the message names it.
        """
        if unknown:
            raise _unknown_option(next(iter(unknown)))
        given = {
            "queue_name": queue_name,
            "priority": priority,
            "max_attempts": max_attempts,
            "run_after": run_after,
            "using": using,
        }
        changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.options = checked.check(replace(self.options, **changes), self.name)
        return other

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobRow:
        """Enqueue a call with these arguments, in the transaction that is open on the jobs' database.

        :returns: the job as stored. It runs once the transaction has committed, and vanishes if that rolls back.
        :raises InvalidJob: before any SQL, for arguments that don't fit the function or can't be stored.
        """
        return enqueueing.enqueue(self, args, kwargs)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobRow:
        """:meth:`enqueue`, from async code."""
        return await sync_to_async(self.enqueue)(*args, **kwargs)

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> enqueueing.Prepared:
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

    def call(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function here and now, with no queue. An ``async def`` function is run to its end."""
        if self.is_async:
            return async_to_sync(self.function)(*self._leading(), *args, **kwargs)  # type: ignore[no-any-return]
        return self.function(*self._leading(), *args, **kwargs)  # type: ignore[no-any-return]

    async def acall(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """:meth:`call`, from async code."""
        if self.is_async:
            return await self.function(*self._leading(), *args, **kwargs)
        return await sync_to_async(self.function)(*self._leading(), *args, **kwargs)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function as it was written: called here, and for ``async def`` a coroutine."""
        return self.function(*self._leading(), *args, **kwargs)  # type: ignore[no-any-return]

    def _leading(self) -> tuple[JobContext, ...]:
        return (JobContext.detached(self.name),) if self.takes_context else ()


def _unknown_option(name: str) -> InvalidJob:
    known = ["queue_name", "priority", "max_attempts", "run_after", "using"]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
    return InvalidJob(f"There is no option {name!r}; {hint}")


class Registry:
    """Job functions by name, old names (aliases) included."""

    def __init__(self) -> None:
        self._definitions: dict[str, JobDefinition[Any, Any]] = {}
        self._names: dict[str, JobDefinition[Any, Any]] = {}

    def add(self, definition: JobDefinition[Any, Any]) -> None:
        """Register a definition under its name and aliases.

        :raises InvalidJob: when another function has one of these names.
        """
        for name in (definition.name, *definition.aliases):
            known = self._names.get(name)
            if known is not None and not _same_source(known.function, definition.function):
                raise InvalidJob(
                    f"Two functions want the job name {name!r}: {_where(known.function)} and "
                    f"{_where(definition.function)}. Give one of them another name=."
                )
        self._definitions[definition.name] = definition
        for name in (definition.name, *definition.aliases):
            self._names[name] = definition

    def get(self, name: str) -> JobDefinition[Any, Any] | None:
        """The definition with this name or alias, or None."""
        return self._names.get(name)

    def remove(self, definition: JobDefinition[Any, Any]) -> None:
        """Forget a definition; for tests that define one."""
        for name in (definition.name, *definition.aliases):
            self._names.pop(name, None)
        self._definitions.pop(definition.name, None)

    def __iter__(self) -> Iterator[JobDefinition[Any, Any]]:
        return iter(list(self._definitions.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def queue_names(self) -> set[str]:
        """The queues that registered functions go to."""
        return {definition.queue_name for definition in self}


registry = Registry()


def _same_source(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def _where(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


@overload
def job(function: Callable[P, R], /) -> JobDefinition[P, R]: ...
@overload
def job(
    *,
    takes_context: Literal[True],
    queue_name: str = ...,
    priority: int = ...,
    max_attempts: int | None = ...,
    backoff: BackoffOption = ...,
    give_up_on: type[BaseException] | tuple[type[BaseException], ...] = ...,
    name: str | None = ...,
    aliases: Iterable[str] = ...,
    using: str | None = ...,
) -> Callable[[Callable[Concatenate[JobContext, P], R]], JobDefinition[P, R]]: ...
@overload
def job(
    *,
    takes_context: Literal[False] = ...,
    queue_name: str = ...,
    priority: int = ...,
    max_attempts: int | None = ...,
    backoff: BackoffOption = ...,
    give_up_on: type[BaseException] | tuple[type[BaseException], ...] = ...,
    name: str | None = ...,
    aliases: Iterable[str] = ...,
    using: str | None = ...,
) -> Callable[[Callable[P, R]], JobDefinition[P, R]]: ...
def job(
    function: Callable[..., Any] | None = None,
    /,
    *,
    queue_name: str = "default",
    priority: int = 0,
    max_attempts: int | None = None,
    backoff: BackoffOption = None,
    give_up_on: type[BaseException] | tuple[type[BaseException], ...] = (),
    takes_context: bool = False,
    name: str | None = None,
    aliases: Iterable[str] = (),
    using: str | None = None,
) -> Any:
    """Make a function a job: ``@job`` or ``@job(queue_name="mail", max_attempts=5)``.

    :param queue_name: the queue its jobs go to.
    :param priority: -100 to 100; of the jobs of a queue that are due, the highest runs first.
    :param max_attempts: how often a job is attempted before it is a dead letter; by default
        ``DJANGO_JOBS["MAX_ATTEMPTS"]``.
    :param backoff: how long to wait after a failed attempt: seconds, a timedelta, a sequence of those (the last one
        holds on), or a callable of ``(attempt, exception, job)``. By default attempt to the power of four seconds,
        10 % more or less, a day at most.
    :param give_up_on: exception classes after which the job is a dead letter at once.
    :param takes_context: pass a :class:`~django_jobs.context.JobContext` as the first argument.
    :param name: the name in the rows; by default the dotted path of the function. Rows outlive deploys: a name, once
        used, should stay, or become one of the ``aliases``.
    :param aliases: old names, whose rows this function still serves.
    :param using: the alias of the database that holds the jobs.
    :returns: a :class:`JobDefinition`, which has ``enqueue``, ``aenqueue``, ``using``, ``call`` and ``acall``.
    :raises InvalidJob: for a value that is not allowed, or a name that another function has.
    """

    def define(function: Callable[..., Any]) -> JobDefinition[Any, Any]:
        if isinstance(function, JobDefinition) or not callable(function):
            raise InvalidJob(f"@job decorates a function, not {function!r}.")
        chosen = name or f"{function.__module__}.{function.__qualname__}"
        if name is None and "<" in chosen:
            raise InvalidJob(
                f"{chosen} is defined inside a function, so a worker can't find it by that name. Define it at the top "
                f"of a module, or give it a name= and import it in every worker."
            )
        if isinstance(aliases, str):
            raise InvalidJob(f"aliases of {chosen} is a string; it must be a list of names.")
        for each in (chosen, *aliases):
            checked.check_name(each)
        definition: JobDefinition[Any, Any] = JobDefinition(
            function,
            chosen,
            checked.check(Options(queue_name, priority, max_attempts, None, using), chosen),
            backoff=checked.check_backoff(backoff, chosen),
            give_up_on=checked.check_exceptions(give_up_on, chosen),
            takes_context=takes_context,
            aliases=tuple(aliases),
        )
        registry.add(definition)
        return definition

    return define if function is None else define(function)


