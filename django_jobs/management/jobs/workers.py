"""``workers`` and ``schedules``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError
from django.db.models.functions import Now

from django_jobs import operations
from django_jobs.exceptions import InvalidJob, InvalidSchedule
from django_jobs.management.jobs.arguments import worker_id
from django_jobs.management.jobs.base import Subcommand
from django_jobs.management.jobs.output import Output, clean
from django_jobs.models import Schedule, Worker
from django_jobs.operations.workers import state_of
from django_jobs.schedule_errors import redacted
from django_jobs.scheduling import pause_schedule, resume_schedule, run_schedule_now
from django_jobs.sound_rows import sound, sound_one
from django_jobs.store.rows import JobRow, ScheduleRow, WorkerRow


class Workers(Subcommand):
    """Who works."""

    name = "workers"
    help = "the workers that are alive, with --all those that stopped or were lost lately, too; quiet or stop one"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which, or nothing: list them."""
        parser.add_argument("--all", action="store_true", help="those that have stopped, too")
        act = parser.add_mutually_exclusive_group()
        act.add_argument(
            "--quiet",
            type=worker_id,
            metavar="ID",
            help="let this worker claim no more jobs; what it runs goes on",
        )
        act.add_argument("--unquiet", type=worker_id, metavar="ID", help="let this worker claim jobs again")
        act.add_argument(
            "--stop", type=worker_id, metavar="ID", help="let this worker stop in order, as SIGTERM does"
        )

    def run(self, out: Output, using: str, options: dict[str, Any]) -> None:
        """A row for each, the newest first; or ask one."""
        for option, function, done in (
            ("quiet", operations.quiet_worker, "claims no more jobs from its next heartbeat on"),
            ("unquiet", operations.unquiet_worker, "claims jobs again from its next heartbeat on"),
            ("stop", operations.stop_worker, "stops after its next heartbeat, when its jobs have ended"),
        ):
            if options[option] is not None:
                self.ask(out, using, options[option], function, done)
                return
        workers = Worker.objects.using(using).order_by("-id").annotate(now=Now())
        if not options["all"]:
            workers = workers.filter(stopped_at=None, lost_at=None)
        records = [
            {
                "id": worker.pk,
                "host": worker.host,
                "pid": worker.pid,
                "state": state_of(worker, worker.now),
                "queues": worker.queues,
                "running": worker.running,
                "concurrency": worker.concurrency,
                "completed": worker.completed,
                "failed": worker.failed,
                "started_at": worker.started_at,
                "heartbeat_at": worker.heartbeat_at,
                "version": worker.version,
            }
            for worker in sound(workers)
        ]
        columns = [
            "id",
            "host",
            "pid",
            "state",
            "queues",
            "running",
            "concurrency",
            "completed",
            "failed",
            "heartbeat_at",
        ]
        if not out.table(columns, records):
            out.line("No worker is alive. Start one: manage.py runjobs")

    def ask(
        self,
        out: Output,
        using: str,
        id_: int,
        function: Callable[..., WorkerRow | None],
        done: str,
    ) -> None:
        """Call what workers can be asked."""
        worker = function(id_, using=using)
        if worker is None:
            raise CommandError(f"There is no worker {id_} that is alive; manage.py jobs workers lists them.")
        if out.as_json:
            out.record({"id": worker.id, "host": worker.host, "pid": worker.pid})
        else:
            out.line(clean(f"Worker {worker.id} ({worker.host}, process {worker.pid}) {done}."))


class Schedules(Subcommand):
    """What runs periodically."""

    name = "schedules"
    help = "the schedules: what runs periodically, when it ran and will run; pause, resume or run one now"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Nothing: list them."""
        act = parser.add_mutually_exclusive_group()
        act.add_argument("--pause", metavar="KEY", help="let this schedule not run")
        act.add_argument("--resume", metavar="KEY", help="let this schedule run again, from its next tick")
        act.add_argument(
            "--run-now", metavar="KEY", help="enqueue a job of this schedule now, beside its ticks"
        )

    def run(self, out: Output, using: str, options: dict[str, Any]) -> None:
        """List them, or do something to one."""
        for option, function, done in (
            ("pause", pause_schedule, "is paused"),
            ("resume", resume_schedule, "is not paused any more"),
            ("run_now", run_schedule_now, "has a job now"),
        ):
            if options[option] is not None:
                self.act(out, using, options[option], function, done)
                return
        schedules = Schedule.objects.using(using).order_by("key")
        records = [
            {
                "key": schedule.key,
                "job": schedule.name,
                "when": schedule.expression,
                "time_zone": schedule.timezone,
                "state": "removed" if schedule.removed_at else "paused" if schedule.paused_at else "runs",
                "last_tick": schedule.last_tick,
                "next_tick": schedule.next_tick,
                "last_error": schedule.last_error,
            }
            for schedule in sound(schedules)
        ]
        columns = ["key", "job", "when", "time_zone", "state", "last_tick", "next_tick", "last_error"]
        if not out.table(columns, records):
            out.line("There are no schedules.")

    def act(
        self,
        out: Output,
        using: str,
        key: str,
        function: Callable[..., ScheduleRow | JobRow | None],
        done: str,
    ) -> None:
        """Call what schedules offer."""
        row = sound_one(Schedule.objects.using(using).filter(key=key))
        if row is None:
            raise CommandError(f"There is no schedule {key!r}; manage.py jobs schedules lists them.")
        try:
            answer = function(key, using=using)
        except (InvalidSchedule, InvalidJob) as error:
            # It may tell the arguments, of which some are not to be seen.
            raise CommandError(redacted(row.name, row.args, row.kwargs, str(error))) from error
        if answer is None:
            raise CommandError(f"Nothing was done: a live job holds the unique key of schedule {key!r}.")
        if out.as_json:
            out.record({"key": key, "id": answer.id})
        else:
            out.line(clean(f"The schedule {key} {done}."))
