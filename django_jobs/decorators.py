"""``@job``: a function becomes a job function."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from django_jobs import options as checked, redaction, uniqueness
from django_jobs.context import JobContext
from django_jobs.definitions import JobDefinition
from django_jobs.exceptions import InvalidJob
from django_jobs.job_registry import registry
from django_jobs.options import BackoffOption, Delay, ExceptionClasses, Options, UniqueOption
from django_jobs.schedules import schedules
from django_jobs.serialization import shown
from django_jobs.unknown_options import unknown_option

P = ParamSpec("P")
R = TypeVar("R")


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
    :param timeout: how long an attempt may take: seconds, or a timedelta. There is none by default, nor with 0. An
        ``async def`` function is cancelled then; another one is told by ``context.should_stop()``, and given up when it
        goes on for ``DJANGO_JOBS["TIMEOUT_GRACE"]`` seconds more. ``context.heartbeat()`` starts the time anew.
    :param atomic: run the function in ``transaction.atomic()`` on the jobs' database, and store its completion in the
        same transaction: what it wrote there and its completion are committed together, or neither. Not for
        ``async def``.
    :param redact: names of parameters and of keys whose values are not to be shown to people, beside those of
        ``DJANGO_JOBS["REDACT"]``; True for all arguments and the result.
    :returns: a :class:`JobDefinition`, which has ``enqueue``, ``aenqueue``, ``using``, ``call`` and ``acall``.
    :raises InvalidJob: for a value that is not allowed, or a name that another function has.
    """

    if unknown:
        raise unknown_option(next(iter(unknown)), option_names(), for_one=False)
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


def option_names() -> list[str]:
    """The options that ``@job`` takes."""
    return list(job.__kwdefaults__ or ())


def path_of(function: Any) -> str:
    """The dotted path by which a worker finds the function."""
    if not callable(function) or isinstance(function, JobDefinition):
        raise _no_function(function)
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


def _no_function(given: Any) -> InvalidJob:
    hint = " Options go by name: @job(queue_name=...)." if isinstance(given, str) else ""
    return InvalidJob(f"@job decorates a function, not {shown(given)}.{hint}")


def check_function(function: Any, name: str) -> None:
    """Raise InvalidJob for what a worker could call, but not to any use."""
    if not callable(function) or isinstance(function, JobDefinition | type):
        raise _no_function(function)
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
