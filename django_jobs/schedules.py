"""What runs periodically, as the code declares it: ``@periodic``, and ``DJANGO_JOBS["SCHEDULES"]``.

A worker brings the declarations into the database when it starts (:mod:`django_jobs.scheduling`), and the keeper runs
them from there.
"""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from django.utils import timezone as django_timezone

from django_jobs import conf, limits
from django_jobs.databases import jobs_database
from django_jobs.definitions import JobDefinition
from django_jobs.exceptions import InvalidJob, InvalidSchedule
from django_jobs.job_registry import registry
from django_jobs.serialization import encode, find_problem, shown
from django_jobs.store.rows import NewSchedule
from django_jobs.texts import text as _
from django_jobs.timing import BAD_TIMING, LATEST, MISSED, Cron, Interval, Timing, zone_name

BAD_SCHEDULE = "django_jobs.E020"
UNKNOWN_JOB = "django_jobs.E023"
DUPLICATE_KEY = "django_jobs.E024"
BAD_CALL = "django_jobs.E025"
NO_JOB = "django_jobs.E026"

# What a schedule can choose for its own jobs.
OPTIONS = ("queue_name", "priority", "max_attempts")
_ENTRY = ("job", "cron", "every", "timezone", "args", "kwargs", "missed", *OPTIONS)
# Where a function that is not a job yet keeps what @periodic said.
_MARKS = "__django_jobs_periodic__"

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Declaration:
    """A schedule, checked: what runs, when, and what to do about missed ticks."""

    key: str
    name: str
    timing: Timing
    missed: str = LATEST
    args: str = "[]"
    kwargs: str = "{}"
    options: str = "{}"
    definition: JobDefinition[Any, Any] | None = None

    @property
    def row(self) -> NewSchedule:
        """As it is stored."""
        timing = self.timing
        when = (timing.expression, timing.timezone, self.missed)
        return NewSchedule(self.key, self.name, *when, self.args, self.kwargs, self.options)

    @property
    def using(self) -> str:
        """The database that it belongs to: that of its jobs."""
        return jobs_database(None if self.definition is None else self.definition.options.using)


class _Given(NamedTuple):
    """What somebody has written, not checked yet."""

    cron: Any = None
    every: Any = None
    timezone: Any = None
    args: Any = ()
    kwargs: Any = None
    missed: Any = LATEST
    options: Mapping[str, Any] = {}  # never written to

    def declaration(self, key: Any, name: str, definition: JobDefinition[Any, Any] | None) -> Declaration:
        """Check it all. Raises InvalidSchedule."""
        key = check_key(name if key is None else key)
        timing = self.timing()
        args, kwargs = self.call(name, definition)
        return Declaration(key, name, timing, self.missed, args, kwargs, encode(self.options), definition)

    def timing(self) -> Timing:
        """When it ticks. Raises InvalidSchedule; checks ``missed`` too, which needs no job either."""
        if self.missed not in MISSED:
            raise InvalidSchedule(
                f"missed is {shown(self.missed)}.", f"It must be one of {', '.join(MISSED)}.", BAD_SCHEDULE
            )
        if (self.cron is None) == (self.every is None):
            raise InvalidSchedule(
                "It has neither a cron expression nor an interval."
                if self.cron is None
                else "It has both a cron expression and an interval.",
                "Give one: '*/5 * * * *', or every=timedelta(minutes=5).",
                BAD_TIMING,
            )
        if self.every is None:
            zone = django_timezone.get_default_timezone_name() if self.timezone is None else self.timezone
            return Cron(self.cron, zone_name(zone))
        if self.timezone is not None:
            raise InvalidSchedule(
                "An interval has no time zone.", "Leave timezone out, or use a cron expression.", BAD_TIMING
            )
        return Interval(self.every)

    def call(self, name: str, definition: JobDefinition[Any, Any] | None) -> tuple[str, str]:
        """The arguments as JSON; with a definition, they and the options have been checked. Raises InvalidSchedule."""
        args, kwargs = self.args, {} if self.kwargs is None else self.kwargs
        if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping):
            raise InvalidSchedule(
                f"args is {shown(args)} and kwargs {shown(self.kwargs)}.",
                "args must be a list or tuple, kwargs a dict.",
                BAD_CALL,
            )
        try:
            if definition is None:
                problem = find_problem([list(args), dict(kwargs)], "args and kwargs")
                if problem is not None:
                    raise InvalidJob(problem)
                return encode(list(args)), encode(dict(kwargs))
            definition.using(**self.options)
            definition.arguments.fit(args, kwargs)
            return definition.arguments.encode(args, kwargs, conf.get("MAX_ARGUMENT_BYTES"))
        except InvalidJob as error:
            raise InvalidSchedule(
                f"{name} can't be called so: {str(error).rstrip('.')}.",
                "Correct its args, kwargs and options.",
                BAD_CALL,
            ) from None


class Schedules:
    """The schedules that code declares, by key. Those of the settings are read when they are asked for."""

    def __init__(self) -> None:
        self._declared: dict[str, Declaration] = {}
        self._marks: list[_Mark] = []

    def add(self, declaration: Declaration) -> None:
        """Declare a schedule. Raises InvalidSchedule when another one has its key."""
        known = self._declared.get(declaration.key)
        if known is not None and not _is_again(known, declaration):
            raise InvalidSchedule(
                f"Two schedules have the key {declaration.key!r}: one of {known.name} and one of {declaration.name}.",
                "Give one of them another key=.",
                DUPLICATE_KEY,
            )
        self._declared[declaration.key] = declaration

    def remove(self, key: str) -> None:
        """Forget a declaration; for tests that make one."""
        self._declared.pop(key, None)

    def attach(self, function: Any, definition: JobDefinition[Any, Any]) -> None:
        """Declare what ``@periodic`` below ``@job`` said of the function."""
        for mark in getattr(function, _MARKS, ()):
            self.add(mark.given.declaration(mark.key, definition.name, definition))
            if mark in self._marks:
                self._marks.remove(mark)

    def mark(self, function: Any, mark: _Mark) -> None:
        """Remember what ``@periodic`` says of a function that is to become a job."""
        try:
            setattr(function, _MARKS, [*getattr(function, _MARKS, ()), mark])
        except AttributeError:
            raise InvalidSchedule(
                f"@periodic decorates a function, not {shown(function)}.", "Put it above @job.", BAD_SCHEDULE
            ) from None
        self._marks.append(mark)

    def collect(self) -> tuple[dict[str, Declaration], dict[str, InvalidSchedule]]:
        """All that is declared, here and in the settings, and what is wrong, both by key.

        A job that the settings name and nobody has registered is a problem, and a declaration all the same: whether
        it is registered counts when it is to run. What is declared twice is a problem, and the code counts.
        """
        declared: dict[str, Declaration] = {}
        problems: dict[str, InvalidSchedule] = {}
        for key, entry in conf.get("SCHEDULES").items():
            try:
                declaration = _of_entry(key, entry)
                declared[key] = declaration
                if declaration.definition is None:
                    problems[key] = _unknown_job(declaration.name)
                if key in self._declared:
                    problems[key] = InvalidSchedule(
                        f"Its key is that of a schedule of {self._declared[key].name}, which the code declares.",
                        "Give one of them another key.",
                        DUPLICATE_KEY,
                    )
            except InvalidSchedule as problem:
                problems[key] = problem
        for mark in self._marks:
            problems[mark.place] = InvalidSchedule(
                f"@periodic decorates {mark.place}, which is no job, and does nothing.",
                "Decorate it with @job, too.",
                NO_JOB,
            )
        return {**declared, **self._declared}, problems


schedules = Schedules()


class _Mark(NamedTuple):
    place: str
    key: Any
    given: _Given


def periodic(
    cron: str | None = None,
    *,
    every: dt.timedelta | float | None = None,
    timezone: str | dt.tzinfo | None = None,
    key: str | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    missed: str = LATEST,
    **options: Any,
) -> Callable[[F], F]:
    """Run a job periodically: ``@periodic("*/5 * * * *")`` or ``@periodic(every=timedelta(minutes=5))``.

    It stands above or below ``@job`` (or ``@task``), and may stand there several times, each with a key. For each tick
    there is one job, however many workers there are; what happens in the hours around daylight saving stands in
    :mod:`django_jobs.timing`.

    :param cron: five fields (minute, hour, day of the month, month, day of the week), or ``@hourly``, ``@daily``,
        ``@weekly``, ``@monthly``, ``@yearly``.
    :param every: instead: a timedelta, or seconds, of one second or more. Ticks are the multiples of it since 1970 in
        UTC, the same on all hosts.
    :param timezone: whose clock the cron expression is read on: a name or a ``ZoneInfo``; by default ``TIME_ZONE``.
    :param key: names the schedule, and should stay as it is; by default the job's name.
    :param args: positional arguments of each job.
    :param kwargs: keyword arguments of each job.
    :param missed: what to do about ticks that no worker was there for: ``latest`` runs the last one, ``all`` each (the
        newest hundred at most), ``none`` none that is more than a minute late.
    :param options: ``queue_name``, ``priority``, ``max_attempts`` of its jobs, instead of the job function's own.
    :raises InvalidSchedule: for what is not allowed, or a key that another schedule has; the message names it.
    """
    if callable(cron):
        raise InvalidSchedule(
            "@periodic stands without its times.", "Write @periodic('*/5 * * * *').", BAD_TIMING
        )
    given = _Given(cron, every, timezone, args, kwargs, missed, _check_options(options))
    given.timing()

    def decorate(target: F) -> F:
        # A task of Django's framework keeps what it is to this queue.
        definition: Any = getattr(target, "definition", target)
        if isinstance(definition, JobDefinition):
            schedules.add(given.declaration(key, definition.name, definition))
            return target
        function: Any = target.__func__ if isinstance(target, staticmethod) else target
        if not callable(function) or isinstance(function, type):
            raise InvalidSchedule(
                f"@periodic decorates a function, not {shown(function)}.",
                "Give what is to run: @periodic('*/5 * * * *').",
                BAD_SCHEDULE,
            )
        name = getattr(function, "__qualname__", shown(function))
        schedules.mark(function, _Mark(f"{function.__module__}.{name}", key, given))
        return target

    return decorate


def _of_entry(key: Any, entry: Any) -> Declaration:
    """A schedule as the settings have it. Raises InvalidSchedule."""
    check_key(key)
    if not isinstance(entry, Mapping):
        raise InvalidSchedule(
            f"It is {shown(entry)}.",
            "It must be a dict: {'job': 'app.jobs.function', 'cron': '*/5 * * * *'}.",
            BAD_SCHEDULE,
        )
    for name in entry:
        if name not in _ENTRY:
            raise _unknown(name, _ENTRY)
    job = entry.get("job")
    if not isinstance(job, str) or not 0 < len(job) <= limits.NAME_LENGTH or find_problem(job, "job"):
        raise InvalidSchedule(
            f"Its 'job' is {shown(job)}.", "Give the name of a job: 'app.jobs.function'.", UNKNOWN_JOB
        )
    more = {name: value for name, value in entry.items() if name not in ("job", *OPTIONS)}
    options = {name: entry[name] for name in OPTIONS if entry.get(name) is not None}
    return _Given(**more, options=_check_options(options)).declaration(key, job, registry.get(job))


def _check_options(options: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in options.items():
        if name not in OPTIONS:
            raise _unknown(name, [*_ENTRY[1:], "key"])
        if not isinstance(value, str if name == "queue_name" else int) or find_problem(value, name):
            raise InvalidSchedule(
                f"{name} is {shown(value)}.", "Give what @job takes, or leave it out.", BAD_CALL
            )
    return dict(options)


def check_key(key: Any) -> str:
    """The key if it can name a schedule, else raise InvalidSchedule."""
    if not isinstance(key, str) or not 0 < len(key) <= limits.KEY_LENGTH or find_problem(key, "key"):
        raise InvalidSchedule(
            _("The key %(key)s can't name a schedule.", key=shown(key)),
            _("It must be a string of 1 to %(most)d characters, without NUL.", most=limits.KEY_LENGTH),
            BAD_SCHEDULE,
        )
    return str.__str__(key)


def _unknown(name: Any, known: Sequence[str]) -> InvalidSchedule:
    from django_jobs.decorators import option_names

    if name in option_names():
        return InvalidSchedule(
            f"A schedule has no {name!r}.",
            f"Of a job's options it takes {', '.join(OPTIONS)}; give others to the job function: @job({name}=...).",
            BAD_SCHEDULE,
        )
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(known)}."
    return InvalidSchedule(f"A schedule has no {name!r}.", hint, BAD_SCHEDULE)


def _unknown_job(name: str) -> InvalidSchedule:
    names = sorted(definition.name for definition in registry)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return InvalidSchedule(
        f"No job is registered as {name!r}.",
        f"Did you mean {near[0]!r}?"
        if near
        else "Define it with @job in a module called jobs or tasks of an installed app.",
        UNKNOWN_JOB,
    )


def _is_again(known: Declaration, other: Declaration) -> bool:
    """Whether the same code declares it again, as a module does that is reloaded."""
    if known.definition is None or other.definition is None or known.definition is other.definition:
        return False
    return known.definition.place.is_again(other.definition.place)


def problems() -> Iterator[tuple[str, InvalidSchedule]]:
    """What is wrong with the schedules, by key, for the system checks."""
    yield from schedules.collect()[1].items()
