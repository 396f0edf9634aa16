"""The workers: who works, on what, since when; and asking them to be quiet or to stop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy as _, gettext_noop
from django.views.decorators.http import require_POST

from django_jobs import operations
from django_jobs.admin.log import record
from django_jobs.admin.room import RoomAdmin, may
from django_jobs.admin.words import busy_text
from django_jobs.databases import jobs_database
from django_jobs.models import Leadership, Worker
from django_jobs.operations.workers import state_of
from django_jobs.sound_rows import sound
from django_jobs.store import django_store
from django_jobs.store.answers import HeldJob
from django_jobs.store.rows import WorkerRow
from django_jobs.texts import Text

# The newest workers are looked at: rows of those that stopped are kept for a day.
MOST = 200
JOBS_OF_EACH, JOBS_OF_ONE = 5, 100

CONTROL = "django_jobs.control_worker"

STATES = {
    "alive": (_("alive"), "ok"),
    "quiet": (_("quiet"), "warning"),
    "stopping": (_("stopping"), "warning"),
    "late": (_("late"), "error"),
    "lost": (_("lost"), "error"),
    "stopped": (_("stopped"), "quiet"),
}


@dataclass
class ShownWorker:
    """A worker as it is shown."""

    worker: Worker
    state: str
    leads: bool
    jobs: list[HeldJob]

    @property
    def word(self) -> Any:
        """Its state."""
        return STATES[self.state][0]

    @property
    def kind(self) -> str:
        """The colour of that."""
        return STATES[self.state][1]

    @property
    def is_live(self) -> bool:
        """Whether it can be asked anything."""
        return self.worker.stopped_at is None and self.worker.lost_at is None

    @property
    def pools(self) -> list[str]:
        """The queues of its pools; ``*`` are all others."""
        queues = self.worker.queues
        return (
            [str(each).replace(",", ", ") for each in queues] if isinstance(queues, list) else [str(queues)]
        )

    @property
    def more(self) -> int:
        """How many jobs it runs beyond those that are listed."""
        return max(0, self.worker.running - len(self.jobs))


@admin.register(Worker)
class WorkerAdmin(RoomAdmin):
    """The pages of the workers."""

    section = "workers"

    def get_urls(self) -> list[URLPattern]:
        """Its own, before what every admin has."""
        view = self.admin_site.admin_view
        return [
            path(
                "<int:worker_id>/quiet/", view(require_POST(self.quiet_view)), name="django_jobs_worker_quiet"
            ),
            path(
                "<int:worker_id>/unquiet/",
                view(require_POST(self.unquiet_view)),
                name="django_jobs_worker_unquiet",
            ),
            path("<int:worker_id>/stop/", view(self.stop_view), name="django_jobs_worker_stop"),
            *super().get_urls(),
        ]

    # -- pages -----------------------------------------------------------------------------------------------------

    def list_page(self, request: HttpRequest, more: dict[str, Any]) -> HttpResponse:
        """All workers: those that live, and those that stopped or were lost within the last day."""
        shown, now = self.shown(JOBS_OF_EACH)
        live = [each for each in shown if each.is_live]
        gone = [each for each in shown if not each.is_live]
        context = {
            "live_workers": live,
            "gone_workers": gone,
            "busy": busy_text(
                sum(each.worker.running for each in live), sum(each.worker.concurrency for each in live)
            ),
            "is_cut": len(shown) >= MOST,
            "may_control": may(request, CONTROL),
            "now": now,
        }
        return self.page(
            request,
            "admin/django_jobs/workers.html",
            _("Workers"),
            {**context, **more},
            live=True,
        )

    def one_page(self, request: HttpRequest, object_id: str, more: dict[str, Any]) -> HttpResponse:
        """One worker, with all that it runs."""
        shown, now = self.shown(JOBS_OF_ONE, self.id_of(object_id))
        if not shown:
            raise Http404(
                gettext("There is no such worker. Rows of workers that stopped are kept for a day.")
            )
        context = {"shown": shown[0], "may_control": may(request, CONTROL), "now": now}
        return self.page(
            request,
            "admin/django_jobs/worker.html",
            f"{shown[0].worker.host}:{shown[0].worker.pid}",
            {**context, **more},
            live=True,
            trail=True,
        )

    def shown(self, each: int, worker_id: int | None = None) -> tuple[list[ShownWorker], Any]:
        """The newest workers, or one, with the first jobs that each runs; and the database's time.

        Three statements.
        """
        using = jobs_database()
        query = Worker.objects.using(using).annotate(now=Now()).order_by("-id")
        workers = sound(query[:MOST] if worker_id is None else query.filter(pk=worker_id))
        now = workers[0].now if workers else timezone.now()
        leader = sound(Leadership.objects.using(using).filter(name="keeper").only("expires_at"))
        led = any(each.expires_at >= now for each in leader)
        live = [worker.pk for worker in workers if worker.stopped_at is None and worker.lost_at is None]
        jobs: defaultdict[int, list[HeldJob]] = defaultdict(list)
        for job in django_store(using).held_jobs(live, each):
            jobs[job.worker_id].append(job)
        return [
            ShownWorker(
                worker,
                state := state_of(worker, now),
                led and worker.leads and state not in ("stopped", "lost", "late"),
                jobs[worker.pk],
            )
            for worker in workers
        ], now

    # -- actions ---------------------------------------------------------------------------------------------------

    def quiet_view(self, request: HttpRequest, worker_id: int) -> HttpResponse:
        """Let a worker claim nothing more."""
        return self.ask(
            request,
            worker_id,
            operations.quiet_worker,
            gettext(
                "Worker %(worker)s claims no more jobs from its next heartbeat on; what it runs goes on."
            ),
            Text(gettext_noop("Asked to be quiet.")),
            "quiet requested at",
        )

    def unquiet_view(self, request: HttpRequest, worker_id: int) -> HttpResponse:
        """Let it claim again."""
        return self.ask(
            request,
            worker_id,
            operations.unquiet_worker,
            gettext("Worker %(worker)s claims jobs again from its next heartbeat on."),
            Text(gettext_noop("Asked to claim jobs again.")),
            "quiet requested at",
        )

    def stop_view(self, request: HttpRequest, worker_id: int) -> HttpResponse:
        """Ask whether, then let it stop in order."""
        self.must(request, CONTROL)
        if request.method == "POST":
            return self.ask(
                request,
                worker_id,
                operations.stop_worker,
                gettext(
                    "Worker %(worker)s stops after its next heartbeat, when its running jobs have ended."
                ),
                Text(gettext_noop("Asked to stop.")),
                "stop requested at",
            )
        shown, _now = self.shown(0, worker_id)
        if not shown:
            raise Http404
        worker = shown[0].worker
        context = {
            "question": gettext("Stop the worker %(worker)s?") % {"worker": worker},
            "consequences": [
                gettext(
                    "It claims no more jobs, and ends when those that it runs have ended, or its time for that is over."
                ),
                gettext(
                    "Nothing here starts it again. A process manager (systemd, Kubernetes) may start another worker "
                    "at once."
                ),
            ],
            "button": gettext("Stop the worker"),
            "cancel_url": self.url("django_jobs_worker_changelist"),
        }
        return self.page(request, "admin/django_jobs/confirm.html", _("Stop a worker"), context, trail=True)

    def ask(
        self,
        request: HttpRequest,
        worker_id: int,
        operation: Callable[[int], WorkerRow | None],
        done: str,
        entry: Text,
        field: str,
    ) -> HttpResponse:
        """Do one of the operations on a worker, say so, and go back.

        :param entry: of the log.
        :param field: that it changes.
        """
        self.must(request, CONTROL)
        row = operation(worker_id) if worker_id < 2**63 else None
        if row is None:
            messages.error(request, gettext("There is no worker %(id)d that is alive.") % {"id": worker_id})
        else:
            name = f"{row.host}:{row.pid} ({row.id})"
            record(request, Worker, worker_id, name, entry, [field])
            messages.success(request, done % {"worker": name})
        return self.back(request, self.url("django_jobs_worker_changelist"))
