"""A worker's row: how it enters, and what is left of it when it leaves."""

from __future__ import annotations

import logging
import os
import socket

import django_jobs
from django_jobs import conf, limits
from django_jobs.serialization import encode
from django_jobs.store.base import Store
from django_jobs.store.rows import WorkerRow
from django_jobs.store.statistics import record_ended
from django_jobs.worker.followers import tell_of_lost
from django_jobs.worker.options import WorkerOptions

logger = logging.getLogger("django_jobs.worker")

STOPPED = "The worker stopped before the job had ended."


def register(store: Store, options: WorkerOptions) -> WorkerRow:
    """A new row for this process."""
    return store.register_worker(
        socket.gethostname()[: limits.HOST_LENGTH],
        os.getpid(),
        encode([pool.name for pool in options.pools]),
        sum(pool.size for pool in options.pools),
        django_jobs.__version__,
        options.lease,
    )


def end_claims(store: Store, worker_id: int, using: str | None = None) -> None:
    """End what a worker that stops still holds: the attempts stay spent, and the jobs are available at once."""
    jobs = store.rescue(
        limit=100_000,
        spread=0.0,
        worker_id=worker_id,
        reason=STOPPED,
        most_errors=conf.get("MAX_ERRORS"),
    )
    for job in jobs:
        logger.warning("Job %d %s did not end in time; it is %s now", job.id, job.name, job.state)
    record_ended(store, jobs)
    tell_of_lost(jobs, STOPPED, using)
