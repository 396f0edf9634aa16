"""``JobsTask``: what ``@task`` makes of a function on this backend, with the options that jobs have beside a task's."""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Never, Self

from django.utils import timezone
from django.utils.module_loading import import_string

from django_jobs.backend.framework import Task
from django_jobs.options import LEFT_OUT, changes_of

if TYPE_CHECKING:
    from django.db.models import Model

    from django_jobs.backend.definitions import TaskDefinition
    from django_jobs.options import BackoffOption, JobBackoff, UniqueOption

# Lists become tuples, so that a task can be hashed as any other.
_SEQUENCES = ("backoff", "give_up_on", "retry_on", "aliases", "tags")


def _unpickled(task_class: type[Task], path: str, values: dict[str, Any]) -> Task:
    try:
        function = import_string(path).func
    except (ImportError, AttributeError) as error:
        raise ValueError(f"Expected {path!r} to point to a Task instance.") from error
    return task_class(func=function, **values)


class _Defined(Task):
    """A place for the definition, which is no field: it is neither compared, nor copied, nor pickled."""

    __slots__ = ("definition",)
    definition: TaskDefinition

    def __reduce__(self) -> tuple[Any, ...]:
        # The module's name is the task's, not the function's, so pickle does not find that. (Django 6.1 sees to it, for
        # the fields that it knows; the package django-tasks does not.)
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        del values["func"]
        return _unpickled, (type(self), self.module_path, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsTask(_Defined):
    """A task with the options of ``@job``, for ``@task(max_attempts=5, backoff=...)`` and ``.using()``.

    What they mean, and what is allowed, stands at :func:`django_jobs.job` and
    :meth:`django_jobs.JobDefinition.using`. ``give_up_on``, ``retry_on``, ``aliases`` and ``atomic`` are the
    function's: they hold for all of its jobs, and ``using()`` does not take them.

    The decorator of Django 6.0 takes none of these: there ``JobsTask(func=function, max_attempts=5)`` does it.
    """

    # The framework's own, with the defaults that Django 6.0 has in its decorator only.
    priority: int = 0
    backend: str = "default"
    queue_name: str = "default"
    run_after: dt.datetime | None = None
    takes_context: bool = False

    max_attempts: int | None = None
    backoff: BackoffOption = None
    give_up_on: type[BaseException] | Sequence[type[BaseException]] = ()
    retry_on: type[BaseException] | Sequence[type[BaseException]] | None = None
    aliases: Sequence[str] = ()
    atomic: bool = False
    unique: UniqueOption | None = None
    unique_key: str | None = None
    unique_for: dt.timedelta | None = None
    on_duplicate: Literal["return", "replace"] = "return"
    pending: bool = False
    tags: Sequence[str | Model] = ()
    timeout: float | dt.timedelta | None = None

    def __post_init__(self) -> None:
        from django_jobs.backend.jobs_backend import JobsBackend

        for name in _SEQUENCES:
            value = getattr(self, name)
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
        delay: Any = self.run_after
        if isinstance(delay, dt.timedelta) and not isinstance(self.get_backend(), JobsBackend):
            # Other backends know moments only.
            object.__setattr__(self, "run_after", timezone.now() + delay)
        # By name: the decorator has made another class of this one, which super() does not know.
        Task.__post_init__(self)

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: dt.datetime | dt.timedelta | None = None,
        backend: str | None = None,
        max_attempts: int | None = LEFT_OUT,
        unique: UniqueOption | None = LEFT_OUT,
        unique_key: str | None = LEFT_OUT,
        unique_for: dt.timedelta | None = LEFT_OUT,
        on_duplicate: Literal["return", "replace"] | None = LEFT_OUT,
        pending: bool | None = LEFT_OUT,
        tags: Sequence[str | Model] | None = LEFT_OUT,
        timeout: float | dt.timedelta | None = LEFT_OUT,
        backoff: JobBackoff | None = LEFT_OUT,
        **unknown: Never,
    ) -> Self:
        """The same task with other options, for what is enqueued through the one that is returned.

        What None is, stands at :meth:`django_jobs.JobDefinition.using`; for the framework's own options it is as if
        they were left out.

        :param priority: -100 to 100, higher first.
        :param queue_name: the queue; one of the backend's.
        :param run_after: an aware datetime, or a timedelta from the enqueueing on, before which it does not run.
        :param backend: the alias of another backend.
        :param max_attempts: how often it is attempted at most, 1 or more.
        :param unique: as of ``@job``; False for jobs that need not be unique.
        :param unique_key: the key itself.
        :param unique_for: as of ``@job``.
        :param on_duplicate: as of ``@job``.
        :param pending: wait until an operator releases it.
        :param tags: 20 at most, strings or model instances.
        :param timeout: how long an attempt may take: seconds, or a timedelta; None or 0 for as long as it wants,
            whatever the task and the backend say.
        :param backoff: how long to wait after a failed attempt, as of :meth:`django_jobs.JobDefinition.using`: no
            callable of your own, since it is written into the job's row.
        :raises InvalidTask: for a value that is not allowed; the message names it.
        """
        given = {
            "priority": priority,
            "queue_name": queue_name,
            "run_after": run_after,
            "backend": backend,
            "max_attempts": max_attempts,
            "unique": unique,
            "unique_key": unique_key,
            "unique_for": unique_for,
            "on_duplicate": on_duplicate,
            "pending": pending,
            "tags": tags,
            "timeout": timeout,
            "backoff": backoff,
        }
        if unknown:
            name = next(iter(unknown))
            near = difflib.get_close_matches(name, given, n=1, cutoff=0.5)
            hint = f". Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"using() of a task got an unexpected keyword argument {name!r}{hint}")
        return replace(self, **changes_of(given))
