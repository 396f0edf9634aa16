"""The worker: finds jobs, runs them, and records how they ended, all at the same time."""

from django_jobs.worker.options import Pool, WorkerOptions, parse_pools, pools_from_settings
from django_jobs.worker.statistics import Statistics
from django_jobs.worker.worker import Worker

__all__ = ["Pool", "Statistics", "Worker", "WorkerOptions", "parse_pools", "pools_from_settings"]
