"""What the subcommands print: aligned tables for people, JSON lines for programs."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.management.base import CommandError, OutputWrapper
from django.core.management.color import Style
from django.utils import timezone

from django_jobs.models import Job
from django_jobs.redaction import REDACTED, Shown
from django_jobs.store.rows import JobRow

# Longer cells are cut.
WIDEST = 60


class Output:
    """Where a subcommand prints.

    :param as_json: print JSON lines.
    """

    def __init__(self, stdout: OutputWrapper, stderr: OutputWrapper, style: Style, as_json: bool) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.style = style
        self.as_json = as_json

    def line(self, text: str = "") -> None:
        """A line for people; nothing with ``--json``."""
        if not self.as_json:
            self.stdout.write(text)

    def record(self, record: Mapping[str, Any]) -> None:
        """A JSON line, in ASCII: what a job carries can't drive a terminal."""
        self.stdout.write(json.dumps(record, default=_plain))

    def note(self, text: str) -> None:
        """A line beside what was asked for, on stderr."""
        self.stderr.write(text, self.style.NOTICE)

    def table(self, columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> int:
        """Print records: JSON lines, or an aligned table of those columns. Returns how many."""
        records = list(records)
        if self.as_json:
            for record in records:
                self.record(record)
            return len(records)
        if not records:
            return 0
        rows = [[cell(record[column]) for column in columns] for record in records]
        numeric = [
            all(isinstance(record[column], int | None) for record in records) and column != "id"
            for column in columns
        ]
        titles = [column.replace("_", " ") for column in columns]
        widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
        self.stdout.write(_row(titles, widths, numeric), self.style.MIGRATE_HEADING)
        for row in rows:
            self.stdout.write(_row(row, widths, numeric))
        return len(rows)

    def pairs(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Names and values, one below the other."""
        shown = [
            (name, clean(json.dumps(value, ensure_ascii=False) if isinstance(value, list) else _text(value)))
            for name, value in pairs
        ]
        width = max(len(name) for name, _ in shown)
        for name, value in shown:
            self.stdout.write(f"{name:<{width}}  {value}".rstrip())


def ask(question: str) -> str:
    """Ask the person at the terminal."""
    return input(question)


def confirm(question: str, yes: bool) -> None:
    """Ask before something is destroyed. Raises CommandError when the answer is no, or nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{question} There is no terminal to ask on: add --yes to do it.")
    if ask(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise CommandError("Nothing was done.")


def job_record(job: JobRow) -> dict[str, Any]:
    """A job's columns, decoded, without what is not to be shown."""
    shown = Shown(job)
    columns = [field.attname for field in Job._meta.concrete_fields]  # in the order in which people read them
    return {column: getattr(shown if column in REDACTED else job, column) for column in columns}


def cell(value: Any) -> str:
    """A value in a table: on one line, cut where it is long."""
    text = clean(_text(value), newlines=False)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."


def clean(text: str, newlines: bool = True) -> str:
    """Text that moves no cursor and sets no colour: what can't be printed is shown as an escape."""
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or (newlines and each == "\n")
        else each.encode("unicode_escape", "surrogatepass").decode()
        for each in text
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dt.datetime):
        moment = timezone.localtime(value) if timezone.is_aware(value) else value
        return moment.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.datetime) else str(value)


def _row(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = [
        text.rjust(width) if right else text.ljust(width)
        for text, width, right in zip(cells, widths, numeric, strict=True)
    ]
    return "  ".join(parts).rstrip()
