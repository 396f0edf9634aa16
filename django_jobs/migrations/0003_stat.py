from typing import Any

from django.db import migrations, models

import django_jobs.fields

# Every worker updates a minute's rows at each heartbeat: with room on its page a row goes into no index anew.
FILLFACTOR = 60


def apply(_apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"ALTER TABLE django_jobs_stat SET (fillfactor = {FILLFACTOR})")


class Migration(migrations.Migration):
    dependencies = [
        ("django_jobs", "0002_autovacuum"),
    ]

    operations = [
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
            },
        ),
        migrations.AddField(
            model_name="worker",
            name="memory",
            field=models.BigIntegerField(blank=True, null=True, verbose_name="memory in bytes"),
        ),
        migrations.AddField(
            model_name="worker",
            name="skew",
            field=models.FloatField(default=0, verbose_name="clock skew"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("state", "pending")), fields=["id"], name="django_jobs_job_pending"
            ),
        ),
        migrations.AddIndex(
            model_name="stat",
            index=models.Index(
                condition=models.Q(("outcome", "failed")),
                fields=["name", "error_class", "minute"],
                name="django_jobs_stat_failed",
            ),
        ),
        migrations.AddConstraint(
            model_name="stat",
            constraint=models.UniqueConstraint(
                fields=("minute", "queue_name", "name", "outcome", "error_class"), name="django_jobs_stat_key"
            ),
        ),
        migrations.RunPython(apply, migrations.RunPython.noop, elidable=False),
    ]
