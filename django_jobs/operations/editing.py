"""Changing one waiting job by hand, its arguments too, with the checks that an enqueue has."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from django_jobs import conf, limits
from django_jobs.definitions import JobDefinition
from django_jobs.exceptions import InvalidArguments, InvalidJob
from django_jobs.job_registry import registry
from django_jobs.operations.acting import aware, check_change
from django_jobs.options import check_queue_name, check_run_after
from django_jobs.serialization import shown
from django_jobs.store import django_store
from django_jobs.store.following import alias_of
from django_jobs.store.rows import JobRow
from django_jobs.texts import Text, text as _
from django_jobs.uniqueness import key_function

WHAT = "operations.edit()"


def edit(
    job: JobRow,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None,
    priority: int | None = None,
    run_after: dt.datetime | None = None,
    max_attempts: int | None = None,
    using: str | None = None,
) -> JobRow | None:
    """Change a job that waits; what is not given stays.

    :param job: the job as the operator has seen it, from :func:`get`.
    :param args: the positional arguments, with ``kwargs`` the keyword arguments; checked as an enqueue checks them.
    :param queue_name: the queue to go to.
    :param priority: -100 to 100.
    :param run_after: an aware moment; a pending job waits for its release all the same.
    :param max_attempts: more than the job has spent.
    :param using: the alias of the database; by default the one that the job was read from.
    :returns: the job as it now is; None if it no longer waits, or if somebody else has changed its arguments since it
        was read. Then nothing was changed.
    :raises InvalidJob: for a value that is not allowed, before any SQL.
    """
    given: Any = job
    if not isinstance(given, JobRow):
        raise InvalidJob(f"{WHAT} got {shown(given)}; it takes the job as it was read, by operations.get().")
    if queue_name is not None:
        check_queue_name(queue_name, WHAT)
    check_change(priority, "priority", limits.PRIORITY_LOWEST, limits.PRIORITY_HIGHEST, WHAT)
    check_change(max_attempts, "max_attempts", job.attempt + 1, limits.MAX_ATTEMPTS_HIGHEST, WHAT)
    if run_after is not None:
        moment: Any = run_after
        if isinstance(moment, dt.timedelta):
            raise InvalidJob(
                f"run_after of {WHAT} is {shown(moment)}; it must be an aware datetime. operations.update() takes a "
                f"timedelta, too."
            )
        check_run_after(run_after, WHAT)
        run_after = aware(run_after)
    encoded: tuple[str | None, str | None] = (None, None)
    if args is not None or kwargs is not None:
        encoded = checked_arguments(
            job, job.args if args is None else args, job.kwargs if kwargs is None else kwargs
        )
    changed = django_store(alias_of(job, using)).edit(
        job,
        *encoded,
        queue_name=queue_name,
        priority=priority,
        run_after=run_after,
        max_attempts=max_attempts,
    )
    known = using or getattr(job, "using", None)
    if changed is not None and known is not None:
        changed.using = known
    return changed


def checked_arguments(job: JobRow, args: Any, kwargs: Any) -> tuple[str, str]:
    """Other arguments for a job, encoded.

    :raises InvalidArguments: where an enqueue would, and where the job's unique key would no longer fit.
    """
    definition = editable_by(job)
    if not isinstance(args, list | tuple):
        raise InvalidArguments(_("%(name)s: the positional arguments must be a list.", name=job.name))
    if not isinstance(kwargs, Mapping):
        raise InvalidArguments(
            _("%(name)s: the keyword arguments must be a dict with the names as its keys.", name=job.name)
        )
    try:
        definition.arguments.fit(args, kwargs)
        encoded = definition.arguments.encode(args, kwargs, conf.get("MAX_ARGUMENT_BYTES"))
    except InvalidArguments as error:
        raise InvalidArguments(Text("%(name)s: %(error)s", {"name": job.name, "error": error})) from None
    if job.unique_key is not None:
        _check_key(job, definition, args, kwargs)
    return encoded


def editable_by(job: JobRow) -> JobDefinition[Any, Any]:
    """The definition that knows what arguments the job may have. Raises InvalidJob if there is none here."""
    definition = registry.get(job.name)
    if definition is None:
        raise InvalidJob(
            f"{job.name} is not registered in this process, so other arguments can't be checked; import its module "
            f"where the site starts."
        )
    return definition


def _check_key(job: JobRow, definition: JobDefinition[Any, Any], args: Any, kwargs: Any) -> None:
    make = key_function(definition)
    if make is None:
        return
    try:
        before, after = make(job.args, job.kwargs), make(args, kwargs)
    except (InvalidJob, TypeError):  # what it has does not fit the function: its key was not made of that
        return
    # A key for a period has that behind it.
    made = before is not None and (job.unique_key == before or str(job.unique_key).startswith(f"{before}@"))
    if made and before != after:
        raise InvalidArguments(
            _(
                "%(name)s: the job's unique key is made of its arguments, and would not fit these. Cancel the job and "
                "enqueue another.",
                name=job.name,
            )
        )
