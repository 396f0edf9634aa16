"""The workers, the queues and the schedules."""

from __future__ import annotations

from django.contrib import admin

from django_jobs.admin.readonly import ReadOnlyAdmin
from django_jobs.models import Queue, Schedule, Worker


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Who works, and who did lately."""

    list_display = (
        "id",
        "host",
        "pid",
        "queues",
        "concurrency",
        "running",
        "completed",
        "heartbeat_at",
        "stopped_at",
    )
    ordering = ("-id",)


@admin.register(Queue)
class QueueAdmin(ReadOnlyAdmin):
    """Queues that have a row: those that were paused or described."""

    list_display = ("name", "paused_at", "updated_at")
    ordering = ("name",)


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin):
    """What runs periodically."""

    list_display = (
        "key",
        "name",
        "expression",
        "timezone",
        "last_tick",
        "next_tick",
        "paused_at",
        "removed_at",
    )
    ordering = ("key",)
