"""A durable background job queue in the database that a Django site already has."""

from django_jobs.context import JobContext, current_job
from django_jobs.decorators import job
from django_jobs.definitions import JobDefinition
from django_jobs.enqueueing import aenqueue_many, enqueue_many
from django_jobs.exceptions import (
    Cancel,
    ClaimLost,
    Fail,
    InvalidArguments,
    InvalidJob,
    InvalidSchedule,
    NotRegistered,
    OutcomeNotStorable,
    Retry,
    Snooze,
    TimedOut,
    UndecodableArguments,
    WorkerError,
    WorkerLost,
)
from django_jobs.job_registry import registry
from django_jobs.results import ResultNotStorable
from django_jobs.schedules import periodic

__version__ = "0.1.0"

__all__ = [
    "Cancel",
    "ClaimLost",
    "Fail",
    "InvalidArguments",
    "InvalidJob",
    "InvalidSchedule",
    "JobContext",
    "JobDefinition",
    "NotRegistered",
    "OutcomeNotStorable",
    "ResultNotStorable",
    "Retry",
    "Snooze",
    "TimedOut",
    "UndecodableArguments",
    "WorkerError",
    "WorkerLost",
    "aenqueue_many",
    "current_job",
    "enqueue_many",
    "job",
    "periodic",
    "registry",
]
