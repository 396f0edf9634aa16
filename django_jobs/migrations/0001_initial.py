from typing import Any

import django.db.models.deletion
from django.db import migrations, models

import django_jobs.fields

# How PostgreSQL keeps the tables.
SETTINGS = {
    # Each job is written three times, so the table dies and grows faster than the defaults expect: vacuum after a fixed
    # number of dead rows rather than a share of a history that may be long, and without pauses.
    "django_jobs_job": {
        "autovacuum_vacuum_scale_factor": "0.01",
        "autovacuum_vacuum_threshold": "5000",
        "autovacuum_vacuum_insert_scale_factor": "0.05",
        "autovacuum_analyze_scale_factor": "0.02",
        "autovacuum_vacuum_cost_delay": "0",
    },
    # Every worker updates a minute's rows at each heartbeat: with room on its page a row goes into no index anew.
    "django_jobs_stat": {"fillfactor": "60"},
}
INDEX_SETTINGS = {
    # Each of a job's three versions enters its key. Room for some on the page where the first one is spares the server
    # the search for dead ones among them: an eighth of what it takes to finish a job.
    "django_jobs_job_pkey": {"fillfactor": "70"},
}


def set_storage(_apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for kind, named in (("TABLE", SETTINGS), ("INDEX", INDEX_SETTINGS)):
            for name, settings in named.items():
                values = ", ".join(f"{key} = {value}" for key, value in settings.items())
                schema_editor.execute(f"ALTER {kind} {name} SET ({values})")


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Leadership",
            fields=[
                (
                    "name",
                    models.CharField(max_length=100, primary_key=True, serialize=False, verbose_name="name"),
                ),
                ("holder", models.CharField(max_length=100, verbose_name="holder")),
                ("term", models.BigIntegerField(default=1, verbose_name="term")),
                ("acquired_at", django_jobs.fields.TimestampField(verbose_name="acquired at")),
                ("expires_at", django_jobs.fields.TimestampField(verbose_name="expires at")),
            ],
            options={
                "verbose_name": "leadership",
                "verbose_name_plural": "leaderships",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100, unique=True, verbose_name="name")),
                (
                    "paused_at",
                    django_jobs.fields.TimestampField(blank=True, null=True, verbose_name="paused at"),
                ),
                ("metadata", django_jobs.fields.ExactJSONField(default=dict, verbose_name="metadata")),
                ("created_at", django_jobs.fields.TimestampField(verbose_name="created at")),
                ("updated_at", django_jobs.fields.TimestampField(verbose_name="updated at")),
            ],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "permissions": [("pause_queue", "Can pause and resume queues")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=255, unique=True, verbose_name="key")),
                ("name", models.CharField(max_length=200, verbose_name="job name")),
                ("expression", models.CharField(max_length=200, verbose_name="expression")),
                ("timezone", models.CharField(default="UTC", max_length=64, verbose_name="time zone")),
                ("missed", models.CharField(default="latest", max_length=10, verbose_name="missed ticks")),
                (
                    "args",
                    django_jobs.fields.ExactJSONField(default=list, verbose_name="positional arguments"),
                ),
                ("kwargs", django_jobs.fields.ExactJSONField(default=dict, verbose_name="keyword arguments")),
                ("options", django_jobs.fields.ExactJSONField(default=dict, verbose_name="options")),
                ("owed_after", django_jobs.fields.TimestampField(verbose_name="owed after")),
                (
                    "last_tick",
                    django_jobs.fields.TimestampField(blank=True, null=True, verbose_name="last tick"),
                ),
                (
                    "next_tick",
                    django_jobs.fields.TimestampField(blank=True, null=True, verbose_name="next tick"),
                ),
                ("last_job_id", models.BigIntegerField(blank=True, null=True, verbose_name="last job")),
                ("last_error", models.TextField(blank=True, default="", verbose_name="last error")),
                (
                    "paused_at",
                    django_jobs.fields.TimestampField(blank=True, null=True, verbose_name="paused at"),
                ),
                (
                    "removed_at",
                    django_jobs.fields.TimestampField(blank=True, null=True, verbose_name="removed at"),
                ),
                ("created_at", django_jobs.fields.TimestampField(verbose_name="created at")),
                ("updated_at", django_jobs.fields.TimestampField(verbose_name="updated at")),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "permissions": [("run_schedule", "Can run, pause and resume schedules")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("host", models.CharField(max_length=255, verbose_name="host")),
                ("pid", models.IntegerField(verbose_name="process id")),
                ("queues", django_jobs.fields.ExactJSONField(default=list, verbose_name="queues")),
                ("concurrency", models.IntegerField(default=0, verbose_name="concurrency")),
                ("version", models.CharField(default="", max_length=50, verbose_name="version")),
                ("started_at", django_jobs.fields.TimestampField(verbose_name="started at")),
                ("heartbeat_at", django_jobs.fields.TimestampField(verbose_name="last heartbeat at")),
                ("expires_at", django_jobs.fields.TimestampField(verbose_name="lease ends at")),
                (
                    "quiet_requested_at",
                    django_jobs.fields.TimestampField(
                        blank=True, null=True, verbose_name="quiet requested at"
                    ),
                ),
                (
                    "stop_requested_at",
                    django_jobs.fields.TimestampField(
                        blank=True, null=True, verbose_name="stop requested at"
                    ),
                ),
                (
                    "stopped_at",
                    django_jobs.fields.TimestampField(blank=True, null=True, verbose_name="stopped at"),
                ),
                ("lost_at", django_jobs.fields.TimestampField(blank=True, null=True, verbose_name="lost at")),
                ("running", models.IntegerField(default=0, verbose_name="running")),
                ("completed", models.BigIntegerField(default=0, verbose_name="completed")),
                ("failed", models.BigIntegerField(default=0, verbose_name="failed")),
                ("skew", models.FloatField(default=0, verbose_name="clock skew")),
                ("memory", models.BigIntegerField(blank=True, null=True, verbose_name="memory in bytes")),
                (
                    "leads",
                    models.BooleanField(db_default=False, default=False, verbose_name="does the maintenance"),
                ),
                ("epoch", models.IntegerField(db_default=0, default=0, verbose_name="epoch of its claims")),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "permissions": [("control_worker", "Can quiet and stop workers")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Stat",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("minute", django_jobs.fields.TimestampField(verbose_name="minute")),
                ("queue_name", models.CharField(max_length=100, verbose_name="queue")),
                ("name", models.CharField(max_length=200, verbose_name="name")),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("completed", "Completed"),
                            ("failed", "Failed for good"),
                            ("retried", "Failed, to be retried"),
                            ("snoozed", "Snoozed"),
                            ("cancelled", "Cancelled"),
                        ],
                        max_length=12,
                        verbose_name="outcome",
                    ),
                ),
                (
                    "error_class",
                    models.CharField(blank=True, default="", max_length=200, verbose_name="error class"),
                ),
                ("count", models.BigIntegerField(verbose_name="count")),
                ("run_total", models.FloatField(default=0, verbose_name="run time in seconds, total")),
                ("run_max", models.FloatField(default=0, verbose_name="run time in seconds, greatest")),
                ("wait_total", models.FloatField(default=0, verbose_name="wait time in seconds, total")),
                ("wait_max", models.FloatField(default=0, verbose_name="wait time in seconds, greatest")),
            ],
            options={
                "verbose_name": "statistic",
                "verbose_name_plural": "statistics",
                "indexes": [
                    models.Index(
                        condition=models.Q(("outcome", "failed")),
                        fields=["name", "error_class", "minute"],
                        name="django_jobs_stat_failed",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("minute", "queue_name", "name", "outcome", "error_class"),
                        name="django_jobs_stat_key",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, verbose_name="name")),
                ("queue_name", models.CharField(default="default", max_length=100, verbose_name="queue")),
                (
                    "args",
                    django_jobs.fields.ExactJSONField(default=list, verbose_name="positional arguments"),
                ),
                ("kwargs", django_jobs.fields.ExactJSONField(default=dict, verbose_name="keyword arguments")),
                ("priority", models.SmallIntegerField(default=0, verbose_name="priority")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("scheduled", "Scheduled"),
                            ("available", "Available"),
                            ("running", "Running"),
                            ("completed", "Completed"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="available",
                        max_length=12,
                        verbose_name="state",
                    ),
                ),
                ("attempt", models.SmallIntegerField(default=0, verbose_name="attempt")),
                ("max_attempts", models.SmallIntegerField(default=5, verbose_name="most attempts")),
                ("claims", models.IntegerField(default=0, verbose_name="claims")),
                ("run_after", django_jobs.fields.TimestampField(verbose_name="run after")),
                ("created_at", django_jobs.fields.TimestampField(verbose_name="created at")),
                (
                    "attempted_at",
                    django_jobs.fields.TimestampField(blank=True, null=True, verbose_name="attempted at"),
                ),
                (
                    "finalized_at",
                    django_jobs.fields.TimestampField(blank=True, null=True, verbose_name="finalized at"),
                ),
                (
                    "cancel_requested_at",
                    django_jobs.fields.TimestampField(
                        blank=True, null=True, verbose_name="cancel requested at"
                    ),
                ),
                (
                    "unique_key",
                    models.CharField(blank=True, max_length=255, null=True, verbose_name="unique key"),
                ),
                ("holds_key", models.BooleanField(default=False, verbose_name="holds its key")),
                ("tags", django_jobs.fields.ExactJSONField(blank=True, null=True, verbose_name="tags")),
                (
                    "error_class",
                    models.CharField(blank=True, max_length=200, null=True, verbose_name="error class"),
                ),
                ("errors", django_jobs.fields.ExactJSONField(blank=True, null=True, verbose_name="errors")),
                ("result", django_jobs.fields.ExactJSONField(blank=True, null=True, verbose_name="result")),
                (
                    "metadata",
                    django_jobs.fields.ExactJSONField(blank=True, null=True, verbose_name="metadata"),
                ),
                ("timeout", models.FloatField(blank=True, null=True, verbose_name="timeout in seconds")),
                (
                    "key_until",
                    django_jobs.fields.TimestampField(
                        blank=True, null=True, verbose_name="holds its key until"
                    ),
                ),
                (
                    "worker",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="django_jobs.worker",
                        verbose_name="worker",
                    ),
                ),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
                "permissions": [
                    ("retry_job", "Can run finished jobs again"),
                    ("cancel_job", "Can cancel jobs"),
                    ("purge_job", "Can delete jobs"),
                    ("edit_job", "Can change waiting jobs, and let them run"),
                ],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "available")),
                        fields=["queue_name", "-priority", "run_after", "id"],
                        name="django_jobs_job_claim",
                    ),
                    models.Index(
                        condition=models.Q(("state", "scheduled")),
                        fields=["run_after", "id"],
                        name="django_jobs_job_due",
                    ),
                    models.Index(
                        condition=models.Q(("state", "running")),
                        fields=["worker", "id"],
                        name="django_jobs_job_running",
                    ),
                    models.Index(
                        condition=models.Q(("cancel_requested_at__isnull", False), ("state", "running")),
                        fields=["worker", "cancel_requested_at"],
                        name="django_jobs_job_cancel",
                    ),
                    models.Index(
                        condition=models.Q(("finalized_at__isnull", False)),
                        fields=["state", "finalized_at", "id"],
                        name="django_jobs_job_finished",
                    ),
                    models.Index(
                        condition=models.Q(("state", "pending")),
                        fields=["id"],
                        name="django_jobs_job_pending",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("holds_key", True)),
                        fields=("unique_key",),
                        name="django_jobs_job_unique_key",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("finalized_at__isnull", False),
                                models.Q(
                                    ("state", "completed"),
                                    ("state", "failed"),
                                    ("state", "cancelled"),
                                    _connector="OR",
                                ),
                            ),
                            models.Q(
                                ("finalized_at__isnull", True),
                                models.Q(
                                    ("state", "running"),
                                    ("state", "available"),
                                    ("state", "scheduled"),
                                    ("state", "pending"),
                                    _connector="OR",
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="django_jobs_job_state_finalized",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("attempt__gte", 0),
                            models.Q(
                                ("attempt__lt", models.F("max_attempts")),
                                models.Q(
                                    ("attempt", models.F("max_attempts")),
                                    models.Q(
                                        ("state__in", ("pending", "scheduled", "available")), _negated=True
                                    ),
                                ),
                                _connector="OR",
                            ),
                        ),
                        name="django_jobs_job_attempt",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "running"), _negated=True),
                            ("worker__isnull", False),
                            _connector="OR",
                        ),
                        name="django_jobs_job_running_worker",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("priority__gte", -100), ("priority__lte", 100)),
                        name="django_jobs_job_priority",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("holds_key", False), ("unique_key__isnull", False), _connector="OR"
                        ),
                        name="django_jobs_job_holds_key",
                    ),
                ],
            },
        ),
        # Undone, the tables are gone.
        migrations.RunPython(set_storage, migrations.RunPython.noop, elidable=False),
    ]
