"""What is wrong with the set-up, seen on the running database: for ``manage.py jobs doctor`` and for pages.

The system checks read the settings; this connects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from django.core import checks
from django.db import DatabaseError, connections

from django_jobs.databases import jobs_database
from django_jobs.doctor import common
from django_jobs.doctor.findings import ERROR, OK, WARNING, Finding
from django_jobs.store import own_store

Examination = Callable[[str], Iterable[Finding]]

__all__ = ["ERROR", "OK", "WARNING", "Finding", "examine"]


def examine(using: str | None = None) -> Iterator[Finding]:
    """Everything that is looked at, one finding after the other, what is well too.

    The first says what the database guarantees.
    """
    alias = jobs_database(using)
    yield Finding(OK, "guarantees", own_store(alias).guarantees().describe())
    yield from _system_checks()
    try:
        connections[alias].ensure_connection()
    except DatabaseError as error:
        yield Finding(
            ERROR, "connection", f"The database can't be reached: {_line(error)}", "Is it up? See DATABASES."
        )
        return
    tables = list(common.migrations(alias))
    yield from tables
    missing = any(finding.level == ERROR for finding in tables)
    settings, own_tables = _own(connections[alias].vendor)
    for examination in settings if missing else [*settings, *own_tables, *common.TABLES]:
        yield from _guarded(examination, alias)


def _own(vendor: str) -> tuple[Sequence[Examination], Sequence[Examination]]:
    """What is looked at on this database only. A site on SQLite has no PostgreSQL driver to import."""
    if vendor == "postgresql":
        from django_jobs.doctor import postgresql

        return postgresql.SETTINGS, postgresql.TABLES
    from django_jobs.doctor import sqlite

    return sqlite.SETTINGS, sqlite.TABLES


def _guarded(examination: Examination, alias: str) -> Iterator[Finding]:
    try:
        yield from examination(alias)
    except Exception as error:  # noqa: BLE001 - one that can't be made must not hide the others
        name = examination.__name__.replace("_", " ")
        yield Finding(WARNING, name, f"This could not be looked at: {type(error).__name__}: {_line(error)}")


def _system_checks() -> Iterator[Finding]:
    found = [
        message
        for message in checks.run_checks(tags=["django_jobs"], databases=None)
        if message.level >= checks.WARNING
    ]
    for message in found:
        level = ERROR if message.level >= checks.ERROR else WARNING
        yield Finding(level, "settings", f"{message.msg} ({message.id})", message.hint or "")
    if not found:
        yield Finding(OK, "settings", "The system checks find nothing.")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())


def summary(findings: Iterable[Finding]) -> str:
    """In a line how many errors and warnings there are."""
    levels = [finding.level for finding in findings]
    errors, warnings = levels.count(ERROR), levels.count(WARNING)
    if not errors and not warnings:
        return "All is well."
    return f"{_number(errors, 'error')}, {_number(warnings, 'warning')}."


def _number(number: int, of: str) -> str:
    # English whatever the language of the site is, as all that the command says.
    return f"{number} {of}{'' if number == 1 else 's'}"
