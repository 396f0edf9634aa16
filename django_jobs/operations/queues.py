"""Queues: pausing them, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django_jobs.databases import jobs_database
from django_jobs.exceptions import InvalidJob
from django_jobs.options import check_queue_name
from django_jobs.serialization import NotStorable, encode_storable, shown
from django_jobs.sound_rows import sound
from django_jobs.store import django_store
from django_jobs.store.rows import QueueRow


def pause(queue_name: str, *, using: str | None = None) -> QueueRow:
    """Stop all claims from a queue, within one heartbeat; jobs that run finish."""
    check_queue_name(queue_name, "operations.pause()")
    return django_store(jobs_database(using)).upsert_queue(queue_name, pause=True)


def resume(queue_name: str, *, using: str | None = None) -> QueueRow:
    """Let workers claim from a queue again."""
    check_queue_name(queue_name, "operations.resume()")
    return django_store(jobs_database(using)).upsert_queue(queue_name, pause=False)


def queue(
    queue_name: str, *, metadata: Mapping[str, Any] | None = None, using: str | None = None
) -> QueueRow:
    """A queue's row, which is made if there is none.

    :param metadata: what to note of it (an owner, a link to a page), instead of what is there; None leaves that.
    :raises InvalidJob: for a name that is not allowed, or metadata that JSON can't hold.
    """
    check_queue_name(queue_name, "operations.queue()")
    text = None
    if metadata is not None:
        if not isinstance(metadata, Mapping):
            raise InvalidJob(f"metadata of the queue {queue_name!r} is {shown(metadata)}; it must be a dict.")
        try:
            text = encode_storable(dict(metadata), f"metadata of the queue {queue_name!r}")
        except NotStorable as error:
            raise InvalidJob(str(error)) from None
    return django_store(jobs_database(using)).upsert_queue(queue_name, metadata=text)


def queues(*, using: str | None = None) -> list[QueueRow]:
    """The queues that have a row: those that were ever paused, or have metadata. Others work without one."""
    from django_jobs.models import Queue

    rows = sound(Queue.objects.using(jobs_database(using)).order_by("name"))
    return [QueueRow(row.name, row.paused_at, row.metadata) for row in rows]
