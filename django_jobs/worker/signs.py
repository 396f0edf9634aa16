"""What the worker tells its jobs: that it stops, that they were cancelled, that their claim was lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django_jobs.store.rows import ID, WORKER_ID, JobRow


class Signs:
    """Read by jobs in their threads, set by the worker's parts; every field is replaced, never changed.

    :param using: the alias of the database that holds the jobs, for what a running job writes to its own row.
    """

    def __init__(self, using: str | None = None) -> None:
        self.using = using
        self.stopping = False
        # The lease has run out unrenewed: whether the claims still hold can't be known.
        self.doubtful = False
        self.worker_id = 0
        self.cancelled: frozenset[int] = frozenset()
        self._followers: set[Callable[[], None]] = set()
        self._lock = threading.Lock()

    def should_stop(self, job: JobRow) -> bool:
        """Whether this job should end soon."""
        return (
            self.stopping
            or self.doubtful
            or job.values[ID] in self.cancelled
            or job.values[WORKER_ID] != self.worker_id
        )

    def is_cancelled(self, job: JobRow) -> bool:
        """Whether somebody has asked for this job to be cancelled while it runs."""
        return job.values[ID] in self.cancelled

    def is_lost(self, job: JobRow) -> bool:
        """Whether the job's claim was lost together with the worker's id."""
        return bool(job.values[WORKER_ID] != self.worker_id)

    def may_be_lost(self, job: JobRow) -> bool:
        """Whether the job's claim was lost, or may have been."""
        return self.doubtful or self.is_lost(job)

    # -- for those that can't look again and again ---------------------------------------------------------------------

    def follow(self, follower: Callable[[], None]) -> None:
        """Have ``follower`` called, in any thread, after each :meth:`tell`. It must return at once."""
        with self._lock:
            self._followers.add(follower)

    def unfollow(self, follower: Callable[[], None]) -> None:
        """Undo :meth:`follow`."""
        with self._lock:
            self._followers.discard(follower)

    def tell(self) -> None:
        """Something has changed: call the followers."""
        with self._lock:
            followers = list(self._followers)
        for follower in followers:
            follower()
