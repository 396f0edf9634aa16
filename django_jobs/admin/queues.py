"""The queues."""

from __future__ import annotations

from django.contrib import admin

from django_jobs.admin.readonly import ReadOnlyAdmin
from django_jobs.models import Queue


@admin.register(Queue)
class QueueAdmin(ReadOnlyAdmin):
    """Queues that have a row: those that were paused or described."""

    list_display = ("name", "paused_at", "updated_at")
    ordering = ("name",)
