"""A job as a line of a list: what it carries in short, and its times, whatever its row holds."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.utils import formats

from django_jobs.admin import json_display
from django_jobs.redaction import Shown
from django_jobs.states import FINISHED, WAITING, State
from django_jobs.store.rows import CANCEL_REQUESTED_AT, JobRow

SHORT = 80  # characters of arguments


class JobLine:
    """A job with what a page shows of it.

    :param job: the row.
    :param now: the time to count from.
    """

    def __init__(self, job: JobRow, now: dt.datetime) -> None:
        self.job = job
        self.now = now
        self.shown = Shown(job)

    # -- arguments -------------------------------------------------------------------------------------------------

    @cached_property
    def arguments(self) -> str:
        """The arguments in one short line, without what is hidden."""
        args, kwargs = self.shown.args, self.shown.kwargs
        parts: list[str] = []
        length = 0
        named = kwargs.items() if isinstance(kwargs, dict) else [("", kwargs)]
        for name, value in [*(("", each) for each in (args if isinstance(args, list) else [args])), *named]:
            text = json_display.one_line(_cut(value))
            parts.append(f"{json_display.printable(str(name))}={text}" if name else text)
            length += len(parts[-1]) + 2
            if length > SHORT:
                break
        line = ", ".join(parts).replace("\n", " ")
        return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"

    @cached_property
    def progress(self) -> Progress | None:
        """How far a running job says it is."""
        metadata = self.shown.metadata
        return Progress.of(metadata.get("progress")) if isinstance(metadata, dict) else None

    # -- times -----------------------------------------------------------------------------------------------------

    @property
    def created_at(self) -> dt.datetime | None:
        """When it was enqueued."""
        return self.job.created_at

    @property
    def run_after(self) -> dt.datetime | None:
        """When it is due."""
        return self.job.run_after

    @property
    def attempted_at(self) -> dt.datetime | None:
        """When its last attempt began."""
        return self.job.attempted_at

    @property
    def finalized_at(self) -> dt.datetime | None:
        """When it ended."""
        return self.job.finalized_at

    @property
    def when(self) -> dt.datetime | None:
        """The time that matters in its state: due, began, ended."""
        if self.job.state in FINISHED:
            return self.finalized_at
        return self.attempted_at if self.job.state == State.RUNNING else self.run_after

    @property
    def took(self) -> float | None:
        """Seconds that its last attempt took; of a running one, has taken."""
        if self.job.state == State.RUNNING:
            return _seconds(self.attempted_at, self.now)
        return _seconds(self.attempted_at, self.finalized_at)

    @property
    def waited(self) -> float | None:
        """Seconds from when it was due until its last attempt began; of an available one, until now."""
        if self.job.state == State.AVAILABLE:
            return _seconds(self.run_after, self.now)
        return None if self.job.state in WAITING else _seconds(self.run_after, self.attempted_at)

    # -- words -----------------------------------------------------------------------------------------------------

    @property
    def error_class(self) -> str:
        """The class of its last error, without the module."""
        return (self.job.error_class or "").rpartition(".")[2]

    @property
    def is_cancelling(self) -> bool:
        """Whether it runs, and was asked to stop."""
        return self.job.state == State.RUNNING and self.job.values[CANCEL_REQUESTED_AT] is not None

    @property
    def is_retrying(self) -> bool:
        """Whether it waits for another attempt."""
        return self.job.state == State.SCHEDULED and self.job.attempt > 0


class Progress:
    """How far a job says it is.

    :param done: in the job's own units, as ``total``, which may be None.
    """

    def __init__(self, done: float, total: float | None, note: str) -> None:
        self.done = done
        self.total = total
        self.note = note

    @classmethod
    def of(cls, value: Any) -> Progress | None:
        """What ``metadata["progress"]`` says, if it says anything that can be shown."""
        if not isinstance(value, dict):
            return None
        done, total, note = value.get("done"), value.get("total"), value.get("note")
        if done is None or not _is_number(done):
            return None
        text = json_display.printable(note) if isinstance(note, str) else ""
        known = total is not None and _is_number(total) and total > 0
        return cls(done, total if known else None, text)

    @property
    def text(self) -> str:
        """In numbers."""
        return f"{_short(self.done)} / {_short(self.total)}" if self.total else _short(self.done)

    @property
    def value(self) -> str | None:
        """The share that is done, from 0 to 1, for an element that draws it; None if that is not known."""
        if self.total is None:
            return None
        return f"{min(1.0, max(0.0, self.done / self.total)):.4f}"

    @property
    def percent(self) -> int | None:
        """The share that is done."""
        return None if self.value is None else int(float(self.value) * 100)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _short(number: Any) -> str:
    """A number of ten digits at most after which it is rounded, as the language writes it."""
    value = Decimal(f"{number:.10g}") if isinstance(number, float) else number
    return str(formats.number_format(value, use_l10n=True, force_grouping=True))


def _seconds(begin: dt.datetime | None, end: dt.datetime | None) -> float | None:
    if begin is None or end is None:
        return None
    return (end - begin).total_seconds()


def _cut(value: Any, depth: int = 0) -> Any:
    """Enough of a value for a short line: a text of a megabyte is not encoded to show its beginning."""
    if isinstance(value, str):
        return value if len(value) <= SHORT else f"{value[:SHORT]}…"
    if isinstance(value, list):
        return [_cut(each, depth + 1) for each in value[:20]] if depth < 5 else "…"
    if isinstance(value, dict):
        return (
            {key[:SHORT]: _cut(each, depth + 1) for key, each in list(value.items())[:20]}
            if depth < 5
            else "…"
        )
    return value
