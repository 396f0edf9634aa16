"""The life of a job, step by step: enqueued, due, each attempt, the end. Worked out from its row alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from django_jobs.admin.job_lines import JobLine
from django_jobs.admin.json_display import printable
from django_jobs.recorded_words import message_text
from django_jobs.states import State

ENDS: dict[str, str | Promise] = {
    State.COMPLETED: _("Completed"),
    State.FAILED: _("Failed for good"),
    State.CANCELLED: _("Cancelled"),
}
SOON = dt.timedelta(seconds=1)  # a job that is due so soon after it was enqueued is due at once


class Step(NamedTuple):
    """One step.

    :param kind: for its colour: a state, or ``retrying`` for an attempt that failed.
    :param at: when it was, or will be; for an attempt, when it began.
    :param until: when an attempt ended.
    :param gap: seconds from the end of the step before.
    :param took: seconds that it lasted; of a running attempt, until now.
    :param note: more about it.
    :param attempt: which attempt it is; None for what is none.
    """

    kind: str
    title: str | Promise
    at: dt.datetime | None
    until: dt.datetime | None = None
    gap: float | None = None
    took: float | None = None
    note: str | Promise = ""
    attempt: int | None = None
    worker: int | None = None
    is_ahead: bool = False


class Attempt(NamedTuple):
    """An attempt that failed, as the column ``errors`` tells it. What it does not tell, or tells oddly, is empty."""

    number: int | None
    attempt: int | None
    began: dt.datetime | None
    ended: dt.datetime | None
    worker: int | None
    error_class: str
    message: str
    traceback: str

    @property
    def took(self) -> float | None:
        """Seconds that it lasted."""
        return None if self.began is None or self.ended is None else (self.ended - self.began).total_seconds()

    @property
    def short_class(self) -> str:
        """The class without its module."""
        return self.error_class.rpartition(".")[2]


def attempts(errors: Any) -> list[Attempt]:
    """The attempts that failed, in their order."""
    if not isinstance(errors, list):
        return []
    return [_attempt(entry) for entry in errors if isinstance(entry, dict)]


def _attempt(entry: dict[str, Any]) -> Attempt:
    error_class, message, traceback = (
        printable(str(entry.get(name) or "")) for name in ("class", "message", "traceback")
    )
    return Attempt(
        _whole(entry.get("number")),
        _whole(entry.get("attempt")),
        _moment(entry.get("attempted_at")),
        _moment(entry.get("at")),
        _whole(entry.get("worker")),
        error_class,
        message_text(error_class, message),
        traceback,
    )


def steps(line: JobLine, failed: list[Attempt], now: dt.datetime) -> list[Step]:
    """The steps of a job, the first one first, those that are still to come at the end."""
    found: list[Step] = []
    end: dt.datetime | None = None
    for step in _bare(line, failed, now):
        gap = None if end is None or step.at is None or step.is_ahead else (step.at - end).total_seconds()
        # Clocks of several hosts: what would have come before it was over is not told.
        found.append(step._replace(gap=gap if gap is not None and gap > 0 else None))
        end = step.until or step.at or end
    return found


def _bare(line: JobLine, failed: list[Attempt], now: dt.datetime) -> Iterator[Step]:
    job = line.job
    state = job.state
    yield Step(State.SCHEDULED, _("Enqueued"), line.created_at)
    due = line.run_after
    later = due is not None and line.created_at is not None and due - line.created_at > SOON
    if not failed and later and state not in (State.PENDING, State.SCHEDULED):
        yield Step(State.SCHEDULED, _("Due"), due)
    before = 0
    for each in failed:
        if each.number is not None and each.number > before + 1 and before:
            yield Step("quiet", _("Earlier attempts, of which no more is kept"), None)
        before = each.number or before + 1
        yield Step(
            State.FAILED if state == State.FAILED and each is failed[-1] else "retrying",
            _("Attempt"),
            each.began or each.ended,
            each.ended,
            took=each.took,
            note=f"{each.short_class}: {each.message}"[:200] if each.message else each.short_class,
            attempt=each.attempt,
            worker=each.worker,
        )
    if (
        failed
        and later
        and state not in (State.PENDING, State.SCHEDULED)
        and _is_after(due, failed[-1].ended)
    ):
        yield Step(State.SCHEDULED, _("Due again"), due)
    yield from _last(line, failed, now)


def _last(line: JobLine, failed: list[Attempt], now: dt.datetime) -> Iterator[Step]:
    """What came after the attempts that failed, and what comes."""
    job, began = line.job, line.attempted_at
    told = any(each.began == began for each in failed) if began is not None else True
    if job.state == State.RUNNING:
        took = None if began is None else (now - began).total_seconds()
        yield Step(
            State.RUNNING,
            _("Attempt"),
            began,
            took=took,
            note=_("It runs."),
            attempt=job.attempt,
            worker=job.worker_id,
        )
    elif job.state in ENDS and not told:
        yield Step(
            job.state,
            _("Attempt"),
            began,
            line.finalized_at,
            took=line.took,
            attempt=job.attempt,
            worker=job.worker_id,
        )
    requested = job.cancel_requested_at
    if requested is not None:
        yield Step("cancelling", _("Asked to cancel"), requested)
    if job.state in ENDS:
        yield Step(job.state, ENDS[job.state], line.finalized_at)
    elif job.state == State.PENDING:
        yield Step(State.PENDING, _("Waits to be released"), None, is_ahead=True)
    elif job.state == State.SCHEDULED:
        title = _("Next attempt") if line.is_retrying else _("Due")
        yield Step(State.SCHEDULED, title, line.run_after, is_ahead=True)
    elif job.state == State.AVAILABLE:
        yield Step(State.AVAILABLE, _("Waits for a worker"), line.run_after, took=line.waited, is_ahead=True)


def _is_after(moment: dt.datetime | None, other: dt.datetime | None) -> bool:
    return moment is not None and other is not None and moment > other


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def _moment(value: Any) -> dt.datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = dt.datetime.fromisoformat(value)
        return (moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None
