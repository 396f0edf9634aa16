"""A task's function as a job function: what the registry holds of a task, and the worker runs."""

from __future__ import annotations

import copy
import logging
from dataclasses import replace
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured

from django_jobs import conf, options as checked, stored_backoff, uniqueness
from django_jobs.attempt_state import running
from django_jobs.backend import telling
from django_jobs.backend.framework import InvalidTask, Task, TaskContext, signals
from django_jobs.backend.normalizing import normalize
from django_jobs.backend.results import WORKERS, JobsTaskResult, workers_of
from django_jobs.backend.tasks import JobsTask
from django_jobs.context import JobContext
from django_jobs.decorators import check_function, path_of
from django_jobs.definitions import JobDefinition
from django_jobs.exceptions import Control, InvalidJob
from django_jobs.job_registry import registry
from django_jobs.options import Options
from django_jobs.schedules import schedules
from django_jobs.serialization import encode
from django_jobs.store import django_store
from django_jobs.store.rows import JobRow

logger = logging.getLogger("django_jobs.backend")

_OPTIONS = ("unique", "unique_key", "unique_for", "on_duplicate", "pending", "tags", "timeout")


class TaskDefinition(JobDefinition[Any, Any]):
    """A task as the worker knows it: it is told of as the framework says, and gets the framework's context.

    :param task: as it was declared. Its options hold for the function.
    :raises InvalidJob: for options that are not allowed, and functions that can't be jobs.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.backend = task.backend
        name = checked.check_name(path_of(task.func))
        check_function(task.func, name)
        super().__init__(
            task.func,
            name,
            _options(task, name),
            backoff=checked.check_backoff(getattr(task, "backoff", None), name),
            give_up_on=checked.check_exceptions(getattr(task, "give_up_on", ()), "give_up_on", name),
            retry_on=checked.check_retry_on(getattr(task, "retry_on", None), name),
            takes_context=task.takes_context,
            aliases=checked.check_aliases(getattr(task, "aliases", ()), name),
            atomic=checked.check_atomic(getattr(task, "atomic", False), task.func, name),
        )
        uniqueness.check(self)
        self.function = self._make_async_call() if self.is_async else self._make_call()

    @property
    def options(self) -> Options:
        """What holds for its jobs: what the task says, and where that says nothing, what ``TASKS`` says."""
        try:
            given = telling.backend_named(self.backend).options
        except ImproperlyConfigured:  # an alias that is no more
            given = {}
        if not given:
            return self._options
        own = self._options
        return replace(
            own,
            using=own.using or given.get("database"),
            max_attempts=own.max_attempts or given.get("max_attempts"),
            timeout=_seconds(given.get("timeout")) if own.timeout is None else own.timeout,
        )

    @options.setter
    def options(self, options: Options) -> None:
        self._options = options

    def of(self, task: Task) -> TaskDefinition:
        """The definition for what is enqueued through ``task``, which is of the same function. Raises InvalidJob."""
        options = _options(task, self.name)
        # What differs from the function's came by using(), and is each job's own.
        backoff = getattr(task, "backoff", None)
        if backoff is not None and backoff != getattr(self.task, "backoff", None):
            options = replace(options, backoff=stored_backoff.check(backoff, self.name))
        if options == self._options and task.backend == self.backend:
            return self
        other = copy.copy(self)
        other.backend = task.backend
        other.options = options
        uniqueness.check(other)
        return other

    def most_attempts(self, backend: str) -> int:
        """How often a job is attempted that this alias enqueued, and nobody said otherwise then."""
        given: int | None = telling.backend_named(backend).options.get("max_attempts")
        return self._options.max_attempts or given or conf.get("MAX_ATTEMPTS")

    # -- the call --------------------------------------------------------------------------------------------------

    def _make_call(self) -> Any:
        function = self.task.func

        def call(*args: Any, **kwargs: Any) -> Any:
            here = running.get()
            if here is not None:
                result = telling.started(self, here[0], here[2].using)
                _note_worker(here[0], here[2].using)
                args = self._with_context(args, result)
            return _returned(function(*args, **kwargs))

        return call

    def _make_async_call(self) -> Any:
        function = self.task.func

        async def call(*args: Any, **kwargs: Any) -> Any:
            here = running.get()
            if here is not None:
                job, using = here[0], here[2].using
                if telling.may_query(signals.task_started):
                    result = await sync_to_async(telling.started)(self, job, using)
                else:
                    result = telling.started(self, job, using)
                if _is_to_be_noted(job):
                    await sync_to_async(_note_worker)(job, using)
                args = self._with_context(args, result)
            return _returned(await function(*args, **kwargs))

        return call

    def _with_context(self, args: tuple[Any, ...], result: JobsTaskResult) -> tuple[Any, ...]:
        """The arguments with the framework's context in the place of ours."""
        if not self.takes_context or not args or not isinstance(args[0], JobContext):
            return args
        return (TaskContext(task_result=result), *args[1:])

    # -- its end -----------------------------------------------------------------------------------------------------

    def on_stored(self, job: JobRow, error: BaseException | None, message: str | None, using: str) -> None:
        """An attempt's outcome is stored. See :attr:`django_jobs.definitions.JobDefinition.on_stored`."""
        telling.stored(self, job, error, message, using)


def definition_of(task: Task) -> TaskDefinition:
    """The definition for what is enqueued through a task; its function is registered now, if it is not yet.

    :raises InvalidTask: for options that are not allowed; the message names them.
    """
    kept: TaskDefinition | None = getattr(task, "definition", None)
    if kept is not None and registry.known(kept.name) is not None:
        return kept
    try:
        definition = _registered(task).of(task)
    except InvalidJob as error:
        raise InvalidTask(str(error)) from error
    if isinstance(task, JobsTask):
        object.__setattr__(task, "definition", definition)
    return definition


def _registered(task: Task) -> TaskDefinition:
    known = registry.known(task.module_path)
    if isinstance(known, TaskDefinition):
        if known.task.func is task.func:
            return known
    elif known is not None and known.__wrapped__ is task.func:
        raise InvalidJob(
            f"{known.name} is a job by @job already. Use one of the two, or give the job another name=."
        )
    definition = TaskDefinition(task)
    registry.add(definition)
    schedules.attach(task.func, definition)
    return definition


def _options(task: Task, name: str) -> Options:
    """The options of a task as those of a job. Raises InvalidJob."""
    priority: Any = task.priority
    if isinstance(priority, float) and priority.is_integer():
        priority = int(priority)  # the framework takes any whole number
    more = {option: getattr(task, option) for option in _OPTIONS} if isinstance(task, JobsTask) else {}
    return checked.check(
        Options(
            task.queue_name,
            priority,
            getattr(task, "max_attempts", None),
            task.run_after,
            **more,
        ),
        name,
    )


def _seconds(timeout: Any) -> float | None:
    """What the backend's check takes; anything else is its to tell of."""
    return None if timeout is None else checked.check_timeout(timeout, "the backend's OPTIONS")


def _returned(value: Any) -> Any:
    """What the function returned, as JSON. A word on its own outcome is no result."""
    return value if value is None or issubclass(type(value), Control) else normalize(value)


def _is_to_be_noted(job: JobRow) -> bool:
    most: int = conf.get("MAX_ERRORS")
    return job.attempt >= most - 1


def _note_worker(job: JobRow, using: str) -> None:
    """Keep the workers of all attempts, where errors, which name them, begin to be dropped.

    Stored now, in a statement of its own: a worker that dies in this attempt tells nothing later.
    """
    if not _is_to_be_noted(job):
        return
    known = workers_of(job)
    values = [known.get(attempt) for attempt in range(1, job.attempt + 1)]
    try:
        django_store(using).merge_metadata([(job.id, job.claims, encode({WORKERS: values}))])
    except Exception:
        logger.exception("The workers of job %s could not be noted", job.id)
