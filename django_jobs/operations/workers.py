"""Asking workers to be quiet, or to stop. They hear of it with their next heartbeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_jobs.databases import jobs_database
from django_jobs.operations.filters import checked_id
from django_jobs.store import django_store
from django_jobs.store.rows import WorkerRow

if TYPE_CHECKING:
    from django_jobs.models import Worker


def quiet_worker(worker_id: int, *, using: str | None = None) -> WorkerRow | None:
    """Ask a worker to claim no more jobs; what it runs goes on. None: there is no such worker that is alive."""
    return django_store(jobs_database(using)).ask_worker(checked_id(worker_id, "worker_id"), quiet=True)


def unquiet_worker(worker_id: int, *, using: str | None = None) -> WorkerRow | None:
    """Let a quiet worker claim jobs again. None: there is no such worker that is alive."""
    return django_store(jobs_database(using)).ask_worker(checked_id(worker_id, "worker_id"), quiet=False)


def stop_worker(worker_id: int, *, using: str | None = None) -> WorkerRow | None:
    """Ask a worker to stop in order, as SIGTERM does. None: there is no such worker that is alive.

    A supervisor (``runjobs --processes``) does not start another process in its place; systemd or Kubernetes do, unless
    told not to.
    """
    return django_store(jobs_database(using)).ask_worker(checked_id(worker_id, "worker_id"), stop=True)


def state_of(worker: Worker, now: Any) -> str:
    """A worker's state in a word: alive, quiet, stopping, late, lost or stopped.

    :param now: the time of the database.
    """
    if worker.stopped_at is not None:
        return "stopped"
    if worker.lost_at is not None:
        return "lost"
    if worker.expires_at < now:
        return "late"
    if worker.stop_requested_at is not None:
        return "stopping"
    return "quiet" if worker.quiet_requested_at is not None else "alive"
