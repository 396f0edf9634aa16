"""A job's options, and their checks: alike on both databases, before any SQL, each error naming the option."""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.utils import timezone

from django_jobs import limits, stored_backoff, tags
from django_jobs.arguments import Arguments
from django_jobs.backoff import as_policy
from django_jobs.exceptions import InvalidJob
from django_jobs.serialization import find_problem, shown

if TYPE_CHECKING:
    from django.db.models import Model

EARLIEST = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
LATEST = dt.datetime(9000, 1, 1, tzinfo=dt.UTC)
LONGEST_DELAY = dt.timedelta(seconds=limits.LONGEST_DELAY)


Delay = float | dt.timedelta
UniqueOption = bool | str | Callable[..., str | None]
ExceptionClasses = type[BaseException] | Sequence[type[BaseException]]
BackoffOption = Delay | Sequence[Delay] | Callable[[int, BaseException | None, Any], Delay] | None
#: What can be written into a job's row.
JobBackoff = Delay | Sequence[Delay] | stored_backoff.Growing


class _LeftOut:
    """What ``using()`` has where nothing was given, so that None can be."""

    def __repr__(self) -> str:
        return "..."


LEFT_OUT: Any = _LeftOut()
#: Options that a job need not have: ``using(timeout=None)`` takes them away. None says nothing of any other one, as it
#: does in Django's ``Task.using()``.
_CAN_BE_NONE = ("max_attempts", "unique", "unique_key", "unique_for", "tags", "timeout", "backoff")
# What None is where no value is something else: a job without a timeout takes its function's.
_NONE = {"timeout": 0, "tags": ()}


def changes_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """What ``using()`` was given, as fields of :class:`Options`: without what was left out."""
    return {
        name: _NONE.get(name) if value is None else value
        for name, value in given.items()
        if value is not LEFT_OUT and (value is not None or name in _CAN_BE_NONE)
    }


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
    #: 0: none, whatever else says.
    timeout: float | dt.timedelta | None = None
    #: A job's own. What ``@job`` was given is the definition's.
    backoff: JobBackoff | None = None


#: The options that ``using()`` takes.
OF_ONE_JOB = tuple(each.name for each in fields(Options))


class Described(Protocol):
    """What is known of a job function, as far as its options and their use go: a definition."""

    name: str
    options: Options
    arguments: Arguments


def check(options: Options, name: str) -> Options:
    """Return the options if they are allowed, and of plain types: an enum's member becomes its value.

    Raises InvalidJob, naming the option and the job function.
    """
    check_queue_name(options.queue_name, name)
    _check_whole(
        options.priority,
        "priority",
        limits.PRIORITY_LOWEST,
        limits.PRIORITY_HIGHEST,
        name,
        "; higher runs first",
    )
    if options.max_attempts is not None:
        _check_whole(options.max_attempts, "max_attempts", 1, limits.MAX_ATTEMPTS_HIGHEST, name)
    if options.run_after is not None:
        check_run_after(options.run_after, name)
    using: Any = options.using
    if using is not None and not (isinstance(using, str) and using in settings.DATABASES):
        raise InvalidJob(
            f"using={shown(using)} of {name} is no database; DATABASES has "
            f"{', '.join(sorted(settings.DATABASES))}."
        )
    check_unique(options, name)
    if not isinstance(options.pending, bool):
        raise InvalidJob(f"pending of {name} is {shown(options.pending)}; it must be True or False.")
    timeout = None if options.timeout is None else check_timeout(options.timeout, name)
    return replace(
        options,
        queue_name=plain_text(options.queue_name),
        priority=_plain_whole(options.priority),
        max_attempts=None if options.max_attempts is None else _plain_whole(options.max_attempts),
        using=None if using is None else plain_text(using),
        unique_key=None if options.unique_key is None else plain_text(options.unique_key),
        tags=tags.check(options.tags, name) if options.tags else (),
        timeout=timeout,
        backoff=None if options.backoff is None else stored_backoff.check(options.backoff, name),
    )


def plain_text(value: str) -> str:
    """A string as what it holds: a member of an enum is formatted and written to a database in ways of its own."""
    return str.__str__(value)


def _plain_whole(value: int) -> int:
    return int.__int__(value)


def check_name(name: Any) -> str:
    """Return ``name`` if it can be the name of a job function, else raise InvalidJob."""
    _check_text(name, "name", limits.NAME_LENGTH, "a job function")
    return plain_text(name)


def check_aliases(aliases: Any, name: str | None) -> tuple[str, ...]:
    """Old names as a tuple, else raise InvalidJob."""
    if isinstance(aliases, str) or not isinstance(aliases, Iterable):
        raise InvalidJob(
            f"aliases of {name or 'a job function'} is {shown(aliases)}; it must be a list of names."
        )
    return tuple(check_name(alias) for alias in aliases)


def check_queue_name(queue_name: Any, name: str) -> None:
    """Raise InvalidJob unless this can be the name of a queue."""
    _check_text(queue_name, "queue_name", limits.QUEUE_LENGTH, name)
    bad = next(
        (character for character in queue_name if character in ",:*" or not character.isprintable()), None
    )
    if bad is not None or queue_name != queue_name.strip():
        raise InvalidJob(
            f"queue_name={shown(queue_name)} of {name} can't be written in runjobs --queues: leave out commas, colons, "
            f"asterisks, control characters and outer spaces."
        )


def check_run_after(run_after: Any, name: str) -> None:
    """Raise InvalidJob unless this is an aware datetime or a timedelta that both databases can hold."""
    if isinstance(run_after, dt.timedelta):
        if abs(run_after) > LONGEST_DELAY:
            raise InvalidJob(f"run_after={run_after!r} of {name} is more than a hundred years from now.")
        return
    if not isinstance(run_after, dt.datetime):
        raise InvalidJob(
            f"run_after of {name} is {shown(run_after)}, of type {type(run_after).__name__}; it must be an aware "
            f"datetime or a timedelta from now."
        )
    if timezone.is_naive(run_after):
        if settings.USE_TZ:
            raise InvalidJob(
                f"run_after={run_after!r} of {name} has no time zone. Use django.utils.timezone.now() or make_aware(), "
                f"or a timedelta from now."
            )
        run_after = timezone.make_aware(run_after, timezone.get_default_timezone())
    if not EARLIEST <= run_after <= LATEST:
        raise InvalidJob(f"run_after={run_after!r} of {name} must lie between the years 1970 and 9000.")


def check_unique(options: Options, name: str) -> None:
    """Raise InvalidJob unless these can make a unique key."""
    unique: Any = options.unique
    if isinstance(unique, str):
        _check_text(unique, "unique", limits.KEY_LENGTH, name)
    elif not (unique is None or isinstance(unique, bool)) and (
        not callable(unique) or iscoroutinefunction(unique)
    ):
        raise InvalidJob(
            f"unique of {name} is {shown(unique)}; it must be True, a key such as 'order:{{order_id}}', or a function "
            f"(not async) that returns the key."
        )
    if options.unique_for is not None:
        check_unique_for(options.unique_for, name)
    if options.unique_key is not None:
        length = limits.KEY_LENGTH if options.unique_for is None else limits.PERIOD_KEY_LENGTH
        _check_text(options.unique_key, "unique_key", length, name)
    if options.on_duplicate not in ("return", "replace"):
        raise InvalidJob(
            f"on_duplicate of {name} is {shown(options.on_duplicate)}; it must be 'return' or 'replace'."
        )


def check_unique_for(unique_for: Any, name: str) -> None:
    """Raise InvalidJob unless this is a length of time that periods can have."""
    if not isinstance(unique_for, dt.timedelta):
        raise InvalidJob(f"unique_for of {name} is {shown(unique_for)}; it must be a timedelta.")
    if unique_for % dt.timedelta(seconds=1) or not dt.timedelta() < unique_for <= LONGEST_DELAY:
        raise InvalidJob(
            f"unique_for={unique_for!r} of {name} must be whole seconds, at least one, and at most a hundred years."
        )


def check_timeout(timeout: Any, name: str) -> float:
    """The timeout in seconds, 0 for none; else raise InvalidJob."""
    seconds = timeout.total_seconds() if isinstance(timeout, dt.timedelta) else timeout
    if (
        not isinstance(seconds, int | float)
        or isinstance(seconds, bool)
        or not 0 <= seconds <= limits.LONGEST_DELAY
    ):
        raise InvalidJob(
            f"timeout of {name} is {shown(timeout)}; it must be a number of seconds, or a timedelta, from 0 (no "
            f"timeout) to a hundred years."
        )
    return float(seconds)


def check_atomic(atomic: Any, function: Any, name: str) -> bool:
    """Whether the function runs in a transaction, else raise InvalidJob."""
    if not isinstance(atomic, bool):
        raise InvalidJob(f"atomic of {name} is {shown(atomic)}; it must be True or False.")
    if atomic and (iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)):
        raise InvalidJob(
            f"{name} is an async def function, and Django's transactions are not for async code: atomic=True can't be "
            f"kept. Make it a def function, or call context.complete() in the sync function that holds the transaction."
        )
    return atomic


def check_backoff(backoff: Any, name: str) -> Any:
    """Return ``backoff`` if ``@job`` takes it, else raise InvalidJob."""
    try:
        as_policy(backoff)
    except (TypeError, ValueError) as error:
        raise InvalidJob(f"backoff of {name}: {error}.") from None
    return backoff


def check_exceptions(classes: Any, option: str, name: str) -> tuple[type[BaseException], ...]:
    """Exception classes as a tuple, else raise InvalidJob."""
    given = classes if isinstance(classes, tuple | list) else (classes,)
    for each in given:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise InvalidJob(f"{option} of {name} has {shown(each)}; it must be exception classes.")
    return tuple(given)


def check_retry_on(classes: Any, name: str) -> tuple[type[BaseException], ...] | None:
    """Exception classes as a tuple; None stands for all. Raises InvalidJob."""
    if classes is None:
        return None
    given = check_exceptions(classes, "retry_on", name)
    if not given:
        raise InvalidJob(
            f"retry_on of {name} is empty. Leave it out to try again after any exception; a job that is never tried "
            f"again has max_attempts=1."
        )
    return given


def _check_text(value: Any, option: str, length: int, name: str) -> None:
    if not isinstance(value, str) or not value:
        raise InvalidJob(f"{option} of {name} is {shown(value)}; it must be a string that is not empty.")
    if len(value) > length:
        raise InvalidJob(
            f"{option} of {name} has {len(value)} characters, over the limit of {length}: {shown(value)}"
        )
    problem = find_problem(value, f"{option} of {name}")
    if problem is not None:
        raise InvalidJob(problem)


def _check_whole(value: Any, option: str, lowest: int, highest: int, name: str, more: str = "") -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise InvalidJob(
            f"{option} of {name} is {shown(value)}; it must be a whole number from {lowest} to {highest}{more}."
        )


# What an option is called elsewhere, or by half its name.
_ELSEWHERE = {
    "bind": "takes_context",
    "countdown": "run_after",
    "database": "using",
    "delay": "run_after",
    "eta": "run_after",
    "lock": "unique",
    "max_retries": "max_attempts",
    "pass_context": "takes_context",
    "queue": "queue_name",
    "queueing_lock": "unique_key",
    "retries": "max_attempts",
    "schedule_at": "run_after",
    "schedule_in": "run_after",
    "soft_time_limit": "timeout",
    "time_limit": "timeout",
}


def unknown_option(name: str, of_function: Iterable[str], *, for_one: bool) -> InvalidJob:
    """The error of an option that there is not.

    :param of_function: the options of ``@job``.
    :param for_one: whether it was given to ``using()``, else to ``@job``.
    """
    known, others = (OF_ONE_JOB, of_function) if for_one else (of_function, OF_ONE_JOB)
    known = list(known)
    near = difflib.get_close_matches(name, [*known, *others, *_ELSEWHERE], n=1, cutoff=0.5)
    if not near:
        return InvalidJob(f"There is no option {name!r}; there are {', '.join(known)}.")
    meant = _ELSEWHERE.get(near[0], near[0])
    if meant in known:
        return InvalidJob(f"There is no option {name!r}; did you mean {meant!r}?")
    whose = "the function's: @job({}=...)" if for_one else "each job's own: .using({}=...)"
    return InvalidJob(f"There is no option {name!r} here; {meant} is {whose.format(meant)}.")
