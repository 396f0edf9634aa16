"""The overview: how it goes, in numbers, charts and words."""

from __future__ import annotations

import datetime as dt
import heapq
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from django_jobs import operations
from django_jobs.admin.charts import Chart, Series
from django_jobs.admin.room import RoomAdmin
from django_jobs.admin.words import busy_text, duration_text
from django_jobs.operations import Count, Point, Problem, QueueStatus
from django_jobs.operations.counting import MOST
from django_jobs.operations.status import totals
from django_jobs.operations.trouble import situation
from django_jobs.states import State
from django_jobs.texts import number_text

# There may be a queue for each of a million users. So many are listed.
MOST_QUEUES = 200


class Period(NamedTuple):
    """A time that charts show."""

    key: str
    title: str | Promise
    length: dt.timedelta
    step: dt.timedelta


PERIODS = (
    Period("hour", _("Last hour"), dt.timedelta(hours=1), dt.timedelta(minutes=1)),
    Period("day", _("Last day"), dt.timedelta(days=1), dt.timedelta(minutes=30)),
    Period("week", _("Last week"), dt.timedelta(days=7), dt.timedelta(hours=2)),
)

# The states that are told by a number of their own, with the words below it.
CARDS = (
    (State.AVAILABLE, _("available"), _("wait for a worker")),
    (State.SCHEDULED, _("scheduled"), _("for later, retries among them")),
    (State.PENDING, _("pending"), _("wait to be released")),
    (State.RUNNING, _("running"), _("at this moment")),
    (State.FAILED, _("failed"), _("dead letters that are kept")),
)


class Card(NamedTuple):
    """A number, and where it leads."""

    title: Any
    kind: str
    number: Any
    note: Any
    url: str


def period_of(request: HttpRequest) -> Period:
    """The period that the address asks for; the hour by default."""
    wanted = request.GET.get("period")
    return next((period for period in PERIODS if period.key == wanted), PERIODS[0])


def charts_of(period: Period, queue_name: str | None = None) -> list[Chart]:
    """What became of jobs in a period, as charts. One statement."""
    points = operations.history(period.length, step=period.step, queue_name=queue_name)
    # The first one is only half there: the period begins within it.
    return charts(period, points[-(period.length // period.step) :])


def charts(period: Period, points: list[Point]) -> list[Chart]:
    """The charts of some points: completed; failed; how long jobs waited and ran.

    Their titles are translated here, once: each step of a chart tells them.
    """
    starts = [point.start for point in points]

    def counted(title: Any, kind: str, values: list[int]) -> Series:
        return Series(str(title), kind, values, number_text(sum(values)))

    return [
        Chart(
            "completed",
            _("Completed jobs"),
            starts,
            period.step,
            [counted(_("completed"), "ok", [point.completed for point in points])],
            number_text,
        ),
        Chart(
            "failed",
            _("Failures"),
            starts,
            period.step,
            [
                counted(_("failed for good"), "bad", [point.failed for point in points]),
                counted(_("retried"), "retry", [point.retried for point in points]),
            ],
            number_text,
        ),
        Chart(
            "times",
            _("Wait and run time"),
            starts,
            period.step,
            [
                Series(str(_("mean wait")), "wait", [point.wait_mean for point in points]),
                Series(str(_("mean run")), "run", [point.run_mean for point in points]),
            ],
            duration_text,
            stacked=False,
        ),
    ]


def in_need(queues: list[QueueStatus]) -> list[QueueStatus]:
    """The queues to be listed: those whose jobs wait longest, or that have most, in the order that they came in."""
    if len(queues) <= MOST_QUEUES:
        return queues
    ranks = [
        (queue.oldest or 0.0, queue.available, queue.running, queue.failed, queue.completed)
        for queue in queues
    ]
    chosen = heapq.nlargest(MOST_QUEUES, range(len(queues)), key=ranks.__getitem__)
    return [queues[place] for place in sorted(chosen)]


class OverviewPage(RoomAdmin):
    """The overview, as a view of the admin of jobs."""

    def get_urls(self) -> list[URLPattern]:
        """The overview's, before what the class behind has."""
        view = self.admin_site.admin_view(self.overview)
        return [path("overview/", view, name="django_jobs_job_overview"), *super().get_urls()]

    def overview(self, request: HttpRequest) -> TemplateResponse:
        """Show it. Eleven statements, on PostgreSQL twelve, or one more where very many queues wait."""
        self.must(request, "django_jobs.view_job")
        period = period_of(request)
        now, workers, queues, problems = situation()
        counts = totals(queues)
        if (queues.is_cut or counts[State.AVAILABLE].capped) and counts[State.AVAILABLE] < MOST:
            counts = operations.counts()
        context: dict[str, Any] = {
            "now": now,
            "problems": [(problem, self.problem_url(problem)) for problem in problems],
            "cards": [*self.cards(counts), self.workers_card(workers)],
            "period": period,
            "periods": PERIODS,
            "charts": charts_of(period),
            "queues": [(queue, self.queue_url(queue.name)) for queue in in_need(queues)],
            "more_queues": len(queues) > MOST_QUEUES,
        }
        return self.page(
            request, "admin/django_jobs/overview.html", _("Overview"), context, section="overview", live=True
        )

    def cards(self, counts: dict[str, Count]) -> list[Card]:
        """The numbers by state."""
        jobs = self.url("django_jobs_job_changelist")
        return [
            Card(title, str(state), counts[state], note, f"{jobs}?{urlencode({'state': str(state)})}")
            for state, title, note in CARDS
            if state != State.PENDING or counts[state].number
        ]

    def workers_card(self, workers: list[Any]) -> Card:
        """How busy the workers are."""
        busy, slots = sum(each.running for each in workers), sum(each.concurrency for each in workers)
        return Card(
            _("workers"),
            "ok" if workers else "error",
            len(workers),
            busy_text(busy, slots),
            self.url("django_jobs_worker_changelist"),
        )

    def problem_url(self, problem: Problem) -> str:
        """Where a problem is to be looked at."""
        kind, key = problem.target
        if kind == "queue":
            return self.queue_url(key)
        if kind == "worker":
            return self.url("django_jobs_worker_change", key)
        if kind == "failures":
            return self.url("django_jobs_job_failures")
        if kind == "jobs":
            return f"{self.url('django_jobs_job_changelist')}?{urlencode({'state': key})}"
        return self.url(f"django_jobs_{kind.removesuffix('s')}_changelist")
