"""``JobsBackend``: the Tasks framework's door to the queue."""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured

from django_jobs import conf, enqueueing, options as checked
from django_jobs.backend import telling
from django_jobs.backend.definitions import TaskDefinition, definition_of
from django_jobs.backend.framework import BaseTaskBackend, Task, TaskResultDoesNotExist
from django_jobs.backend.normalizing import normalize_arguments
from django_jobs.backend.results import JobsTaskResult, result_of, task_of
from django_jobs.backend.tasks import JobsTask
from django_jobs.databases import jobs_database
from django_jobs.exceptions import InvalidJob
from django_jobs.job_registry import registry
from django_jobs.serialization import shown
from django_jobs.store import django_store

# OPTIONS of the backend.
DATABASE, MAX_ATTEMPTS, TIMEOUT = "database", "max_attempts", "timeout"
OPTIONS = (DATABASE, MAX_ATTEMPTS, TIMEOUT)

_LARGEST_ID = 2**63 - 1


class JobsBackend(BaseTaskBackend):
    """Runs tasks as jobs: durable, in the database that the site has, enqueued in the caller's transaction.

    ``QUEUES`` are the queues of this alias (``[]``: any). ``OPTIONS`` may have ``database``, the alias of the database
    that holds the jobs (by default as for jobs), and what holds for this alias where a task says nothing:
    ``max_attempts`` and ``timeout`` (seconds, or a timedelta). Aliases on one database are told apart by their queues.
    """

    task_class = JobsTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    @property
    def database(self) -> str:
        """The alias of the database that holds the jobs. Raises ImproperlyConfigured when there is none such."""
        return jobs_database(self.options.get(DATABASE))

    def serves(self, queue_name: str) -> bool:
        """Whether tasks of this alias can be in that queue."""
        return not self.queues or queue_name in self.queues

    def holds(self, queue_name: str, using: str) -> bool:
        """Whether a job of that queue in that database is one of this alias."""
        return self.serves(queue_name) and self.database == using

    def validate_task(self, task: Task) -> None:
        """Raise InvalidTask unless the task can be enqueued here; a task that can is one that workers find."""
        run_after: Any = task.run_after
        if isinstance(run_after, dt.timedelta):
            # The framework asks a run_after for its time zone; it is ours to check.
            moment = SimpleNamespace(
                **{name: getattr(task, name) for name in ("func", "priority", "queue_name", "takes_context")},
                run_after=None,
            )
            super().validate_task(cast("Task", moment))
        else:
            super().validate_task(task)
        definition_of(task)

    def enqueue(  # type: ignore[override] # the stubs' result is generic; Django's is not
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobsTaskResult:
        """Enqueue a call, with one statement in the transaction that is open on the database of the jobs.

        :returns: its result: of the job that holds the unique key, where there is one.
        :raises InvalidTask: for a task that this backend does not take.
        :raises InvalidArguments: a TypeError and a ValueError, before any SQL, for arguments that don't fit the
            function, or that can't be stored.
        """
        self.validate_task(task)
        definition = definition_of(task)
        positional, named = normalize_arguments(definition, args, kwargs)
        new, using = enqueueing.prepare(definition, positional, named)
        database = self.database
        row = enqueueing.insert(new, database, using)
        result = result_of(row, task, self.alias)
        if not row.is_duplicate:
            telling.enqueued(self, result, database)
        return result

    def get_result(self, result_id: str) -> JobsTaskResult:
        """The result of a task of this backend, as it is now: one read, where the jobs are written.

        :raises TaskResultDoesNotExist: when there is none with this id in this backend's queues.
        """
        number = _number(result_id)
        rows = django_store(self.database).get([number]) if number is not None else []
        if not rows or not self.serves(rows[0].queue_name):
            raise TaskResultDoesNotExist(result_id)
        row = rows[0]
        definition = registry.get(row.name)
        if not isinstance(definition, TaskDefinition):
            raise TaskResultDoesNotExist(f"{result_id}: job {row.name} is no task that this process knows.")
        return result_of(row, task_of(row, definition, self.alias), self.alias)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Check the settings of this alias."""
        where = f"TASKS[{self.alias!r}]"
        messages: list[CheckMessage] = [*super().check(**kwargs)]
        if not apps.is_installed("django_jobs"):
            messages.append(
                Error(
                    f"{where} uses JobsBackend, and django_jobs is not in INSTALLED_APPS: there is no table for its "
                    f"jobs.",
                    hint="Add 'django_jobs' to INSTALLED_APPS and run manage.py migrate.",
                    id="django_jobs.E030",
                )
            )
        for queue_name in sorted(self.queues, key=str):
            try:
                checked.check_queue_name(queue_name, where)
            except InvalidJob as error:
                messages.append(Error(str(error), hint="Correct QUEUES.", id="django_jobs.E031"))
        for name in self.options:
            problem = self._problem(name)
            if problem is not None:
                messages.append(Error(f"{where}: {problem[0]}", hint=problem[1], id="django_jobs.E032"))
        return messages

    def _problem(self, name: str) -> tuple[str, str] | None:
        """What is wrong with an option, and what to do."""
        value = self.options[name]
        if name not in OPTIONS:
            near = difflib.get_close_matches(str(name).lower(), OPTIONS, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(OPTIONS)}."
            return f"OPTIONS has the unknown key {name!r}.", hint
        if name == DATABASE:
            try:
                jobs_database(value)
            except ImproperlyConfigured as error:
                return f"OPTIONS[{name!r}]: {error}", "Name a key of DATABASES, or leave it out."
        if name == MAX_ATTEMPTS and not conf.SETTINGS["MAX_ATTEMPTS"].valid(value):
            return (
                f"OPTIONS[{name!r}] is {shown(value)}.",
                f"It must be {conf.SETTINGS['MAX_ATTEMPTS'].accepts}.",
            )
        if name == TIMEOUT:
            try:
                checked.check_timeout(value, self.alias)
            except InvalidJob as error:
                return f"OPTIONS[{name!r}]: {error}", "Give seconds, or a timedelta."
        return None


def _number(result_id: Any) -> int | None:
    """The id of the job; None for what can't be one."""
    text = str(result_id)
    if not text.isascii() or not text.isdigit() or len(text) > len(str(_LARGEST_ID)):
        return None
    number = int(text)
    return number if number <= _LARGEST_ID and str(number) == text else None
