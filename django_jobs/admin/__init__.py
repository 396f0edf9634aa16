"""The operations room: the admin's pages of jobs, queues, workers and schedules."""

from django_jobs.admin.jobs import JobAdmin
from django_jobs.admin.queues import QueueAdmin
from django_jobs.admin.schedules import ScheduleAdmin
from django_jobs.admin.workers import WorkerAdmin

__all__ = ["JobAdmin", "QueueAdmin", "ScheduleAdmin", "WorkerAdmin"]
