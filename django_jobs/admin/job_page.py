"""The page of one job: its life, its errors, what it carries, its relatives, and what can be done to it."""

from __future__ import annotations

import datetime as dt
import json
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext, gettext_lazy as _
from django.views.decorators.http import require_safe

from django_jobs import operations
from django_jobs.admin import tracebacks
from django_jobs.admin.actions import EDIT
from django_jobs.admin.job_actions import ActionsPage
from django_jobs.admin.job_lines import JobLine
from django_jobs.admin.json_display import printable
from django_jobs.admin.room import may
from django_jobs.admin.timeline import Attempt, attempts, steps
from django_jobs.databases import jobs_database
from django_jobs.job_registry import registry
from django_jobs.models import Worker
from django_jobs.operations import Filter, InvalidFilter
from django_jobs.serialization import Undecodable
from django_jobs.sound_rows import sound_one
from django_jobs.states import FINISHED, WAITING
from django_jobs.store.rows import JobRow

RELATED = 10  # jobs of each kind
RELATED_LOOKS = 10_000  # jobs, the newest, among which they are searched

# What can be had as JSON, by the names in addresses.
PARTS = ("args", "kwargs", "result", "metadata", "errors")


class FailedAttempt(NamedTuple):
    """An attempt that failed, with its traceback in short."""

    attempt: Attempt
    short: str
    place: int


class JobPage(ActionsPage):
    """The page, as a view of the admin of jobs."""

    def get_urls(self) -> list[URLPattern]:
        """Its own, before what the class behind has."""
        view = self.admin_site.admin_view(require_safe(self.json_view))
        return [
            path("<int:job_id>/json/<slug:part>/", view, name="django_jobs_job_json"),
            *super().get_urls(),
        ]

    def one_page(self, request: HttpRequest, object_id: str, more: dict[str, Any]) -> HttpResponse:
        """Show it. Ten statements at most, beside those for the session and the user."""
        job = operations.get(self.id_of(object_id))
        if job is None:
            return self.gone(request, object_id)
        now = dt.datetime.now(dt.UTC)
        page = JobView(job, now)
        context = {
            "job": job,
            "view": page,
            "line": page.line,
            "worker": self.worker_of(job),
            "actions": [action for action in self.actions_for(request, job.state) if action.name != "update"],
            "may_edit": job.state in WAITING and may(request, EDIT),
            "list_url": self.url("django_jobs_job_changelist"),
            "now": now,
        }
        return self.page(
            request,
            "admin/django_jobs/job.html",
            gettext("Job %(id)d") % {"id": job.id},
            {**context, **more},
            live=job.state not in FINISHED,
            trail=True,
        )

    def gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Back to the list from a job that is not there any more."""
        messages.warning(
            request,
            gettext("There is no job %(id)s: it was deleted, by an operator or by retention.")
            % {"id": object_id},
        )
        return HttpResponseRedirect(self.url("django_jobs_job_changelist"))

    def worker_of(self, job: JobRow) -> Worker | None:
        """The worker of its last claim, as long as its row is kept."""
        if job.worker_id is None:
            return None
        return sound_one(Worker.objects.using(jobs_database()).filter(pk=job.worker_id))

    def json_view(self, request: HttpRequest, job_id: int, part: str) -> HttpResponse:
        """A part of a job as a JSON file, without what is hidden."""
        self.must(request, "django_jobs.view_job")
        job = operations.get(job_id) if job_id < 2**63 else None
        if job is None or part not in PARTS:
            raise Http404
        value = getattr(JobLine(job, dt.datetime.now(dt.UTC)).shown, part)
        text = (
            str(value) if isinstance(value, Undecodable) else json.dumps(value, ensure_ascii=False, indent=2)
        )
        return HttpResponse(
            text.encode("utf-8", "backslashreplace"),
            content_type="application/json; charset=utf-8",
            headers={
                "Content-Disposition": f'attachment; filename="job-{job_id}-{part}.json"',
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
            },
        )


class JobView:
    """What the page shows of a job."""

    def __init__(self, job: JobRow, now: dt.datetime) -> None:
        self.job = job
        self.line = JobLine(job, now)
        self.now = now
        self.definition = registry.get(job.name)

    @cached_property
    def failed(self) -> list[Attempt]:
        """The attempts that failed."""
        return attempts(self.line.shown.errors)

    @property
    def attempts(self) -> list[FailedAttempt]:
        """The attempts that failed, the last one first."""
        numbered = list(enumerate(self.failed, 1))
        return [
            FailedAttempt(each, tracebacks.folded(each.traceback), place)
            for place, each in reversed(numbered)
        ]

    @property
    def odd_errors(self) -> Any:
        """The errors, where they are not what a worker writes."""
        errors: Any = self.line.shown.errors
        if isinstance(errors, list) and all(isinstance(each, dict) for each in errors):
            return None
        return errors

    @property
    def timeline(self) -> list[Any]:
        """The steps of its life."""
        return steps(self.line, self.failed, self.now)

    @cached_property
    def arguments(self) -> Any:
        """The arguments by the names of their parameters, where those are known."""
        args, kwargs = self.line.shown.args, self.line.shown.kwargs
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            return {_("positional").__str__(): args, _("by name").__str__(): kwargs}
        named: dict[str, Any] = {}
        for place, value in enumerate(args):
            named[self._name_of(place)] = value
        for name, value in kwargs.items():
            named[name if name not in named else f"{name} ({_('by name')})"] = value
        return named

    def _name_of(self, place: int) -> str:
        if self.definition is None:
            return f"{place}"
        names = self.definition.arguments.names
        if place < len(names):
            return names[place]
        return f"*{self.definition.arguments.rest}[{place - len(names)}]"

    @property
    def tags(self) -> list[str]:
        """Its tags; without those that are no texts."""
        tags: Any = self.line.shown.tags
        return [printable(tag) for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []

    @property
    def other_metadata(self) -> Any:
        """Its metadata without what has a place of its own on the page."""
        metadata = self.line.shown.metadata
        if not isinstance(metadata, dict):
            return metadata
        return {key: value for key, value in metadata.items() if key != "progress" or not self.line.progress}

    @property
    def schedule(self) -> str | None:
        """The key of the schedule that made it."""
        metadata: Any = self.job.metadata
        key = metadata.get("schedule") if isinstance(metadata, dict) else None
        return printable(key) if isinstance(key, str) and key else None

    @cached_property
    def same_key(self) -> list[JobLine]:
        """Other jobs with its unique key, the newest first."""
        if not self.job.unique_key:
            return []
        return self._lines(lambda: Filter(unique_key=self.job.unique_key), lambda _job: True)

    @cached_property
    def same_schedule(self) -> list[JobLine]:
        """Other jobs of its schedule, the newest first."""
        key = self.schedule
        if key is None:
            return []

        def is_of_it(job: JobRow) -> bool:
            metadata: Any = job.metadata
            return isinstance(metadata, dict) and metadata.get("schedule") == key

        return self._lines(lambda: Filter(name=self.job.name), is_of_it)

    def _lines(self, make: Any, keep: Any) -> list[JobLine]:
        try:
            jobs = operations.list_jobs(make(), limit=100, looks=RELATED_LOOKS, whole=False).jobs
        except InvalidFilter:  # a name or key that only somebody's SQL can write
            return []
        lines = [JobLine(job, self.now) for job in jobs if job.id != self.job.id and keep(job)]
        return lines[:RELATED]

    # -- addresses of lists ------------------------------------------------------------------------------------------

    @property
    def key_query(self) -> str:
        """The list of the jobs with its unique key."""
        return f"?{urlencode({'key': self.job.unique_key or ''}, errors='replace')}"

    @property
    def name_query(self) -> str:
        """The list of the jobs with its name."""
        return f"?{urlencode({'name': self.job.name}, errors='replace')}"

    @property
    def queue_query(self) -> str:
        """The list of the jobs in its queue."""
        return f"?{urlencode({'queue': self.job.queue_name}, errors='replace')}"
