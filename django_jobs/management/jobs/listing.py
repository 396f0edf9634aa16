"""``list`` and ``show``."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from django_jobs import operations
from django_jobs.management.jobs.arguments import add_filter, count, filter_of, job_id
from django_jobs.management.jobs.base import Subcommand
from django_jobs.management.jobs.output import Output, cell, clean, job_record
from django_jobs.states import FINISHED, State
from django_jobs.store.rows import JobRow


class List(Subcommand):
    """Jobs, page by page."""

    name = "list"
    help = "list jobs: finished ones the last first, available ones as they will be claimed"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which, how many, and from where on."""
        add_filter(parser)
        parser.add_argument("--limit", type=count(1000), default=20, metavar="N", help="at most so many (20)")
        parser.add_argument("--after", metavar="PLACE", help="go on from where another list said it ended")

    def run(self, out: Output, using: str, options: dict[str, Any]) -> None:
        """Print one page."""
        page = operations.list_jobs(
            filter_of(options), limit=options["limit"], after=options["after"], using=using
        )
        if out.as_json:
            for job in page.jobs:
                out.record(job_record(job))
        elif not out.table(
            ["id", "state", "queue", "name", "attempt", "when", "error"], [_summary(job) for job in page.jobs]
        ):
            out.line(
                "There are no such jobs."
                if page.next is None
                else "There are none among those looked at so far."
            )
        if page.next is not None:
            out.note(f"There may be more: add --after {shlex.quote(page.next)}")


def _summary(job: JobRow) -> dict[str, Any]:
    if job.state in FINISHED:
        when: Any = job.finalized_at
    elif job.state == State.RUNNING:
        when = job.attempted_at
    else:
        when = job.run_after
    state = job.state
    if state == State.SCHEDULED and job.attempt:
        state = "retrying"
    elif state == State.RUNNING and job.cancel_requested_at is not None:
        state = "cancelling"
    return {
        "id": job.id,
        "state": state,
        "queue": job.queue_name,
        "name": job.name,
        "attempt": f"{job.attempt}/{job.max_attempts}",
        "when": when,
        "error": job.error_class if state != State.COMPLETED else None,
    }


class Show(Subcommand):
    """All of some jobs."""

    name = "show"
    help = "show all that is known of a job: arguments, times, errors with their tracebacks, result"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which."""
        parser.add_argument("ids", nargs="+", type=job_id, metavar="ID", help="ids of jobs")

    def run(self, out: Output, using: str, options: dict[str, Any]) -> int:
        """Print them."""
        ids = list(dict.fromkeys(options["ids"]))
        jobs = [operations.get(id_, using=using) for id_ in ids]
        for id_, job in zip(ids, jobs, strict=True):
            if job is None:
                out.note(f"There is no job {id_}.")
            elif out.as_json:
                out.record(job_record(job))
            else:
                show(out, job)
        if not any(jobs):
            raise CommandError("Nothing to show.")
        return 0 if all(jobs) else 1


def show(out: Output, job: JobRow) -> None:
    """One job, for people."""
    record = job_record(job)
    errors = record.pop("errors")
    out.line(out.style.MIGRATE_HEADING(cell(f"Job {job.id}: {job.name}")))
    always = ("state", "queue_name", "args", "kwargs", "priority", "run_after", "created_at")
    out.pairs(
        (name.replace("_", " "), value)
        for name, value in record.items()
        if name not in ("id", "name") and (name in always or value not in (None, [], {}, False))
    )
    if not isinstance(errors, list):
        out.line(f"errors  {clean(str(errors))}")
        return
    for error in errors:
        if not isinstance(error, dict):
            out.line(clean(str(error)))
            continue
        out.line()
        title = f"Error {error.get('number')}, attempt {error.get('attempt')}, {error.get('at')}:"
        out.line(out.style.ERROR(clean(f"{title} {error.get('class')}: {error.get('message')}")))
        if error.get("traceback"):
            out.line(clean(str(error["traceback"])).rstrip())
