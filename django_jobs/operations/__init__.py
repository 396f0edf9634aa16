"""What operators do to jobs, queues and workers, as functions: for scripts, the admin and ``manage.py jobs`` alike.

Those that act on many jobs take a :class:`Filter`, one id or several, work in bounded batches, each a statement of its
own, and return a :class:`Result`: how many were done, and why the others were not.
"""

from django_jobs.operations.acting import cancel, delete, purge, purge_failed, release, retry, run_now, update
from django_jobs.operations.counting import Count, QueueStats, counts, stats, stats_by_queue, stats_for
from django_jobs.operations.editing import edit
from django_jobs.operations.filters import Filter, InvalidFilter
from django_jobs.operations.finding import Page, failed, get, list_jobs, tagged
from django_jobs.operations.over_time import Failures, Point, failures, history
from django_jobs.operations.queues import pause, queue, queues, resume
from django_jobs.operations.results import Result
from django_jobs.operations.searching import ArgumentMatches, search_arguments
from django_jobs.operations.status import QueueStatus, queue_status
from django_jobs.operations.trouble import Problem, Target, problems
from django_jobs.operations.workers import quiet_worker, stop_worker, unquiet_worker

__all__ = [
    "ArgumentMatches",
    "Count",
    "Failures",
    "Filter",
    "InvalidFilter",
    "Page",
    "Point",
    "Problem",
    "QueueStats",
    "QueueStatus",
    "Result",
    "Target",
    "cancel",
    "counts",
    "delete",
    "edit",
    "failed",
    "failures",
    "get",
    "history",
    "list_jobs",
    "pause",
    "problems",
    "purge",
    "purge_failed",
    "queue",
    "queue_status",
    "queues",
    "quiet_worker",
    "release",
    "resume",
    "retry",
    "run_now",
    "search_arguments",
    "stats",
    "stats_by_queue",
    "stats_for",
    "stop_worker",
    "tagged",
    "unquiet_worker",
    "update",
]
