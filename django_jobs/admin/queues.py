"""The queues: what waits and since when, who serves them; pause, resume, and empty one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.models import DELETION
from django.contrib.admin.utils import quote, unquote
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy as _, gettext_noop, ngettext
from django.views.decorators.http import require_POST

from django_jobs import limits, operations
from django_jobs.admin.log import emptied, record
from django_jobs.admin.overview import MOST_QUEUES, PERIODS, charts_of, in_need, period_of
from django_jobs.admin.room import RoomAdmin, may
from django_jobs.databases import jobs_database
from django_jobs.exceptions import InvalidJob
from django_jobs.models import Job, Queue
from django_jobs.operations import Count, Filter, QueueStatus
from django_jobs.operations.status import COUNTED, live_workers, queues_of
from django_jobs.operations.trouble import LATE
from django_jobs.serialization import find_problem
from django_jobs.sound_rows import sound_one
from django_jobs.states import FINISHED, WAITING, State
from django_jobs.store import django_store
from django_jobs.store.statistics import LiveWorker
from django_jobs.texts import Text, number_text, translated

PAUSE, PURGE = "django_jobs.pause_queue", "django_jobs.purge_job"

# Searches of one request that empties a queue, each of a thousand jobs at most.
STEPS = 30


class Choice(NamedTuple):
    """Jobs of a state that can be deleted with a queue's others."""

    state: str
    title: str | Promise
    number: Count
    is_preset: bool


class ShownQueue(NamedTuple):
    """A queue as it is shown."""

    status: QueueStatus
    url: str
    jobs_url: str
    workers: list[LiveWorker]

    @property
    def is_late(self) -> bool:
        """Whether its oldest job has waited too long."""
        return self.status.oldest is not None and self.status.oldest >= LATE


@admin.register(Queue)
class QueueAdmin(RoomAdmin):
    """The pages of the queues. A queue is told by its name; it may have no row."""

    section = "queues"

    def get_urls(self) -> list[URLPattern]:
        """Its own, before what every admin has."""
        view = self.admin_site.admin_view
        return [
            path("pause/", view(require_POST(self.pause_view)), name="django_jobs_queue_pause"),
            path("resume/", view(require_POST(self.resume_view)), name="django_jobs_queue_resume"),
            path("purge/", view(self.purge_view), name="django_jobs_queue_purge"),
            *super().get_urls(),
        ]

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Queue | None:
        """The row of the queue with that name, or a new one, for the page of what was done to it. Raises Http404."""
        name = checked(object_id)
        return row_of(name) or Queue(name=name)

    # -- pages -----------------------------------------------------------------------------------------------------

    def list_page(self, request: HttpRequest, more: dict[str, Any]) -> HttpResponse:
        """The queues. Six statements."""
        workers, found = self.found()
        context = {
            **self.shared(request),
            "queues": [self.as_shown(status, workers) for status in in_need(found)],
            "more_queues": len(found) > MOST_QUEUES,
        }
        return self.page(
            request,
            "admin/django_jobs/queues.html",
            _("Queues"),
            {**context, **more},
            live=True,
        )

    def one_page(self, request: HttpRequest, object_id: str, more: dict[str, Any]) -> HttpResponse:
        """One queue, with its charts. Eight statements."""
        name = checked(unquote(object_id))
        period = period_of(request)
        workers, found = self.found()
        status = next((each for each in found if each.name == name), QueueStatus(name))
        shown = self.as_shown(status, workers)
        context = {
            **self.shared(request),
            "shown": shown,
            "row": row_of(name),
            "counts": [
                (state, getattr(shown.status, state), f"{shown.jobs_url}&state={state}") for state in COUNTED
            ],
            "charts": charts_of(period, name),
            "period": period,
            "periods": PERIODS,
            "quoted": quote(name),
        }
        return self.page(
            request,
            "admin/django_jobs/queue.html",
            name,
            {**context, **more},
            live=True,
            trail=True,
        )

    def shared(self, request: HttpRequest) -> dict[str, Any]:
        """What the user may do."""
        return {"may_pause": may(request, PAUSE), "may_purge": may(request, PURGE)}

    def found(self) -> tuple[list[LiveWorker], list[QueueStatus]]:
        """The workers, and all queues."""
        alias = jobs_database()
        store = django_store(alias)
        _now, workers = live_workers(store)
        return workers, queues_of(store, alias, workers)

    def as_shown(self, status: QueueStatus, workers: list[LiveWorker]) -> ShownQueue:
        """One queue."""
        return ShownQueue(
            status,
            self.queue_url(status.name),
            f"{self.url('django_jobs_job_changelist')}?{urlencode({'queue': status.name})}",
            [worker for worker in workers if worker.id in status.workers],
        )

    # -- actions ---------------------------------------------------------------------------------------------------

    def pause_view(self, request: HttpRequest) -> HttpResponse:
        """Let no worker claim from it."""
        text = gettext(
            "The queue %(queue)s is paused: no job of it starts from the workers' next heartbeats on."
        )
        return self.change(request, operations.pause, Text(gettext_noop("Paused.")), text)

    def resume_view(self, request: HttpRequest) -> HttpResponse:
        """Let workers claim from it again."""
        text = gettext("The queue %(queue)s is not paused any more.")
        return self.change(request, operations.resume, Text(gettext_noop("Resumed.")), text)

    def change(
        self, request: HttpRequest, operation: Callable[[str], object], noted: Text, text: str
    ) -> HttpResponse:
        """Do that to the queue that the form names, note it, and say so."""
        self.must(request, PAUSE)
        name = checked(request.POST.get("queue", ""))
        try:
            operation(name)
        except InvalidJob as error:  # a name that only somebody's SQL can have given to a queue
            messages.error(request, error.translated)
        else:
            record(request, Queue, name, name, noted, ["paused at"])
            messages.success(request, text % {"queue": name})
        return self.back(request, self.url("django_jobs_queue_changelist"))

    def purge_view(self, request: HttpRequest) -> HttpResponse:
        """Ask which of its jobs, then delete them."""
        self.must(request, PURGE)
        name = checked((request.POST if request.method == "POST" else request.GET).get("queue", ""))
        url = self.queue_url(name)
        if request.method == "POST":
            states = [state for state in request.POST.getlist("state") if state in (*WAITING, *FINISHED)]
            if states:
                return self.purge(request, name, states)
            messages.error(request, gettext("Nothing was deleted: no state was chosen."))
        try:
            counts = operations.stats_for(name)
        except InvalidJob:  # a name that only somebody's SQL can have given: its jobs can be deleted, too
            counts = {}
        context = {
            "question": gettext("Delete jobs of the queue %(queue)s?") % {"queue": name},
            "consequences": [
                gettext("There is no way back. Running jobs are never deleted."),
            ],
            "choices": [
                Choice(state, state.label, counts.get(state, Count(0)), state in WAITING)
                for state in map(State, (*WAITING, *FINISHED))
            ],
            "hidden": [("queue", name)],
            "button": gettext("Delete them"),
            "cancel_url": url,
        }
        return self.page(
            request, "admin/django_jobs/purge.html", _("Delete jobs"), context, trail=[(name, url)]
        )

    def purge(self, request: HttpRequest, name: str, states: list[str]) -> HttpResponse:
        """Delete jobs, as many as a request has time for, and say how many."""
        result = operations.delete(Filter(queue_name=name, state=states), steps=STEPS)
        if result.done:
            called = gettext("queue %(queue)s") % {"queue": name}
            record(request, Job, None, called, emptied(result.done, states), flag=DELETION)
        text = ngettext(
            "%(count)s job of the queue %(queue)s was deleted.",
            "%(count)s jobs of the queue %(queue)s were deleted.",
            result.done,
        ) % {"count": number_text(result.done), "queue": name}
        for why, count in result.skipped.items():
            text += " " + gettext("Not %(count)s: %(why)s.") % {
                "count": number_text(count),
                "why": translated(why),
            }
        messages.success(request, text)
        if result.next is not None:
            messages.warning(request, gettext("There may be more: ask again to delete those, too."))
            return self.back(request, f"{self.url('django_jobs_queue_purge')}?{urlencode({'queue': name})}")
        return self.back(request, self.queue_url(name))


def row_of(name: str) -> Queue | None:
    """The queue's row, if it has one."""
    return sound_one(Queue.objects.using(jobs_database()).filter(name=name))


def checked(name: str) -> str:
    """A queue's name, as an address or a form has it. Raises Http404 for what can be none."""
    if not name or len(name) > limits.QUEUE_LENGTH or find_problem(name, "queue"):
        raise Http404(gettext("There can be no such queue."))
    return name
