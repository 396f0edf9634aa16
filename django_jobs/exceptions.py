"""The exceptions that callers and handlers meet."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django_jobs.limits import LONGEST_DELAY
from django_jobs.serialization import shown
from django_jobs.texts import Explained, joined

# What of these a page of the admin may show is raised with a text that is marked (django_jobs.texts): what an operator
# can give an operation, a filter or a form, and what keeps a schedule from running. What only a developer's own call
# can be told, such as the options of @job that no single job has, is a plain string, English everywhere.


class InvalidJob(Explained):
    """A job that can't be enqueued; the message names what is wrong and what to do. No SQL has run."""


class InvalidArguments(InvalidJob, TypeError):
    """Arguments that don't fit the function, or that JSON, the size limit or a database does not allow."""


class InvalidSchedule(Explained):
    """A schedule that can't be declared.

    :param message: what is wrong with what.
    :param hint: what to do.
    :param code: the id of the system check that tells it of a schedule in the settings.
    """

    def __init__(self, message: str, hint: str, code: str) -> None:
        super().__init__(joined(message, hint))
        self.message = message
        self.hint = hint
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.hint, self.code)


class ClaimLost(RuntimeError):
    """The claim of the running job is no longer this worker's: it was rescued, and may run elsewhere."""


class TimedOut(RuntimeError):
    """The attempt took longer than the job's timeout."""


class NotRegistered(LookupError):
    """Recorded of a job whose name is no job function's that the worker knows."""


class OutcomeNotStorable(RuntimeError):
    """Recorded in the place of an outcome that the database refused."""


class UndecodableArguments(ValueError):
    """Recorded of a job whose arguments in the database can't be read."""


class WorkerError(RuntimeError):
    """Recorded of an attempt that the worker itself failed at."""


class WorkerLost(RuntimeError):
    """Recorded of an attempt whose worker died, or stopped, before it had ended."""


class Control(Exception):
    """A handler's word on its own outcome: raise it, or return it."""


class Fail(Control):
    """Make the job a dead letter at once, whatever attempts are left.

    :param reason: why, for the operator.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Cancel(Control):
    """End the job as cancelled.

    :param reason: why, for the operator.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Snooze(Control):
    """Run the job again later, and don't count this attempt.

    :param delay: seconds, or a timedelta, from now.
    """

    def __init__(self, delay: float | dt.timedelta) -> None:
        super().__init__(delay)
        self.delay = seconds(delay)


class Retry(Control):
    """Count this attempt as failed and choose when the next one comes (a dead letter, if it was the last).

    :param delay: seconds, or a timedelta, from now; None for the job's backoff.
    :param reason: why, for the operator.
    """

    def __init__(self, delay: float | dt.timedelta | None = None, reason: str = "") -> None:
        super().__init__(reason)
        self.delay = None if delay is None else seconds(delay)
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is copied by calling its class with its args, and here those are the reason alone.
        return type(self), (self.delay, self.reason)


def seconds(delay: float | dt.timedelta) -> float:
    """A delay in seconds. Raises TypeError for what is no delay, ValueError for NaN and for over a hundred years."""
    if isinstance(delay, dt.timedelta):
        delay = delay.total_seconds()
    if isinstance(delay, bool) or not isinstance(delay, int | float):
        raise TypeError(f"a delay is a number of seconds or a timedelta, not {type(delay).__name__}")
    if not -LONGEST_DELAY <= delay <= LONGEST_DELAY:
        raise ValueError(f"a delay must be finite and at most a hundred years, not {shown(delay)} seconds")
    return float(delay)
