"""The exceptions that callers and handlers meet."""

from __future__ import annotations

import datetime as dt


class InvalidJob(ValueError):
    """A job that can't be enqueued; the message names what is wrong and what to do. No SQL has run."""


class InvalidArguments(InvalidJob, TypeError):
    """Arguments that don't fit the function, or that JSON, the size limit or a database does not allow."""


class ClaimLost(RuntimeError):
    """The claim of the running job is no longer this worker's: it was rescued, and may run elsewhere."""


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


def seconds(delay: float | dt.timedelta) -> float:
    """A delay in seconds. Raises TypeError for what is no delay, ValueError for one that is not finite."""
    if isinstance(delay, dt.timedelta):
        delay = delay.total_seconds()
    if isinstance(delay, bool) or not isinstance(delay, int | float):
        raise TypeError(f"a delay is a number of seconds or a timedelta, not {type(delay).__name__}")
    if not -float("inf") < delay < float("inf"):
        raise ValueError(f"a delay must be finite, not {delay}")
    return float(delay)
