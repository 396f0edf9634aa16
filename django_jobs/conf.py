"""The settings: one dict, ``DJANGO_JOBS``, read when used, so that ``override_settings`` works.

Each setting is declared once, with its default and what it accepts; the system checks and the reference read that.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured

from django_jobs import limits
from django_jobs.serialization import shown

NAMESPACE = "DJANGO_JOBS"


@dataclass(frozen=True)
class Setting:
    """One key of ``DJANGO_JOBS``: its default, what it accepts, and what it is for."""

    name: str
    default: Any
    accepts: str
    valid: Callable[[Any], bool]
    purpose: str


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _positive(value: Any) -> bool:
    return _is_number(value) and 0 < value <= limits.LONGEST_DELAY


def _not_negative(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= limits.LONGEST_DELAY


def _whole(lowest: int, highest: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest


_pool_size = _whole(1, 10_000)


def _queues(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(
        isinstance(name, str) and 0 < len(name) <= limits.QUEUE_LENGTH and (_pool_size(pool) or _pool(pool))
        for name, pool in value.items()
    )


def _pool(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and set(value) <= {"size", "ahead"}
        and ("size" not in value or _pool_size(value["size"]))
        and isinstance(value.get("ahead", True), bool)
    )


def _retention(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    queues = value.get("queues", {})
    return (
        _ages({state: age for state, age in value.items() if state != "queues"})
        and isinstance(queues, Mapping)
        and all(
            isinstance(name, str)
            and 0 < len(name) <= limits.QUEUE_LENGTH
            and isinstance(ages, Mapping)
            and _ages(ages)
            for name, ages in queues.items()
        )
    )


def _ages(value: Mapping[Any, Any]) -> bool:
    return set(value) <= {"completed", "failed", "cancelled"} and all(
        age is None or _age(age) for age in value.values()
    )


def _health(value: Any) -> bool:
    if not isinstance(value, Mapping) or not set(value) <= {"workers", "late", "queues", "details"}:
        return False
    queues = value.get("queues", {})
    return (
        _whole(0, 10_000)(value.get("workers", 1))
        and isinstance(value.get("details", False), bool)
        and isinstance(queues, Mapping)
        and all(isinstance(name, str) and 0 < len(name) <= limits.QUEUE_LENGTH for name in queues)
        and all(limit is None or _age(limit) for limit in (value.get("late"), *queues.values()))
    )


def _age(value: Any) -> bool:
    return _not_negative(value.total_seconds() if isinstance(value, dt.timedelta) else value)


def _names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) and item for item in value)


SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in [
        Setting(
            "DATABASE",
            None,
            "a key of DATABASES, or None for the database that the router gives for writing jobs",
            lambda value: value is None or (isinstance(value, str) and value in django_settings.DATABASES),
            "The database that holds the jobs.",
        ),
        Setting(
            "QUEUES",
            {},
            "a dict from queue name (or '*' for all others) to pool size, or to a dict of 'size' and 'ahead'",
            _queues,
            "The pools of runjobs when --queues is not given. Empty: one pool for all queues. 'ahead': False where no "
            "job may be claimed before an executor is free for it.",
        ),
        Setting(
            "CONCURRENCY",
            10,
            "a whole number from 1 to 10000",
            _whole(1, 10_000),
            "Executor threads of a pool whose size is not given.",
        ),
        Setting(
            "MAX_ATTEMPTS",
            5,
            f"a whole number from 1 to {limits.MAX_ATTEMPTS_HIGHEST}",
            _whole(1, limits.MAX_ATTEMPTS_HIGHEST),
            "How often a job is attempted when its function does not say.",
        ),
        Setting(
            "MAX_ARGUMENT_BYTES",
            1_000_000,
            "a whole number of bytes, 1 or more",
            _whole(1, 1_000_000_000),
            "How large the encoded arguments of one job may be.",
        ),
        Setting(
            "MAX_RESULT_BYTES",
            1_000_000,
            "a whole number of bytes, 1 or more",
            _whole(1, 1_000_000_000),
            "How large the encoded result of one job may be.",
        ),
        Setting(
            "MAX_METADATA_BYTES",
            limits.METADATA_BYTES,
            "a whole number of bytes, 1 or more",
            _whole(1, 1_000_000_000),
            "How large all metadata of one job may be, encoded.",
        ),
        Setting(
            "MAX_ERRORS",
            20,
            "a whole number from 2 to 1000",
            _whole(2, 1000),
            "How many errors a job keeps: the first and the newest.",
        ),
        Setting(
            "MAX_TRACEBACK_BYTES",
            10_000,
            "a whole number from 500 to 1000000",
            _whole(500, 1_000_000),
            "How much of a traceback is kept; the middle is cut.",
        ),
        Setting(
            "LEASE",
            30,
            "a number of seconds above 0",
            _positive,
            "How long a worker is believed alive without a heartbeat.",
        ),
        Setting(
            "HEARTBEAT_INTERVAL",
            5,
            "a number of seconds above 0",
            _positive,
            "How often a worker renews its lease and learns of pauses and cancellations.",
        ),
        Setting(
            "POLL_INTERVAL",
            1,
            "a number of seconds above 0",
            _positive,
            "How often a worker looks for work when nothing wakes it.",
        ),
        Setting(
            "SHUTDOWN_TIMEOUT",
            30,
            "a number of seconds, 0 or more",
            _not_negative,
            "How long a stopping worker waits for the jobs that run.",
        ),
        Setting(
            "TIMEOUT_GRACE",
            5,
            "a number of seconds, 0 or more",
            _not_negative,
            "How long an attempt may go on after its timeout before it is given up and its thread replaced.",
        ),
        Setting(
            "NOTIFY",
            True,
            "True or False",
            lambda value: isinstance(value, bool),
            "PostgreSQL: wake workers with NOTIFY. False where a pooler in transaction mode stands between, and LISTEN "
            "names no way around it.",
        ),
        Setting(
            "LISTEN",
            None,
            "a key of DATABASES, or None for the database that holds the jobs",
            lambda value: value is None or (isinstance(value, str) and value in django_settings.DATABASES),
            "PostgreSQL: the alias on which workers listen for notifications: a direct connection to the same "
            "database, where the jobs' own alias leads through a pooler in transaction mode.",
        ),
        Setting(
            "PREPARED_STATEMENTS",
            True,
            "True or False",
            lambda value: isinstance(value, bool),
            "PostgreSQL: server-side prepared statements, and settings of the session. False behind a pooler in "
            "transaction mode: then each statement brings its settings along, and leaves nothing on the server's side.",
        ),
        Setting(
            "STATEMENT_TIMEOUT",
            30,
            "a number of seconds above 0",
            _positive,
            "The deadline of every statement of a worker's own; past it the connection is cut and made anew.",
        ),
        Setting(
            "RETENTION",
            {"completed": 7 * 86_400, "failed": 30 * 86_400, "cancelled": 7 * 86_400},
            "a dict from 'completed', 'failed' or 'cancelled' to seconds, a timedelta, or None to keep for ever, and "
            "from 'queues' to a dict from queue name to such a dict",
            _retention,
            "How long finished jobs are kept; of a queue of its own mind, by what 'queues' says. 0: deleted at once.",
        ),
        Setting(
            "STATISTICS_RETENTION",
            30 * 86_400,
            "a number of seconds, a timedelta, or None to keep them for ever",
            lambda value: value is None or _age(value),
            "How long the statistics behind charts and counts over history are kept. 0: nothing is counted.",
        ),
        Setting(
            "HEALTH",
            {"workers": 1, "late": 300, "queues": {}, "details": False},
            "a dict of 'workers' (a whole number), 'late' (seconds, or None), 'queues' (a dict from queue name to "
            "seconds, or None) and 'details' (True or False)",
            _health,
            "When the view health.ready fails: with fewer workers alive than that; when a job has been due for longer "
            "than 'late', or than 'queues' says of its queue. 'details': whether the answer says why.",
        ),
        Setting(
            "SCHEDULES",
            {},
            "a dict from key to {'job': 'app.jobs.function', 'cron': '*/5 * * * *'}",
            lambda value: isinstance(value, Mapping),
            "What runs periodically, beside what @periodic declares: takes what that does.",
        ),
        Setting(
            "RUNSERVER_WORKER",
            False,
            "True or False",
            lambda value: isinstance(value, bool),
            "Whether manage.py runserver runs jobs too, in threads of its own process. For development.",
        ),
        Setting(
            "MIDDLEWARE",
            [],
            "a list of dotted paths",
            _names,
            "Wrappers around every attempt, the first one outermost.",
        ),
        Setting(
            "REDACT",
            [],
            "a list of names (a minus before one: shown all the same), or None to hide nothing by its name",
            lambda value: value is None or _names(value),
            "Keys and parameters whose values the admin and manage.py jobs hide, beside the usual ones (password, "
            "secret, token, api_key, authorization and more).",
        ),
    ]
}


def user_settings() -> Mapping[str, Any]:
    """What the site has set, or an empty dict. Raises ImproperlyConfigured when it is not a dict."""
    value = getattr(django_settings, NAMESPACE, None)
    if (
        type(value) is dict
    ):  # what it is, and each enqueue() asks: isinstance() of an abstract class takes its time
        return value
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ImproperlyConfigured(f"{NAMESPACE} must be a dict, not {type(value).__name__}.")
    return value


def get(name: str) -> Any:
    """The setting's value, or its default.

    Raises ImproperlyConfigured when the value is not what the setting accepts.
    """
    setting = SETTINGS[name]
    value = user_settings().get(name, setting.default)
    if value is not setting.default and not setting.valid(value):
        raise ImproperlyConfigured(f"{NAMESPACE}[{name!r}] is {shown(value)}; it must be {setting.accepts}.")
    return value


Ages = dict[str, float | None]


def retention() -> Ages:
    """Seconds that finished jobs are kept, by state; None keeps them for ever."""
    ages = {**SETTINGS["RETENTION"].default, **get("RETENTION")}
    ages.pop("queues", None)
    return _in_seconds(ages)


def queue_retention() -> dict[str, Ages]:
    """The rules of the queues that have some of their own, each as :func:`retention`; a state that a queue says nothing
    of is kept as in all others, and is not in it."""
    return {name: _in_seconds(ages) for name, ages in get("RETENTION").get("queues", {}).items()}


def unkept(queue_name: str) -> frozenset[str]:
    """The states in which that queue's jobs are deleted as they end."""
    ages = {**retention(), **queue_retention().get(queue_name, {})}
    return frozenset(state for state, age in ages.items() if age == 0)


class HealthSettings(NamedTuple):
    """The setting ``HEALTH``; times in seconds, None for any."""

    workers: int
    late: float | None
    queues: Ages
    details: bool


def health() -> HealthSettings:
    """The setting ``HEALTH``, whole."""
    chosen = {**SETTINGS["HEALTH"].default, **get("HEALTH")}
    late = _in_seconds({"": chosen["late"]})[""]
    return HealthSettings(chosen["workers"], late, _in_seconds(chosen["queues"]), chosen["details"])


def statistics_retention() -> float | None:
    """Seconds that statistics are kept; None keeps them for ever, and with 0 there are none."""
    return _in_seconds({"": get("STATISTICS_RETENTION")})[""]


def _in_seconds(ages: Mapping[str, Any]) -> Ages:
    return {
        state: age.total_seconds() if isinstance(age, dt.timedelta) else age for state, age in ages.items()
    }


class PoolSettings(NamedTuple):
    """A pool of the setting ``QUEUES``: how many jobs run at once, and whether it may claim ahead."""

    size: int
    ahead: bool


def pools() -> dict[str, PoolSettings]:
    """The setting ``QUEUES``, by queue name."""
    size = get("CONCURRENCY")
    return {
        name: PoolSettings(pool.get("size", size), pool.get("ahead", True))
        if isinstance(pool, Mapping)
        else PoolSettings(pool, True)
        for name, pool in get("QUEUES").items()
    }
