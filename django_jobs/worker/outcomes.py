"""What an attempt comes to: the outcome that is stored, for each way to end."""

from __future__ import annotations

import datetime as dt
import logging
import time
from typing import Any, cast

from django_jobs.attempt_state import STATE, AttemptState
from django_jobs.backoff import delay_after
from django_jobs.definitions import JobDefinition
from django_jobs.exceptions import Cancel, Control, Retry, Snooze, TimedOut, seconds as checked
from django_jobs.job_registry import registry
from django_jobs.results import ResultNotStorable, encode_result
from django_jobs.serialization import stored_timestamp
from django_jobs.store.outcomes import CANCELLED, COMPLETED, FAILED, RETRY, SNOOZED
from django_jobs.store.rows import ATTEMPT, ERRORS, JobRow, Outcome
from django_jobs.stored_backoff import policy_of
from django_jobs.worker.attempted import TIMED_OUT, UNREGISTERED, Attempted
from django_jobs.worker.failures import class_name, message_of, stack_of, traceback_of, with_error
from django_jobs.worker.parts import log_exception
from django_jobs.worker.timeouts import Watch

logger = logging.getLogger("django_jobs.attempts")

# A name that is not registered may be one that this worker's code does not have yet: a rolling deploy.
UNREGISTERED_DELAY = 60.0
UNREGISTERED_PATIENCE = 24 * 3600.0

Definition = JobDefinition[Any, Any]


def usual(
    job: JobRow, definition: Definition, result: Any, error: BaseException | None, seconds: float
) -> Attempted:
    """The function has returned, or raised, of its own accord."""
    if error is not None:
        if issubclass(type(error), Control):  # isinstance() would ask the exception what it is
            return controlled(job, definition, cast("Control", error), seconds)
        return failed(job, definition, error, seconds)
    if result is None:
        return Attempted(Outcome(job.id, job.claims, COMPLETED), job, seconds)
    if issubclass(type(result), Control):  # and a lazy object what it stands for
        return controlled(job, definition, result, seconds)
    try:
        text = encode_result(result)
    except ResultNotStorable as problem:
        return failed(job, definition, problem, seconds)
    return Attempted(Outcome(job.id, job.claims, COMPLETED, result=text), job, seconds)


def stored(job: JobRow, result: str | None, error: BaseException | None, seconds: float) -> Attempted:
    """It has stored its own completion, which stands, whatever it raised after that."""
    outcome = Outcome(job.id, job.claims, COMPLETED, result=result)
    if error is None:
        return Attempted(outcome, job, seconds, stored=True)
    text = f"after it had completed itself it raised {class_name(error)}: {message_of(error)}"
    return Attempted(outcome, job, seconds, text, traceback_of(error, ours=False), stored=True)


def controlled(job: JobRow, definition: Definition, word: Control, seconds: float) -> Attempted:
    """It said itself how it ends."""
    if isinstance(word, Snooze | Retry):
        try:
            # Checked when it was made; it may have been set since.
            delay = (
                None
                if isinstance(word, Retry) and word.delay is None
                else max(checked(cast("float", word.delay)), 0.0)
            )
        except Exception as error:
            return failed(job, definition, error, seconds, in_any_case=True)
        if isinstance(word, Snooze):
            return Attempted(Outcome(job.id, job.claims, SNOOZED, delay), job, seconds)
        if delay is None:
            delay = delay_after(policy_of(job, definition), job.attempt, word.__cause__ or word, job)
        return recorded(job, word, seconds, RETRY, delay)
    return recorded(job, word, seconds, CANCELLED if isinstance(word, Cancel) else FAILED)


def failed(
    job: JobRow,
    definition: Definition,
    error: BaseException,
    seconds: float,
    name: str | None = None,
    *,
    in_any_case: bool = False,
) -> Attempted:
    """It raised.

    :param in_any_case: whether it is tried again though ``retry_on`` does not have it: it is no error of its own.
    """
    # As an except clause compares: no class is asked for its opinion.
    kinds = type(error).__mro__
    if ResultNotStorable in kinds:
        # Its work is done; another attempt would do all of it twice, and fail at the same end.
        return recorded(job, error, seconds, FAILED, name="django_jobs.ResultNotStorable")
    if not set(definition.give_up_on).isdisjoint(kinds) or not (
        in_any_case or definition.retry_on is None or not set(definition.retry_on).isdisjoint(kinds)
    ):
        return recorded(job, error, seconds, FAILED, name=name)
    delay = delay_after(policy_of(job, definition), job.values[ATTEMPT], error, job)
    return recorded(job, error, seconds, RETRY, delay, name)


def undecodable(job: JobRow, definition: Definition, error: Exception) -> Attempted:
    """Its arguments can't be read."""
    return failed(job, definition, error, 0.0, "django_jobs.UndecodableArguments")


def cancelled(job: JobRow, result: Any, seconds: float) -> Attempted:
    """It ended because it was told that it is cancelled; what it returned is kept, if it can be."""
    attempted = recorded(job, Cancel("Cancelled by request."), seconds, CANCELLED)
    try:
        text = encode_result(result)
    except ResultNotStorable:
        return attempted
    return attempted._replace(outcome=attempted.outcome._replace(result=text))


def cancelled_before(job: JobRow) -> Attempted:
    """It was cancelled between its claim and its start."""
    return recorded(job, Cancel("Cancelled by request, before it started."), 0.0, CANCELLED)


def timed_out(
    job: JobRow, definition: Definition, limit: float, seconds: float, error: BaseException | None = None
) -> Attempted:
    """It ended because it was told that its time is over."""
    timeout = TimedOut(f"It took longer than its timeout of {limit:g} s.")
    if error is not None:
        timeout = TimedOut(f"{timeout} It ended with {class_name(error)}: {message_of(error)}")
        timeout.__traceback__ = error.__traceback__
    return failed(job, definition, timeout, seconds, TIMED_OUT, in_any_case=True)


def given_up(here: list[Any], watch: Watch) -> Attempted:
    """It goes on beyond its timeout and the grace: recorded without it, and for a thread with where it is."""
    job: JobRow = here[0]
    state: AttemptState = here[STATE]
    error = TimedOut(
        f"It took longer than its timeout of {watch.seconds:g} s, and did not end when it was told to."
    )
    attempted = failed(job, here[1], error, time.monotonic() - watch.started, TIMED_OUT, in_any_case=True)
    if watch.interrupt is None:
        trace = stack_of(watch.thread_id)
        errors = with_error(job, TIMED_OUT, message_of(error), trace)
        attempted = attempted._replace(outcome=attempted.outcome._replace(errors=errors), trace=trace)
    return attempted._replace(metadata=state.take_metadata())


def recorded(
    job: JobRow,
    error: BaseException,
    seconds: float,
    kind: str,
    delay: float | None = None,
    name: str | None = None,
) -> Attempted:
    """An outcome with an error: its class, message and traceback are added to the job's errors."""
    # A word of the handler's that came of an error (raise Fail(...) from error) is told by that error.
    cause = error.__cause__ if issubclass(type(error), Control) and error.__cause__ is not None else error
    name = name or class_name(cause)
    message = message_of(error)
    trace = "" if issubclass(type(error), Cancel) else traceback_of(error, ours=False)
    try:
        errors = with_error(job, name, message, trace)
    except Exception:
        log_exception(logger, "The error of job %s could not be recorded in full", job.id)
        errors = with_error(job, name, "", "")
    attempted = Attempted(
        Outcome(job.id, job.claims, kind, delay, name, errors), job, seconds, f"{name}: {message}", trace
    )
    return attempted._replace(exception=cause) if job.name in registry.listening else attempted


def unregistered(job: JobRow) -> Attempted:
    """Wait a minute without spending an attempt, for a day at most; then it is a dead letter."""
    message = (
        f"No job function is registered as {job.name!r}. Workers know those in the modules jobs and tasks of the apps "
        f"in INSTALLED_APPS: add its app, or import its module in AppConfig.ready(). If it was renamed, list the old "
        f"name in aliases= of the new one."
    )
    now = dt.datetime.now(dt.UTC)
    since = _unregistered_since(job)
    if since is not None and (now - since).total_seconds() >= UNREGISTERED_PATIENCE:
        errors = with_error(job, UNREGISTERED, message, now=now)
        outcome = Outcome(job.id, job.claims, FAILED, None, UNREGISTERED, errors)
    else:
        errors = with_error(job, UNREGISTERED, message, now=now) if since is None else job.values[ERRORS]
        outcome = Outcome(job.id, job.claims, SNOOZED, UNREGISTERED_DELAY, UNREGISTERED, errors)
    return Attempted(outcome, job, 0.0, f"{UNREGISTERED}: {message}")


def broken(job: JobRow, error: BaseException) -> Attempted:
    """The outcome where the worker itself is at fault: the job is tried again, and nothing waits for it."""
    name = "django_jobs.WorkerError"
    message = "The worker failed at this job."
    errors = None
    try:
        message = f"The worker failed at this job: {class_name(error)}: {message_of(error)}"
        errors = with_error(job, name, message, traceback_of(error))
    except BaseException:
        log_exception(logger, "What the worker failed at, at job %s, could not be recorded", job.id)
    return Attempted(Outcome(job.id, job.claims, RETRY, UNREGISTERED_DELAY, name, errors), job, 0.0, message)


def _unregistered_since(job: JobRow) -> dt.datetime | None:
    """When the job's name was first found to be unregistered, if it was the last time it was looked at."""
    try:
        last = job.errors[-1]
        return stored_timestamp(str(last["at"])) if last["class"] == UNREGISTERED else None
    except (IndexError, KeyError, TypeError, ValueError):
        return None
