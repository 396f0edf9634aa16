"""What the worker tells its jobs: that it stops, that they were cancelled, that their claim was lost."""

from __future__ import annotations

from django_jobs.store.rows import ID, WORKER_ID, JobRow


class Signs:
    """Read by jobs in their threads, set by the worker's parts; every field is replaced, never changed."""

    def __init__(self) -> None:
        self.stopping = False
        # The lease has run out unrenewed: whether the claims still hold can't be known.
        self.doubtful = False
        self.worker_id = 0
        self.cancelled: frozenset[int] = frozenset()

    def should_stop(self, job: JobRow) -> bool:
        """Whether this job should end soon."""
        return (
            self.stopping
            or self.doubtful
            or job.values[ID] in self.cancelled
            or job.values[WORKER_ID] != self.worker_id
        )
