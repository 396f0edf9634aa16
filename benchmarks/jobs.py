"""The jobs that are run."""

from __future__ import annotations

import socket
import time

from django_jobs import job


@job
def noop(n: int) -> None:
    """Do nothing: what remains is the cost of the queue."""


@job
def touch(queue_name: str) -> None:
    """Update a row by the ORM."""
    from django.utils import timezone

    from django_jobs.models import Queue

    Queue.objects.filter(name=queue_name).update(updated_at=timezone.now())


@job
def tell_start(address: str) -> None:
    """Tell a socket of this host when the job started."""
    now = time.time()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(repr(now).encode(), address)
