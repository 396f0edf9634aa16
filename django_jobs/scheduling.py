"""Schedules in the database: brought there from the code, and what operators do to them."""

from __future__ import annotations

import datetime as dt
import json
import logging
from collections.abc import Iterable
from typing import Any

from django_jobs import enqueueing
from django_jobs.databases import jobs_database
from django_jobs.exceptions import InvalidSchedule
from django_jobs.job_registry import registry
from django_jobs.schedules import BAD_CALL, UNKNOWN_JOB, check_key, schedules
from django_jobs.serialization import decoded, shown
from django_jobs.store import Store, django_store
from django_jobs.store.rows import JobRow, NewJob, ScheduleRow
from django_jobs.texts import text as _

logger = logging.getLogger("django_jobs.schedules")


def synchronise(store: Store, using: str, now: dt.datetime | None = None) -> list[ScheduleRow]:
    """Make the schedules of the database ``using`` those that this process's code declares.

    Two statements. What no code declares any more is marked, and does not run; what the settings declare wrongly stays
    as it is. Workers that share a database must declare the same schedules, or the last one that starts decides.

    :returns: those that changed.
    :raises ImproperlyConfigured: when the setting is no dict.
    """
    declared, problems = schedules.collect()
    for key, problem in problems.items():
        logger.error("Schedule %r: %s", key, problem)
    mine = [declaration.row for declaration in declared.values() if declaration.using == using]
    changed = store.upsert_schedules(mine, now=now) if mine else []
    _tell("is declared: %s (%s), %s", changed)
    gone = store.remove_schedules({row.key for row in mine} | set(problems), now=now)
    _tell("is declared no more, and does not run: %s (%s), %s", gone)
    return [*changed, *gone]


def _tell(what: str, rows: Iterable[ScheduleRow]) -> None:
    for row in rows:
        logger.info(f"Schedule %r {what}", row.key, row.expression, row.timezone, row.name)  # noqa: G004


def job_of(schedule: ScheduleRow, tick: dt.datetime | None) -> tuple[NewJob, str]:
    """The job of a schedule's tick (None: of no tick), and its metadata as JSON.

    :raises InvalidSchedule: when this process has no such job function.
    :raises InvalidJob: when its arguments or options don't fit the function.
    """
    new = prepared(schedule.name, *map(decoded, (schedule.args, schedule.kwargs, schedule.options)))
    # An escape keeps what somebody's SQL may have put into the key from being refused by PostgreSQL.
    return new, json.dumps({"schedule": schedule.key, "tick": None if tick is None else tick.isoformat()})


def prepared(name: str, args: Any, kwargs: Any, options: Any) -> NewJob:
    """A job of a schedule, of what its row has, decoded.

    :raises InvalidSchedule, InvalidJob: as :func:`job_of`.
    """
    definition = registry.get(name)
    if definition is None:
        raise InvalidSchedule(
            _("No job is registered as %(name)s in this process.", name=repr(name)),
            _("Define it with @job in a module that the workers import, or remove the schedule."),
            UNKNOWN_JOB,
        )
    if not (isinstance(args, list) and isinstance(kwargs, dict) and isinstance(options, dict)):
        raise InvalidSchedule(
            _(
                "The row's args, kwargs and options are %(args)s, %(kwargs)s and %(options)s.",
                args=shown(args),
                kwargs=shown(kwargs),
                options=shown(options),
            ),
            _(
                "They must be a list, a dict and a dict: declare the schedule anew, by a change or under another key."
            ),
            BAD_CALL,
        )
    return enqueueing.prepare(definition.using(**options), args, kwargs).new


def get_schedules(*, using: str | None = None) -> list[ScheduleRow]:
    """All schedules in the order of their keys, those that are paused or removed too."""
    return django_store(jobs_database(using)).schedules()


def get_schedule(key: str, *, using: str | None = None) -> ScheduleRow | None:
    """The schedule with this key, or None.

    :raises InvalidSchedule: for what can't be a key.
    """
    found = django_store(jobs_database(using)).schedules(check_key(key))
    return found[0] if found else None


def pause_schedule(key: str, *, using: str | None = None) -> ScheduleRow | None:
    """Let a schedule not run until it is resumed. Returns it, or None when there is none.

    :raises InvalidSchedule: for what can't be a key.
    """
    return django_store(jobs_database(using)).pause_schedule(check_key(key), True)


def resume_schedule(key: str, *, using: str | None = None) -> ScheduleRow | None:
    """Let a schedule run again, from its next tick on. Returns it, or None when there is none.

    :raises InvalidSchedule: for what can't be a key.
    """
    return django_store(jobs_database(using)).pause_schedule(check_key(key), False)


def run_schedule_now(key: str, *, using: str | None = None) -> JobRow | None:
    """Enqueue a job of a schedule now, beside its ticks, paused or not.

    One statement after the schedule was read. In the caller's transaction.

    :returns: the job; None when there is no such schedule, or a live job holds the unique key that this one would have.
    :raises InvalidSchedule, InvalidJob: when this process has no such job function, or it can't be called so; for what
        can't be a key.
    """
    schedule = get_schedule(key, using=using)
    if schedule is None:
        return None
    job = django_store(jobs_database(using)).run_schedule(schedule.id, *job_of(schedule, None))
    if job is not None and using is not None:
        job.using = using
    return job
