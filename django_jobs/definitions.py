"""``@job``, and the registry of job functions.

A row names its function; only what is registered here is ever called because a row says so.
"""

from __future__ import annotations

import datetime as dt
import difflib
import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, NamedTuple, ParamSpec, TypeVar, overload

from asgiref.sync import async_to_sync, iscoroutinefunction, markcoroutinefunction, sync_to_async

from django_jobs import declared_tasks, enqueueing, options as checked, redaction, uniqueness
from django_jobs.arguments import Arguments
from django_jobs.backoff import as_policy
from django_jobs.context import JobContext
from django_jobs.exceptions import InvalidJob
from django_jobs.schedules import schedules
from django_jobs.serialization import shown
from django_jobs.store.rows import JobRow
from django_jobs.stored_backoff import Growing

if TYPE_CHECKING:
    from django.db.models import Model

P = ParamSpec("P")
R = TypeVar("R")
# A definition gives what it returns, and takes none: that of a coroutine stands in where one of an awaitable is wanted.
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")

Delay = float | dt.timedelta
UniqueOption = bool | str | Callable[..., str | None]
ExceptionClasses = type[BaseException] | Sequence[type[BaseException]]
BackoffOption = Delay | Sequence[Delay] | Callable[[int, BaseException | None, Any], Delay] | None
#: What can be written into a job's row.
JobBackoff = Delay | Sequence[Delay] | Growing


@dataclass(frozen=True)
class Options:
    """What can differ from one job of a function to the next; ``.using()`` changes it."""

    queue_name: str = "default"
    priority: int = 0
    max_attempts: int | None = None
    run_after: dt.datetime | dt.timedelta | None = None
    using: str | None = None
    unique: UniqueOption | None = None
    unique_key: str | None = None
    unique_for: dt.timedelta | None = None
    on_duplicate: Literal["return", "replace"] = "return"
    pending: bool = False
    tags: Sequence[str | Model] = ()
    timeout: float | dt.timedelta | None = None
    #: A job's own. What ``@job`` was given is the definition's.
    backoff: JobBackoff | None = None


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
        self.is_plain = not self.is_async and not atomic and options.timeout is None
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
        unique: UniqueOption | None = None,
        unique_key: str | None = None,
        unique_for: dt.timedelta | None = None,
        on_duplicate: Literal["return", "replace"] | None = None,
        pending: bool | None = None,
        tags: Sequence[str | Model] | None = None,
        timeout: float | dt.timedelta | None = None,
        backoff: JobBackoff | None = None,
        **unknown: Any,
    ) -> JobDefinition[P, R_co]:
        """The same function with other options, for the jobs enqueued through what is returned.

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
        :param timeout: how long an attempt may take: seconds, or a timedelta.
        :param backoff: how long to wait after a failed attempt: seconds, a timedelta, a sequence of those, or a policy
            of :mod:`django_jobs.backoff`. It is written into the job's row, so it can't be a callable of your own.
        :raises InvalidJob: for a value that is not allowed; the message names it.
        """
        if unknown:
            raise _unknown_option(next(iter(unknown)), [each.name for each in fields(Options)])
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
        changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.options = checked.check(replace(self.options, **changes), self.name)
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


class Place(NamedTuple):
    """Where a function is defined: by it two functions that want one name are told from one that is defined again."""

    path: str
    file: str
    line: int
    #: What a module is executed by: a reload makes a new one. None for a module of no file, such as a shell.
    execution: Any

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Place:
        """The place of ``function``, as far as it is known."""
        code = getattr(inspect.unwrap(function), "__code__", None)
        module = sys.modules.get(function.__module__)
        return cls(
            f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}",
            getattr(code, "co_filename", ""),
            getattr(code, "co_firstlineno", 0),
            getattr(module, "__spec__", None),
        )

    def is_again(self, other: Place) -> bool:
        """Whether ``other`` is this place executed again: the same lines, or a module that was reloaded."""
        if self.path != other.path:
            return False
        executed_once = self.execution is other.execution and self.execution is not None
        return not executed_once or self[1:3] == other[1:3]

    def __str__(self) -> str:
        return f"{self.path} ({self.file}:{self.line})" if self.file else self.path


def _unknown_option(name: str, known: list[str]) -> InvalidJob:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
    return InvalidJob(f"There is no option {name!r}; {hint}")


class Registry:
    """Job functions by name, old names (aliases) included."""

    def __init__(self) -> None:
        self._definitions: dict[str, JobDefinition[Any, Any]] = {}
        self._names: dict[str, JobDefinition[Any, Any]] = {}
        #: Those of the definitions, by name and alias, that are told of stored outcomes.
        self.listening: dict[str, JobDefinition[Any, Any]] = {}

    def add(self, definition: JobDefinition[Any, Any]) -> None:
        """Register a definition under its name and aliases.

        :raises InvalidJob: when another function has one of these names.
        """
        for name in (definition.name, *definition.aliases):
            known = self._names.get(name)
            if known is not None and not known.place.is_again(definition.place):
                raise InvalidJob(
                    f"Two functions want the job name {name!r}: {known.place} and {definition.place}. Give one of "
                    f"them another name=."
                )
        self._definitions[definition.name] = definition
        for name in (definition.name, *definition.aliases):
            self._names[name] = definition
            if definition.on_stored is not None:
                self.listening[name] = definition
            else:
                self.listening.pop(name, None)

    def get(self, name: str) -> JobDefinition[Any, Any] | None:
        """The definition with this name or alias, or None."""
        known = self._names.get(name)
        return known if known is not None else declared_tasks.find(name)

    def known(self, name: str) -> JobDefinition[Any, Any] | None:
        """What is registered under this name or alias by now, or None."""
        return self._names.get(name)

    def remove(self, definition: JobDefinition[Any, Any]) -> None:
        """Forget a definition; for tests that define one."""
        for name in (definition.name, *definition.aliases):
            self._names.pop(name, None)
            self.listening.pop(name, None)
        self._definitions.pop(definition.name, None)

    def __iter__(self) -> Iterator[JobDefinition[Any, Any]]:
        return iter(list(self._definitions.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def queue_names(self) -> set[str]:
        """The queues that registered functions go to."""
        return {definition.queue_name for definition in self}


registry = Registry()


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
    give_up_on: ExceptionClasses = ...,
    retry_on: ExceptionClasses | None = ...,
    name: str | None = ...,
    aliases: Iterable[str] = ...,
    using: str | None = ...,
    unique: UniqueOption | None = ...,
    unique_for: dt.timedelta | None = ...,
    on_duplicate: Literal["return", "replace"] = ...,
    timeout: Delay | None = ...,
    atomic: bool = ...,
    redact: Sequence[str] | bool = ...,
) -> Callable[[Callable[Concatenate[JobContext, P], R]], JobDefinition[P, R]]: ...
@overload
def job(
    *,
    takes_context: Literal[False] = ...,
    queue_name: str = ...,
    priority: int = ...,
    max_attempts: int | None = ...,
    backoff: BackoffOption = ...,
    give_up_on: ExceptionClasses = ...,
    retry_on: ExceptionClasses | None = ...,
    name: str | None = ...,
    aliases: Iterable[str] = ...,
    using: str | None = ...,
    unique: UniqueOption | None = ...,
    unique_for: dt.timedelta | None = ...,
    on_duplicate: Literal["return", "replace"] = ...,
    timeout: Delay | None = ...,
    atomic: bool = ...,
    redact: Sequence[str] | bool = ...,
) -> Callable[[Callable[P, R]], JobDefinition[P, R]]: ...
def job(
    function: Callable[..., Any] | None = None,
    /,
    *,
    queue_name: str = "default",
    priority: int = 0,
    max_attempts: int | None = None,
    backoff: BackoffOption = None,
    give_up_on: ExceptionClasses = (),
    retry_on: ExceptionClasses | None = None,
    takes_context: bool = False,
    name: str | None = None,
    aliases: Iterable[str] = (),
    using: str | None = None,
    unique: UniqueOption | None = None,
    unique_for: dt.timedelta | None = None,
    on_duplicate: Literal["return", "replace"] = "return",
    timeout: Delay | None = None,
    atomic: bool = False,
    redact: Sequence[str] | bool = (),
    **unknown: Any,
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
    :param retry_on: the only exception classes after which it is tried again; after any other it is a dead letter at
        once. By default all. Where both match, ``give_up_on`` wins. A ``Retry`` is always obeyed, and an attempt that
        timed out, or whose worker was lost or stopped, is tried again in any case, since that is no word of the
        function's.
    :param takes_context: pass a :class:`~django_jobs.context.JobContext` as the first argument.
    :param name: the name in the rows; by default the dotted path of the function. Rows outlive deploys: a name, once
        used, should stay, or become one of the ``aliases``.
    :param aliases: old names, whose rows this function still serves.
    :param using: the alias of the database that holds the jobs.
    :param unique: at most one job that has not ended: an enqueue while there is one returns that one, and
        ``job.is_duplicate`` says so. True: for each set of arguments. A string such as ``"order:{order_id}"``: for each
        key that the arguments make of it; other functions with the same key count too. A callable: for each key that it
        returns for the arguments; None is no key. A failed or cancelled job never stands in the way.
    :param unique_for: at most one job in each period of this length, the completed one counted too. Periods are fixed:
        multiples of the length since 1970 in UTC (an hour starts at its minute 0, a day at midnight UTC). The job of
        one period does not stand in the way of the next one's. Without ``unique``: for each set of arguments.
    :param on_duplicate: ``"return"`` the job that is there as it is, or ``"replace"`` its arguments and its
        ``run_after``, if it still waits.
    :param timeout: how long an attempt may take: seconds, or a timedelta. An ``async def`` function is cancelled then;
        another one is told by ``context.should_stop()``, and given up when it goes on for
        ``DJANGO_JOBS["TIMEOUT_GRACE"]`` seconds more. ``context.heartbeat()`` starts the time anew.
    :param atomic: run the function in ``transaction.atomic()`` on the jobs' database, and store its completion in the
        same transaction: what it wrote there and its completion are committed together, or neither. Not for
        ``async def``.
    :param redact: names of parameters and of keys whose values are not to be shown to people, beside those of
        ``DJANGO_JOBS["REDACT"]``; True for all arguments and the result.
    :returns: a :class:`JobDefinition`, which has ``enqueue``, ``aenqueue``, ``using``, ``call`` and ``acall``.
    :raises InvalidJob: for a value that is not allowed, or a name that another function has.
    """

    if unknown:
        raise _unknown_option(next(iter(unknown)), list(job.__kwdefaults__ or ()))
    old_names = checked.check_aliases(aliases, name)

    def define(function: Callable[..., Any]) -> JobDefinition[Any, Any]:
        if isinstance(function, staticmethod):
            function = function.__func__
        chosen = path_of(function) if name is None else checked.check_name(name)
        check_function(function, chosen)
        try:
            definition: JobDefinition[Any, Any] = JobDefinition(
                function,
                checked.check_name(chosen),
                checked.check(
                    Options(
                        queue_name,
                        priority,
                        max_attempts,
                        using=using,
                        unique=unique,
                        unique_for=unique_for,
                        on_duplicate=on_duplicate,
                        timeout=timeout,
                    ),
                    chosen,
                ),
                backoff=checked.check_backoff(backoff, chosen),
                give_up_on=checked.check_exceptions(give_up_on, "give_up_on", chosen),
                retry_on=checked.check_retry_on(retry_on, chosen),
                takes_context=takes_context,
                aliases=old_names,
                atomic=checked.check_atomic(atomic, function, chosen),
                redact=redaction.check(redact, chosen),
            )
        except TypeError as error:
            context = "takes_context=True passes it a context first. " if takes_context else ""
            raise InvalidJob(f"{chosen} can't be a job: {context}{error}.") from None
        uniqueness.check(definition)
        registry.add(definition)
        schedules.attach(function, definition)
        return definition

    return define if function is None else define(function)


def path_of(function: Any) -> str:
    """The dotted path by which a worker finds the function."""
    if not callable(function) or isinstance(function, JobDefinition):
        raise InvalidJob(f"@job decorates a function, not {shown(function)}.")
    module, qualname = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module is None or qualname is None:
        raise InvalidJob(f"{shown(function)} has no dotted path to be found by. Give it a name=.")
    path = f"{module}.{qualname}"
    if "<" in path:
        raise InvalidJob(
            f"{path} is defined inside a function, so a worker can't find it by that name. Define it at the top of a "
            f"module, or give it a name= and import it in every worker."
        )
    return path


def check_function(function: Any, name: str) -> None:
    """Raise InvalidJob for what a worker could call, but not to any use."""
    if not callable(function) or isinstance(function, JobDefinition | type):
        raise InvalidJob(f"@job decorates a function, not {shown(function)}.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidJob(
            f"{name} is a generator function: called, it does nothing until it is iterated. Use no yield."
        )
    code = getattr(function, "__code__", None)
    first = code.co_varnames[:1] if code is not None and code.co_argcount else ()
    scope = getattr(function, "__qualname__", "").rpartition("<locals>.")[2]
    if first in (("self",), ("cls",)) and "." in scope and not inspect.ismethod(function):
        raise InvalidJob(
            f"{name} is a method, and a worker has no {first[0]} to call it with. Define it at the top of a module, or "
            f"as a staticmethod."
        )
