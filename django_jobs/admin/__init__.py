"""The admin's pages: what waits, runs and failed, read only."""

from django_jobs.admin.jobs import JobAdmin
from django_jobs.admin.workers import QueueAdmin, ScheduleAdmin, WorkerAdmin

__all__ = ["JobAdmin", "QueueAdmin", "ScheduleAdmin", "WorkerAdmin"]
