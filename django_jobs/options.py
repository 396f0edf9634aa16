"""A job's options, and their checks: alike on both databases, before any SQL, each error naming the option."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.utils import timezone

from django_jobs import limits, stored_backoff, tags
from django_jobs.arguments import Arguments
from django_jobs.backoff import as_policy
from django_jobs.exceptions import InvalidJob
from django_jobs.serialization import find_problem, shown
from django_jobs.texts import text as _

if TYPE_CHECKING:
    from django.db.models import Model

EARLIEST = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
LATEST = dt.datetime(9000, 1, 1, tzinfo=dt.UTC)
LONGEST_DELAY = dt.timedelta(seconds=limits.LONGEST_DELAY)
_HIGHER_FIRST = _("; higher runs first")


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

    @cached_property
    def is_usual(self) -> bool:
        """Whether jobs with these options may run at once and have none of what few jobs have."""
        return (
            self.run_after is None
            and self.unique is None
            and self.unique_key is None
            and self.unique_for is None
            and not self.pending
            and not self.tags
            and self.timeout is None
            and self.backoff is None
        )


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
    check_whole(
        options.priority,
        "priority",
        limits.PRIORITY_LOWEST,
        limits.PRIORITY_HIGHEST,
        name,
        _HIGHER_FIRST,
    )
    if options.max_attempts is not None:
        check_whole(options.max_attempts, "max_attempts", 1, limits.MAX_ATTEMPTS_HIGHEST, name)
    if options.run_after is not None:
        check_run_after(options.run_after, name)
    using: Any = options.using
    if using is not None and not (isinstance(using, str) and using in settings.DATABASES):
        raise InvalidJob(
            _(
                "using=%(value)s of %(name)s is no database; DATABASES has %(known)s.",
                value=shown(using),
                name=name,
                known=", ".join(sorted(settings.DATABASES)),
            )
        )
    check_unique(options, name)
    if not isinstance(options.pending, bool):
        raise InvalidJob(
            _(
                "%(option)s of %(name)s is %(value)s; it must be True or False.",
                option="pending",
                name=name,
                value=shown(options.pending),
            )
        )
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
            _(
                "queue_name=%(value)s of %(name)s can't be written in runjobs --queues: leave out commas, colons, "
                "asterisks, control characters and outer spaces.",
                value=shown(queue_name),
                name=name,
            )
        )


def check_run_after(run_after: Any, name: str) -> None:
    """Raise InvalidJob unless this is an aware datetime or a timedelta that both databases can hold."""
    if isinstance(run_after, dt.timedelta):
        if abs(run_after) > LONGEST_DELAY:
            raise InvalidJob(
                _(
                    "run_after=%(value)s of %(name)s is more than a hundred years from now.",
                    value=repr(run_after),
                    name=name,
                )
            )
        return
    if not isinstance(run_after, dt.datetime):
        raise InvalidJob(
            _(
                "run_after of %(name)s is %(value)s, of type %(type)s; it must be an aware datetime or a timedelta "
                "from now.",
                name=name,
                value=shown(run_after),
                type=type(run_after).__name__,
            )
        )
    if timezone.is_naive(run_after):
        if settings.USE_TZ:
            raise InvalidJob(
                _(
                    "run_after=%(value)s of %(name)s has no time zone. Use django.utils.timezone.now() or "
                    "make_aware(), or a timedelta from now.",
                    value=repr(run_after),
                    name=name,
                )
            )
        run_after = timezone.make_aware(run_after, timezone.get_default_timezone())
    if not EARLIEST <= run_after <= LATEST:
        raise InvalidJob(
            _(
                "run_after=%(value)s of %(name)s must lie between the years 1970 and 9000.",
                value=repr(run_after),
                name=name,
            )
        )


def check_unique(options: Options, name: str) -> None:
    """Raise InvalidJob unless these can make a unique key."""
    unique: Any = options.unique
    if isinstance(unique, str):
        _check_text(unique, "unique", limits.KEY_LENGTH, name)
    elif not (unique is None or isinstance(unique, bool)) and (
        not callable(unique) or iscoroutinefunction(unique)
    ):
        raise InvalidJob(
            _(
                "unique of %(name)s is %(value)s; it must be True, a key such as 'order:{order_id}', or a function "
                "(not async) that returns the key.",
                name=name,
                value=shown(unique),
            )
        )
    if options.unique_for is not None:
        check_unique_for(options.unique_for, name)
    if options.unique_key is not None:
        length = limits.KEY_LENGTH if options.unique_for is None else limits.PERIOD_KEY_LENGTH
        _check_text(options.unique_key, "unique_key", length, name)
    if options.on_duplicate not in ("return", "replace"):
        raise InvalidJob(
            _(
                "on_duplicate of %(name)s is %(value)s; it must be 'return' or 'replace'.",
                name=name,
                value=shown(options.on_duplicate),
            )
        )


def check_unique_for(unique_for: Any, name: str) -> None:
    """Raise InvalidJob unless this is a length of time that periods can have."""
    if not isinstance(unique_for, dt.timedelta):
        raise InvalidJob(
            _(
                "unique_for of %(name)s is %(value)s; it must be a timedelta.",
                name=name,
                value=shown(unique_for),
            )
        )
    if unique_for % dt.timedelta(seconds=1) or not dt.timedelta() < unique_for <= LONGEST_DELAY:
        raise InvalidJob(
            _(
                "unique_for=%(value)s of %(name)s must be whole seconds, at least one, and at most a hundred years.",
                value=repr(unique_for),
                name=name,
            )
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
            _(
                "timeout of %(name)s is %(value)s; it must be a number of seconds, or a timedelta, from 0 (no timeout) "
                "to a hundred years.",
                name=name,
                value=shown(timeout),
            )
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
        raise InvalidJob(
            _(
                "%(option)s of %(name)s is %(value)s; it must be a string that is not empty.",
                option=option,
                name=name,
                value=shown(value),
            )
        )
    if len(value) > length:
        raise InvalidJob(
            _(
                "%(option)s of %(name)s has %(count)d characters, over the limit of %(most)d: %(value)s",
                option=option,
                name=name,
                count=len(value),
                most=length,
                value=shown(value),
            )
        )
    if find_problem(value, option) is not None:
        raise InvalidJob(find_problem(value, _("%(option)s of %(name)s", option=option, name=name)))


def check_whole(value: Any, option: str, lowest: int, highest: int, name: str, more: str = "") -> None:
    """Raise InvalidJob unless the value is a whole number in that range."""
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise InvalidJob(
            _(
                "%(option)s of %(name)s is %(value)s; it must be a whole number from %(lowest)d to "
                "%(highest)d%(more)s.",
                option=option,
                name=name,
                value=shown(value),
                lowest=lowest,
                highest=highest,
                more=more,
            )
        )
