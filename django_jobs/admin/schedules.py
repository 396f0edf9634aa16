"""The schedules: what runs periodically, in plain words; run one now, pause and resume."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.translation import get_language, gettext, gettext_lazy as _, gettext_noop, pgettext
from django.views.decorators.http import require_POST

from django_jobs import schedule_errors, scheduling
from django_jobs.admin.cron_words import cron_text
from django_jobs.admin.log import record
from django_jobs.admin.room import RoomAdmin, may
from django_jobs.admin.words import duration_text
from django_jobs.databases import jobs_database
from django_jobs.exceptions import InvalidJob, InvalidSchedule
from django_jobs.models import Job, Schedule
from django_jobs.redaction import Redactor
from django_jobs.sound_rows import sound, sound_one
from django_jobs.store.rows import ScheduleRow
from django_jobs.texts import Text
from django_jobs.timing import ALL, LATEST, NONE, Interval, Timing, parse

RUN = "django_jobs.run_schedule"
NEXT_TICKS = 5
# As many are listed: the code declares them, and it is a handful.
MOST = 500

MISSED_WORDS = {
    LATEST: _("the latest one is run"),
    ALL: _("all are run"),
    NONE: _("none is run"),
}


@dataclass
class ShownSchedule:
    """A schedule as it is shown, with what became of its last job."""

    schedule: Schedule
    last_job: Job | None

    @cached_property
    def timing(self) -> Timing | None:
        """When it ticks; None when nobody can tell."""
        try:
            return parse(self.schedule.expression, self.schedule.timezone)
        except InvalidSchedule:
            return None

    @property
    def words(self) -> str:
        """When, in words; what has none but in English speaks for itself elsewhere."""
        if self.timing is None:
            return ""
        if (get_language() or "en").startswith("en"):
            return self.timing.describe()
        if isinstance(self.timing, Interval):
            return gettext("every %(duration)s") % {
                "duration": duration_text(self.timing.every.total_seconds())
            }
        return cron_text(self.timing.expression) or self.schedule.expression

    @property
    def is_interval(self) -> bool:
        """Whether it ticks every so often, on no clock of a time zone."""
        return isinstance(self.timing, Interval)

    @property
    def missed(self) -> Any:
        """What becomes of ticks that nobody was there to run."""
        return MISSED_WORDS.get(self.schedule.missed, self.schedule.missed)

    @property
    def state(self) -> tuple[Any, str]:
        """A word, and its colour."""
        if self.schedule.removed_at is not None:
            return _("removed"), "quiet"
        if self.schedule.paused_at is not None:
            return _("paused"), "warning"
        if self.schedule.last_error:
            return _("failing"), "error"
        return pgettext("schedule", "active"), "ok"

    @cached_property
    def last_error(self) -> str:
        """What kept it from running, in the language of the page as far as that is known."""
        return schedule_errors.error_text(self.schedule)

    @property
    def is_declared(self) -> bool:
        """Whether the code has it."""
        return self.schedule.removed_at is None

    @property
    def next_ticks(self) -> list[Any]:
        """The coming ticks, from now on."""
        if self.timing is None or self.schedule.removed_at or self.schedule.paused_at:
            return []
        ticks, moment = [], dt.datetime.now(dt.UTC)
        for _number in range(NEXT_TICKS):
            moment = self.timing.after(moment)
            ticks.append(moment)
        return ticks

    @cached_property
    def redactor(self) -> Redactor:
        """What of its arguments is not to be seen."""
        return Redactor.of(self.schedule.name)

    @property
    def args(self) -> Any:
        """The positional arguments, to show."""
        return self.redactor.args(self.schedule.args)

    @property
    def kwargs(self) -> Any:
        """The keyword arguments, to show."""
        return self.redactor.kwargs(self.schedule.kwargs)


@admin.register(Schedule)
class ScheduleAdmin(RoomAdmin):
    """The pages of the schedules."""

    section = "schedules"

    def get_urls(self) -> list[URLPattern]:
        """Its own, before what every admin has."""
        view = self.admin_site.admin_view
        return [
            path(
                f"<int:schedule_id>/{name}/",
                view(require_POST(function)),
                name=f"django_jobs_schedule_{name}",
            )
            for name, function in (
                ("run", self.run_view),
                ("pause", self.pause_view),
                ("resume", self.resume_view),
            )
        ] + super().get_urls()

    # -- pages -----------------------------------------------------------------------------------------------------

    def list_page(self, request: HttpRequest, more: dict[str, Any]) -> HttpResponse:
        """All schedules."""
        shown = self.shown()
        context = {
            "schedules": [each for each in shown if each.is_declared],
            "removed": [each for each in shown if not each.is_declared],
            "may_run": may(request, RUN),
        }
        return self.page(
            request,
            "admin/django_jobs/schedules.html",
            _("Schedules"),
            {**context, **more},
            live=True,
        )

    def one_page(self, request: HttpRequest, object_id: str, more: dict[str, Any]) -> HttpResponse:
        """One schedule."""
        shown = self.shown(self.id_of(object_id))
        if not shown:
            raise Http404
        context = {"shown": shown[0], "may_run": may(request, RUN)}
        return self.page(
            request,
            "admin/django_jobs/schedule.html",
            shown[0].schedule.key,
            {**context, **more},
            live=True,
            trail=True,
        )

    def shown(self, schedule_id: int | None = None) -> list[ShownSchedule]:
        """The schedules, or one, with what became of their last jobs. Two statements."""
        using = jobs_database()
        query = Schedule.objects.using(using).order_by("key")
        schedules = sound(query[:MOST] if schedule_id is None else query.filter(pk=schedule_id))
        ids = sorted({each.last_job_id for each in schedules if each.last_job_id is not None})
        jobs = {
            job.pk: job
            for job in sound(
                Job.objects.using(using)
                .filter(pk__in=ids)
                .only(
                    "id",
                    "state",
                    "attempt",
                    "max_attempts",
                    "cancel_requested_at",
                    "finalized_at",
                    "error_class",
                )
            )
        }
        return [
            ShownSchedule(each, None if each.last_job_id is None else jobs.get(each.last_job_id))
            for each in schedules
        ]

    # -- actions ---------------------------------------------------------------------------------------------------

    def run_view(self, request: HttpRequest, schedule_id: int) -> HttpResponse:
        """Enqueue a job of it now."""
        schedule = self.schedule(request, schedule_id)
        try:
            job = scheduling.run_schedule_now(schedule.key)
        except (InvalidSchedule, InvalidJob) as error:
            # It may tell the arguments, of which some are not to be seen.
            why = schedule_errors.redacted(schedule.name, schedule.args, schedule.kwargs, error.translated)
            messages.error(
                request,
                gettext("The schedule %(key)s can't be run: %(error)s") % {"key": schedule.key, "error": why},
            )
            return self.back(request, self.url("django_jobs_schedule_changelist"))
        if job is None:
            messages.warning(
                request,
                gettext("Nothing was done: a live job holds the unique key that a job of %(key)s would have.")
                % {"key": schedule.key},
            )
        else:
            entry = Text(gettext_noop("Run now: job %(id)d."), {"id": job.id})
            record(request, Schedule, schedule.pk, schedule.key, entry, ["last job"])
            messages.success(
                request,
                format_html(
                    '{} <a href="{}">{}</a>',
                    gettext("The schedule %(key)s has a job now:") % {"key": schedule.key},
                    self.url("django_jobs_job_change", job.id),
                    job.id,
                ),
            )
        return self.back(request, self.url("django_jobs_schedule_changelist"))

    def pause_view(self, request: HttpRequest, schedule_id: int) -> HttpResponse:
        """Let it not run."""
        text = gettext("The schedule %(key)s is paused: its ticks pass without a job.")
        return self.change(
            request, schedule_id, scheduling.pause_schedule, text, Text(gettext_noop("Paused."))
        )

    def resume_view(self, request: HttpRequest, schedule_id: int) -> HttpResponse:
        """Let it run again."""
        text = gettext("The schedule %(key)s runs again, from its next tick on.")
        return self.change(
            request, schedule_id, scheduling.resume_schedule, text, Text(gettext_noop("Resumed."))
        )

    def schedule(self, request: HttpRequest, schedule_id: int) -> Schedule:
        """The one that something is to be done to, by who may."""
        self.must(request, RUN)
        found = sound_one(Schedule.objects.using(jobs_database()).filter(pk=schedule_id))
        if found is None:
            raise Http404
        return found

    def change(
        self,
        request: HttpRequest,
        schedule_id: int,
        operation: Callable[[str], ScheduleRow | None],
        text: str,
        entry: Text,
    ) -> HttpResponse:
        """Do that to a schedule, say so, and go back."""
        schedule = self.schedule(request, schedule_id)
        try:
            row = operation(schedule.key)
        except InvalidSchedule as error:  # a key that only somebody's SQL can have given it
            messages.error(request, error.translated)
        else:
            if row is None:
                raise Http404
            record(request, Schedule, schedule.pk, schedule.key, entry, ["paused at"])
            messages.success(request, text % {"key": schedule.key})
        return self.back(request, self.url("django_jobs_schedule_changelist"))
