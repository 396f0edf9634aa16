"""Django's Tasks framework on this queue: ``TASKS = {"default": {"BACKEND": "django_jobs.backend.JobsBackend"}}``.

A task is a job whose function has a definition of its own, so that the worker runs it as it runs any other, and a job
that is no task pays for none of this.
"""

from django_jobs.backend.jobs_backend import JobsBackend
from django_jobs.backend.results import JobsTaskResult
from django_jobs.backend.tasks import JobsTask

__all__ = ["JobsBackend", "JobsTask", "JobsTaskResult"]
