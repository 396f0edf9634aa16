"""The tables. The ORM here serves the admin and the user; the hot statements are in ``sql/``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from django_jobs import limits
from django_jobs.fields import ExactJSONField, TimestampField
from django_jobs.states import FINISHED, WAITING, Counted, State


def _any_of(states: Sequence[str]) -> Q:
    """The state is one of these, the likeliest first.

    Not ``state__in``: for a list of three or more SQLite makes a table of its own, and looks into it for every row that
    is written. That was a seventh of all a claim and a completion cost there.
    """
    return reduce(or_, (Q(state=state) for state in states))


class Worker(models.Model):
    """A worker process. Each start is a new row: a host name and a pid come again, an id never does."""

    host = models.CharField(_("host"), max_length=limits.HOST_LENGTH)
    pid = models.IntegerField(_("process id"))
    queues = ExactJSONField(_("queues"), default=list)
    concurrency = models.IntegerField(_("concurrency"), default=0)
    version = models.CharField(_("version"), max_length=limits.VERSION_LENGTH, default="")
    started_at = TimestampField(_("started at"))
    heartbeat_at = TimestampField(_("last heartbeat at"))
    expires_at = TimestampField(_("lease ends at"))
    quiet_requested_at = TimestampField(_("quiet requested at"), null=True, blank=True)
    stop_requested_at = TimestampField(_("stop requested at"), null=True, blank=True)
    stopped_at = TimestampField(_("stopped at"), null=True, blank=True)
    lost_at = TimestampField(_("lost at"), null=True, blank=True)
    running = models.IntegerField(_("running"), default=0)
    completed = models.BigIntegerField(_("completed"), default=0)
    failed = models.BigIntegerField(_("failed"), default=0)
    # Seconds that its host's clock is ahead of the database's.
    skew = models.FloatField(_("clock skew"), default=0)
    memory = models.BigIntegerField(_("memory in bytes"), null=True, blank=True)
    # A default of the database's: while a deploy is rolled out, workers of the version before register, too.
    leads = models.BooleanField(_("does the maintenance"), default=False, db_default=False)
    # Claims that were sent in an earlier epoch take nothing: their answers were lost, and nobody waits for them.
    epoch = models.IntegerField(_("epoch of its claims"), default=0, db_default=0)

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        default_permissions = ("view",)
        permissions: ClassVar = [("control_worker", _("Can quiet and stop workers"))]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid} ({self.pk})"


class Job(models.Model):
    """A request to call a function once, successfully."""

    name = models.CharField(_("name"), max_length=limits.NAME_LENGTH)
    queue_name = models.CharField(_("queue"), max_length=limits.QUEUE_LENGTH, default="default")
    args = ExactJSONField(_("positional arguments"), default=list)
    kwargs = ExactJSONField(_("keyword arguments"), default=dict)
    priority = models.SmallIntegerField(_("priority"), default=0)
    state = models.CharField(_("state"), max_length=12, choices=State.choices, default=State.AVAILABLE)
    attempt = models.SmallIntegerField(_("attempt"), default=0)
    max_attempts = models.SmallIntegerField(_("most attempts"), default=5)
    claims = models.IntegerField(_("claims"), default=0)
    run_after = TimestampField(_("run after"))
    created_at = TimestampField(_("created at"))
    attempted_at = TimestampField(_("attempted at"), null=True, blank=True)
    finalized_at = TimestampField(_("finalized at"), null=True, blank=True)
    cancel_requested_at = TimestampField(_("cancel requested at"), null=True, blank=True)
    # No constraint and no index: the row of a worker may go while the job that it ran stays, and a foreign key
    # would be checked at every claim.
    worker = models.ForeignKey(
        Worker,
        verbose_name=_("worker"),
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        blank=True,
        related_name="+",
    )
    unique_key = models.CharField(_("unique key"), max_length=limits.KEY_LENGTH, null=True, blank=True)  # noqa: DJ001
    holds_key = models.BooleanField(_("holds its key"), default=False)
    # Null where there is none: most jobs have none of these, and a row is written three times in its life.
    tags = ExactJSONField(_("tags"), null=True, blank=True)
    error_class = models.CharField(  # noqa: DJ001
        _("error class"), max_length=limits.ERROR_CLASS_LENGTH, null=True, blank=True
    )
    errors = ExactJSONField(_("errors"), null=True, blank=True)
    result = ExactJSONField(_("result"), null=True, blank=True)
    metadata = ExactJSONField(_("metadata"), null=True, blank=True)
    timeout = models.FloatField(_("timeout in seconds"), null=True, blank=True)
    # A completed job holds its key until then: once in a period, whatever becomes of the job.
    key_until = TimestampField(_("holds its key until"), null=True, blank=True)

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        # Jobs come from code and go by retention or purge: there is nothing to add, change or delete by hand.
        default_permissions = ("view",)
        permissions: ClassVar = [
            ("retry_job", _("Can run finished jobs again")),
            ("cancel_job", _("Can cancel jobs")),
            ("purge_job", _("Can delete jobs")),
            ("edit_job", _("Can change waiting jobs, and let them run")),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["queue_name", "-priority", "run_after", "id"],
                condition=Q(state=State.AVAILABLE.value),
                name="django_jobs_job_claim",
            ),
            models.Index(
                fields=["run_after", "id"],
                condition=Q(state=State.SCHEDULED.value),
                name="django_jobs_job_due",
            ),
            models.Index(
                fields=["worker", "id"],
                condition=Q(state=State.RUNNING.value),
                name="django_jobs_job_running",
            ),
            # Next to empty. To look for requests among all that a worker runs would be to read, while somebody's
            # transaction is open for long, an entry for each job that it has claimed since.
            models.Index(
                fields=["worker", "cancel_requested_at"],
                condition=Q(state=State.RUNNING.value, cancel_requested_at__isnull=False),
                name="django_jobs_job_cancel",
            ),
            models.Index(
                fields=["state", "finalized_at", "id"],
                condition=Q(finalized_at__isnull=False),
                name="django_jobs_job_finished",
            ),
            models.Index(
                fields=["id"], condition=Q(state=State.PENDING.value), name="django_jobs_job_pending"
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["unique_key"], condition=Q(holds_key=True), name="django_jobs_job_unique_key"
            ),
            models.CheckConstraint(
                condition=(Q(finalized_at__isnull=False) & _any_of(FINISHED))
                | (Q(finalized_at__isnull=True) & _any_of((State.RUNNING.value, *reversed(WAITING)))),
                name="django_jobs_job_state_finalized",
            ),
            # A waiting job has an attempt left: so a claim, which counts one up, can never break the next rule
            # and with it the claim of the rows beside it.
            models.CheckConstraint(
                condition=Q(attempt__gte=0)
                & (Q(attempt__lt=F("max_attempts")) | (Q(attempt=F("max_attempts")) & ~Q(state__in=WAITING))),
                name="django_jobs_job_attempt",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.RUNNING.value) | Q(worker__isnull=False),
                name="django_jobs_job_running_worker",
            ),
            models.CheckConstraint(
                condition=Q(priority__gte=limits.PRIORITY_LOWEST, priority__lte=limits.PRIORITY_HIGHEST),
                name="django_jobs_job_priority",
            ),
            models.CheckConstraint(
                condition=Q(holds_key=False) | Q(unique_key__isnull=False),
                name="django_jobs_job_holds_key",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"


class Queue(models.Model):
    """What is known of a queue beside its jobs. A queue needs no row to be used."""

    name = models.CharField(_("name"), max_length=limits.QUEUE_LENGTH, unique=True)
    paused_at = TimestampField(_("paused at"), null=True, blank=True)
    metadata = ExactJSONField(_("metadata"), default=dict)
    created_at = TimestampField(_("created at"))
    updated_at = TimestampField(_("updated at"))

    class Meta:
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        default_permissions = ("view",)
        permissions: ClassVar = [("pause_queue", _("Can pause and resume queues"))]

    def __str__(self) -> str:
        return self.name


class Schedule(models.Model):
    """A periodic job, as the code declares it, and the ledger of its ticks, which does not depend on finished jobs."""

    key = models.CharField(_("key"), max_length=limits.KEY_LENGTH, unique=True)
    name = models.CharField(_("job name"), max_length=limits.NAME_LENGTH)
    expression = models.CharField(_("expression"), max_length=limits.EXPRESSION_LENGTH)
    timezone = models.CharField(_("time zone"), max_length=limits.ZONE_LENGTH, default="UTC")
    missed = models.CharField(_("missed ticks"), max_length=10, default="latest")
    args = ExactJSONField(_("positional arguments"), default=list)
    kwargs = ExactJSONField(_("keyword arguments"), default=dict)
    options = ExactJSONField(_("options"), default=dict)
    # No tick at or before this moment is owed: when it was declared, changed its times, came back or was resumed.
    owed_after = TimestampField(_("owed after"))
    # The newest tick that was run. It only grows, so that no tick is run twice.
    last_tick = TimestampField(_("last tick"), null=True, blank=True)
    # Null until the keeper has worked it out, and while it does not run.
    next_tick = TimestampField(_("next tick"), null=True, blank=True)
    last_job_id = models.BigIntegerField(_("last job"), null=True, blank=True)
    last_error = models.TextField(_("last error"), default="", blank=True)
    paused_at = TimestampField(_("paused at"), null=True, blank=True)
    # Set when no code declares it any more: it is kept, and does not run.
    removed_at = TimestampField(_("removed at"), null=True, blank=True)
    created_at = TimestampField(_("created at"))
    updated_at = TimestampField(_("updated at"))

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        default_permissions = ("view",)
        permissions: ClassVar = [("run_schedule", _("Can run, pause and resume schedules"))]

    def __str__(self) -> str:
        return f"{self.key}: {self.expression}"


class Stat(models.Model):
    """What became of the attempts of one kind within a minute; later within the ten minutes, or the hour, it begins.

    Each attempt that ended is counted once. ``run`` is how long attempts took, ``wait`` how long they had been due when
    they were claimed; of what ended without running (a waiting job that was cancelled) both are 0.
    """

    minute = TimestampField(_("minute"))
    queue_name = models.CharField(_("queue"), max_length=limits.QUEUE_LENGTH)
    name = models.CharField(_("name"), max_length=limits.NAME_LENGTH)
    outcome = models.CharField(_("outcome"), max_length=12, choices=Counted.choices)
    # Empty where there was no error: nulls would be different keys.
    error_class = models.CharField(
        _("error class"), max_length=limits.ERROR_CLASS_LENGTH, blank=True, default=""
    )
    count = models.BigIntegerField(_("count"))
    run_total = models.FloatField(_("run time in seconds, total"), default=0)
    run_max = models.FloatField(_("run time in seconds, greatest"), default=0)
    wait_total = models.FloatField(_("wait time in seconds, total"), default=0)
    wait_max = models.FloatField(_("wait time in seconds, greatest"), default=0)

    class Meta:
        verbose_name = _("statistic")
        verbose_name_plural = _("statistics")
        indexes: ClassVar = [
            models.Index(
                fields=["name", "error_class", "minute"],
                condition=Q(outcome=Counted.FAILED.value),
                name="django_jobs_stat_failed",
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["minute", "queue_name", "name", "outcome", "error_class"], name="django_jobs_stat_key"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.minute:%Y-%m-%d %H:%M} {self.name} {self.outcome}: {self.count}"


class Leadership(models.Model):
    """Who does the maintenance at present. One row for each name."""

    name = models.CharField(_("name"), max_length=100, primary_key=True)
    holder = models.CharField(_("holder"), max_length=100)
    term = models.BigIntegerField(_("term"), default=1)
    acquired_at = TimestampField(_("acquired at"))
    expires_at = TimestampField(_("expires at"))

    class Meta:
        verbose_name = _("leadership")
        verbose_name_plural = _("leaderships")
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"
