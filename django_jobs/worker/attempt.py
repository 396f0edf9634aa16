"""One attempt of one job: from the claimed row to its outcome. Whatever the job does, an outcome comes of it."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from asgiref.sync import async_to_sync

from django_jobs import conf
from django_jobs.backoff import delay_after
from django_jobs.context import JobContext, running
from django_jobs.definitions import JobDefinition, Registry
from django_jobs.exceptions import Cancel, Control, Retry, Snooze, seconds as checked
from django_jobs.serialization import NotStorable, decode, encode_storable, parse_timestamp
from django_jobs.signals import job_started, send
from django_jobs.store.base import CANCELLED, COMPLETED, FAILED, RETRY, SNOOZED
from django_jobs.store.rows import ARGS, ATTEMPT, CLAIMS, ERRORS, ID, KWARGS, NAME, JobRow, Outcome
from django_jobs.worker import middleware
from django_jobs.worker.failures import class_name, message_of, traceback_of, with_error
from django_jobs.worker.signs import Signs

logger = logging.getLogger("django_jobs.attempts")

# A name that is not registered may be one that this worker's code does not have yet: a rolling deploy.
UNREGISTERED = "django_jobs.NotRegistered"
UNREGISTERED_DELAY = 60.0
UNREGISTERED_PATIENCE = 24 * 3600.0

NO_POSITIONAL: list[Any] = []
NO_KEYWORDS: dict[str, Any] = {}


class Attempted(NamedTuple):
    """An attempt that is over: its outcome, to be stored, and what a log line says of it."""

    outcome: Outcome
    job: JobRow
    seconds: float
    error: str | None = None
    trace: str | None = None


class Runner:
    """Runs attempts in the calling thread.

    :param registry: the job functions that may be called.
    :param signs: what the worker tells its jobs.
    :param factories: the middleware; with none, nothing is paid for it.
    """

    def __init__(
        self, registry: Registry, signs: Signs, factories: Sequence[Callable[..., Any]] = ()
    ) -> None:
        self.registry = registry
        self.signs = signs
        # Made once, as Django makes its own: what is around the step that calls the job.
        self._around: Any = middleware.wrap(factories, _call_job, is_async=False) if factories else None
        self._around_async: Any = middleware.wrap(factories, _acall_job, is_async=True) if factories else None

    def run(self, job: JobRow) -> Attempted:
        """Call the job's function, and say how that ended. Raises nothing that the job raises."""
        values = job.values
        definition = self.registry.get(values[NAME])
        if definition is None:
            return self._unregistered(job)
        started = perf_counter()
        try:
            args = NO_POSITIONAL if values[ARGS] == "[]" else decode(values[ARGS])
            kwargs = NO_KEYWORDS if values[KWARGS] == "{}" else decode(values[KWARGS])
            if args.__class__ is not list or kwargs.__class__ is not dict:
                raise ValueError("args must be a list and kwargs an object")
        except (ValueError, TypeError) as error:
            return self._failed(job, definition, error, 0.0, "django_jobs.UndecodableArguments")
        # A context of its own: what the job sets (language, time zone, context variables) ends with it.
        try:
            result = Context().run(self._call, job, definition, args, kwargs)
        except Control as word:
            return self._controlled(job, definition, word, perf_counter() - started)
        except BaseException as error:
            # SystemExit, KeyboardInterrupt and GeneratorExit are the job's own, too.
            return self._failed(job, definition, error, perf_counter() - started)
        seconds = perf_counter() - started
        if result is None:
            return Attempted(Outcome(values[ID], values[CLAIMS], COMPLETED), job, seconds)
        if issubclass(type(result), Control):  # isinstance() would ask a lazy object what it stands for
            return self._controlled(job, definition, result, seconds)
        return self._completed(job, definition, result, seconds)

    def _call(
        self, job: JobRow, definition: JobDefinition[Any, Any], args: list[Any], kwargs: dict[str, Any]
    ) -> Any:
        running.set((job, definition, self.signs))
        if job_started.receivers:
            send(job_started, job.values[NAME], job=job)
        function = definition.function
        if self._around is not None:
            context = JobContext(job, definition.name, self.signs)
            context.call = partial(
                function, *([context] if definition.takes_context else []), *args, **kwargs
            )
            return (
                async_to_sync(self._around_async)(context) if definition.is_async else self._around(context)
            )
        if definition.takes_context:
            args = [JobContext(job, definition.name, self.signs), *args]
        if definition.is_async:
            return async_to_sync(function)(*args, **kwargs)
        return function(*args, **kwargs)

    # -- outcomes --------------------------------------------------------------------------------------------------

    def _completed(
        self, job: JobRow, definition: JobDefinition[Any, Any], result: Any, seconds: float
    ) -> Attempted:
        try:
            text = encode_storable(result, "the result")
            size = len(text.encode())
            if size > conf.get("MAX_RESULT_BYTES"):
                raise NotStorable(
                    f"the result is {size:,} bytes as JSON, over the limit of {conf.get('MAX_RESULT_BYTES'):,}; store "
                    f"the data and return its key, or raise DJANGO_JOBS['MAX_RESULT_BYTES']"
                )
        except BaseException as error:  # NotStorable, or what a strange object raises when it is looked at
            return self._failed(job, definition, error, seconds, "django_jobs.ResultNotStorable")
        return Attempted(Outcome(job.id, job.claims, COMPLETED, result=text), job, seconds)

    def _controlled(
        self, job: JobRow, definition: JobDefinition[Any, Any], word: Control, seconds: float
    ) -> Attempted:
        if isinstance(word, Snooze | Retry):
            try:
                # Checked when it was made; it may have been set since.
                delay = None if word.delay is None else max(checked(word.delay), 0.0)
            except Exception as error:
                return self._failed(job, definition, error, seconds)
            if isinstance(word, Snooze):
                return Attempted(Outcome(job.id, job.claims, SNOOZED, delay), job, seconds)
            if delay is None:
                delay = delay_after(definition.backoff, job.attempt, word.__cause__ or word, job)
            return self._recorded(job, word, seconds, RETRY, delay)
        return self._recorded(job, word, seconds, CANCELLED if isinstance(word, Cancel) else FAILED)

    def _failed(
        self,
        job: JobRow,
        definition: JobDefinition[Any, Any],
        error: BaseException,
        seconds: float,
        name: str | None = None,
    ) -> Attempted:
        # As an except clause compares: no class is asked for its opinion.
        if definition.give_up_on and not set(definition.give_up_on).isdisjoint(type(error).__mro__):
            return self._recorded(job, error, seconds, FAILED, name=name)
        delay = delay_after(definition.backoff, job.values[ATTEMPT], error, job)
        return self._recorded(job, error, seconds, RETRY, delay, name)

    def _recorded(
        self,
        job: JobRow,
        error: BaseException,
        seconds: float,
        kind: str,
        delay: float | None = None,
        name: str | None = None,
    ) -> Attempted:
        # A word of the handler's that came of an error (raise Fail(...) from error) is told by that error.
        cause = error.__cause__ if isinstance(error, Control) and error.__cause__ is not None else error
        name = name or class_name(cause)
        message = message_of(error)
        trace = "" if isinstance(error, Cancel) else traceback_of(error, skip=2)
        try:
            errors = with_error(job, name, message, trace)
        except Exception:
            logger.exception("The error of job %s could not be recorded in full", job.id)
            errors = with_error(job, name, "", "")
        return Attempted(
            Outcome(job.id, job.claims, kind, delay, name, errors), job, seconds, f"{name}: {message}", trace
        )

    def _unregistered(self, job: JobRow) -> Attempted:
        """Wait a minute without spending an attempt, for a day at most; then it is a dead letter."""
        message = (
            f"No job function is registered as {job.name!r}. If it was renamed, list the old name in aliases= of the "
            f"new one; if its module is not called jobs or tasks, import it in AppConfig.ready()."
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


def _call_job(context: JobContext) -> Any:
    assert context.call is not None
    return context.call()


async def _acall_job(context: JobContext) -> Any:
    assert context.call is not None
    return await context.call()


def broken(job: JobRow, error: BaseException) -> Attempted:
    """The outcome where the worker itself is at fault: the job is tried again, and nothing waits for it."""
    name = "django_jobs.WorkerError"
    message = "The worker failed at this job."
    errors = None
    try:
        message = f"The worker failed at this job: {class_name(error)}: {message_of(error)}"
        errors = with_error(job, name, message, traceback_of(error))
    except BaseException:
        logger.exception("What the worker failed at, at job %s, could not be recorded", job.id)
    return Attempted(Outcome(job.id, job.claims, RETRY, UNREGISTERED_DELAY, name, errors), job, 0.0, message)


def _unregistered_since(job: JobRow) -> dt.datetime | None:
    """When the job's name was first found to be unregistered, if it was the last time it was looked at."""
    try:
        last = job.errors[-1]
        return parse_timestamp(str(last["at"])) if last["class"] == UNREGISTERED else None
    except (IndexError, KeyError, TypeError, ValueError):
        return None
