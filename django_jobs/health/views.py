"""Whether the site answers, and whether its jobs get done."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connections
from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from django_jobs import conf
from django_jobs.databases import jobs_database
from django_jobs.operations.status import MOST_HEADS
from django_jobs.sound_rows import sound
from django_jobs.store import django_store

logger = logging.getLogger("django_jobs.health")

View = Callable[[HttpRequest], HttpResponseBase]


def _probe(view: View) -> View:
    """Asked by machines: by GET, without a login, answered afresh; in no transaction of ATOMIC_REQUESTS, which could
    not even begin when the database is away."""
    for alias in connections:
        view = non_atomic_requests(alias)(view)
    return login_not_required(never_cache(require_safe(view)))


@_probe
def live(_request: HttpRequest) -> JsonResponse:
    """200 when the site answers at all. It asks no database: an outage is no reason to restart web processes."""
    return JsonResponse({"status": "ok"})


@_probe
def ready(_request: HttpRequest) -> JsonResponse:
    """200 when jobs get done: 503 when fewer workers are alive than ``DJANGO_JOBS["HEALTH"]`` asks for, when a queue
    has waited for longer than it allows, or when the database does not answer.

    A paused queue may wait. It takes two statements, whatever waits.
    """
    reasons = list(_reasons())
    answer: dict[str, object] = {"status": "failing" if reasons else "ok"}
    if reasons:
        logger.warning("Jobs are not well: %s", "; ".join(reasons))
    if conf.health().details:
        answer["reasons"] = reasons
    return JsonResponse(answer, status=503 if reasons else 200)


def _reasons() -> Iterator[str]:
    rules = conf.health()
    alias = jobs_database()
    store = django_store(alias)
    try:
        now, workers = store.live_workers()
        alive = sum(worker.expires_at >= now for worker in workers)
        if alive < rules.workers:
            yield f"{alive} of {rules.workers} workers {'is' if alive == 1 else 'are'} alive"
        late: dict[str, float] = {}
        for head in store.waiting(MOST_HEADS):
            age = (head.now - head.due).total_seconds()
            limit = rules.queues.get(head.queue_name, rules.late)
            if limit is not None and age > limit:
                late[head.queue_name] = max(age, late.get(head.queue_name, 0.0))
        if late:
            yield from _of_late(alias, late)
    except (DatabaseError, OSError) as error:
        logger.debug("The database does not answer: %s", error)
        yield "the database does not answer"


def _of_late(alias: str, late: dict[str, float]) -> Iterator[str]:
    from django_jobs.models import Queue

    found = Queue.objects.using(alias).filter(paused_at__isnull=False, name__in=late).only("name")
    paused = {row.name for row in sound(found)}
    for name, age in sorted(late.items()):
        if name not in paused:
            yield f"queue {name} has waited for {age:.0f} s"
