"""System checks: what is wrong with the set-up, where, and what to do, before a job is lost to it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.core import checks
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, router
from django.utils.module_loading import import_string

from django_jobs import conf, schedules
from django_jobs.databases import jobs_database
from django_jobs.models import Job
from django_jobs.serialization import shown

SHORT_TIMEOUT = 10


@register("django_jobs")
def check_settings(**_: Any) -> list[CheckMessage]:
    """Check ``DJANGO_JOBS``: known keys with values of the right kind, and middleware that can be imported."""
    try:
        chosen = conf.user_settings()
    except ImproperlyConfigured as error:
        return [Error(str(error), hint="Write DJANGO_JOBS = {...}, or leave it out.", id="django_jobs.E001")]
    messages: list[CheckMessage] = []
    for name, value in chosen.items():
        if name not in conf.SETTINGS:
            messages.append(_unknown(name))
        elif not conf.SETTINGS[name].valid(value):
            setting = conf.SETTINGS[name]
            messages.append(
                Error(
                    f"DJANGO_JOBS[{name!r}] is {shown(value)}.",
                    hint=f"It must be {setting.accepts}. The default is {setting.default!r}.",
                    id="django_jobs.E003",
                )
            )
        elif name == "MIDDLEWARE":
            messages.extend(_check_middleware(value))
    if not messages and conf.get("HEARTBEAT_INTERVAL") * 2 > conf.get("LEASE"):
        messages.append(
            Error(
                f"DJANGO_JOBS: a heartbeat every {conf.get('HEARTBEAT_INTERVAL')} s does not keep a lease of "
                f"{conf.get('LEASE')} s: one late heartbeat, and running jobs are taken for lost.",
                hint="Set LEASE to at least twice HEARTBEAT_INTERVAL; the defaults are 30 and 5.",
                id="django_jobs.E004",
            )
        )
    return messages


def _unknown(name: Any) -> CheckMessage:
    near = difflib.get_close_matches(str(name).upper(), conf.SETTINGS, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]!r}?" if near else f"The known keys are {', '.join(sorted(conf.SETTINGS))}."
    return Error(f"DJANGO_JOBS has the unknown key {name!r}.", hint=hint, id="django_jobs.E002")


def _check_middleware(paths: Iterable[str]) -> Iterable[CheckMessage]:
    for path in paths:
        try:
            problem = None if callable(import_string(path)) else "can't be called"
        except Exception as error:  # noqa: BLE001 - whatever the import of somebody's module raises
            problem = f"can't be imported: {error}"
        if problem is not None:
            yield Error(
                f"DJANGO_JOBS['MIDDLEWARE'] names {path!r}, which {problem}.",
                hint="Give the dotted path of a function or class that takes the next step and returns a wrapper.",
                id="django_jobs.E005",
            )


@register("django_jobs")
def check_schedules(**_: Any) -> list[CheckMessage]:
    """Check the schedules of ``DJANGO_JOBS["SCHEDULES"]``; those of the code were checked when it was imported."""
    try:
        problems = dict(schedules.problems())
    except ImproperlyConfigured:
        return []  # check_settings says so
    return [
        Error(f"Schedule {shown(key)}: {problem.message}", hint=problem.hint, id=problem.code)
        for key, problem in problems.items()
    ]


@register("django_jobs")
def check_database(**_: Any) -> list[CheckMessage]:
    """Check, from the settings alone, that the database that holds the jobs can keep the promises."""
    try:
        conf.get("DATABASE")
    except ImproperlyConfigured:
        return []  # check_settings says so
    try:
        alias = jobs_database()
    except ImproperlyConfigured as error:
        return [Error(str(error), hint="Correct DATABASE_ROUTERS.", id="django_jobs.E010")]
    connection = connections[alias]
    where = f"DATABASES[{alias!r}]"
    if connection.vendor == "sqlite":
        return _check_sqlite(where, connection.settings_dict)
    if connection.vendor != "postgresql":
        return [
            Error(
                f"{where} is {connection.display_name}; jobs can be kept in SQLite or PostgreSQL only.",
                hint="Name one of those in DJANGO_JOBS['DATABASE'], and route the app's models to it.",
                id="django_jobs.E010",
            )
        ]
    return _check_postgresql()


def _check_postgresql() -> list[CheckMessage]:
    try:
        prepared, notify, listen = conf.get("PREPARED_STATEMENTS"), conf.get("NOTIFY"), conf.get("LISTEN")
    except ImproperlyConfigured:
        return []  # check_settings says so
    if prepared or not notify or listen is not None:
        return []
    return [
        checks.Warning(
            "DJANGO_JOBS: PREPARED_STATEMENTS is False, as it must be behind a pooler in transaction mode, and NOTIFY "
            "is True: workers listen on a connection that keeps no session there, hear nothing, and rely on it.",
            hint="Set LISTEN to the alias of a direct connection to the same database, or NOTIFY to False. If there is "
            "no such pooler, set PREPARED_STATEMENTS to True.",
            id="django_jobs.W015",
        )
    ]


@register("django_jobs")
def check_transaction(**_: Any) -> list[CheckMessage]:
    """Check that the jobs are in a database that the site writes its own data to."""
    try:
        alias = jobs_database()
    except ImproperlyConfigured:
        return []  # check_database says so
    others = {
        router.db_for_write(model)
        for model in apps.get_models()
        if model._meta.app_label != Job._meta.app_label and model._meta.managed
    }
    if not others or alias in others:
        return []
    known = ", ".join(repr(each) for each in sorted(others))
    return [
        checks.Warning(
            f"The jobs are in database {alias!r}, and no model of the site is: those are in {known}. So a job is not "
            f"enqueued in the transaction that writes what it is about: one can be stored without the other.",
            hint="Keep the jobs in the site's own database. Where that can't be, enqueue in transaction.on_commit(), "
            "and silence this check.",
            id="django_jobs.W014",
        )
    ]


def _check_sqlite(where: str, database: dict[str, Any]) -> list[CheckMessage]:
    options = database.get("OPTIONS", {})
    messages: list[CheckMessage] = []
    if "journal_mode=wal" not in str(options.get("init_command", "")).replace(" ", "").lower():
        messages.append(
            checks.Warning(
                f"{where} does not switch SQLite to its write-ahead log: readers and writers wait for each other.",
                hint="OPTIONS: 'init_command': 'PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;'",
                id="django_jobs.W011",
            )
        )
    if str(options.get("transaction_mode", "")).upper() not in {"IMMEDIATE", "EXCLUSIVE"}:
        messages.append(
            checks.Warning(
                f"{where} begins transactions in SQLite's deferred mode: one that reads and then writes fails with "
                f"'database is locked' at once, whatever the timeout.",
                hint="OPTIONS: 'transaction_mode': 'IMMEDIATE'",
                id="django_jobs.W012",
            )
        )
    timeout = options.get("timeout", 5)
    if not isinstance(timeout, int | float) or timeout < SHORT_TIMEOUT:
        messages.append(
            checks.Warning(
                f"{where} waits {timeout} s for SQLite's write lock; with a worker writing beside the site that can "
                f"end in 'database is locked'.",
                hint="OPTIONS: 'timeout': 20",
                id="django_jobs.W013",
            )
        )
    return messages
