"""The jobs that are run."""

from __future__ import annotations

import time

from django_jobs import job


@job
def noop(n: int) -> None:
    """Do nothing: what remains is the cost of the queue."""


@job
def note_start(enqueued: float, file: str) -> None:
    """Append how long after ``enqueued``, a time of this host, the job started; in seconds, a line each."""
    waited = time.time() - enqueued
    with open(file, "a") as lines:  # noqa: PTH123 - quick
        lines.write(f"{waited:.6f}\n")
