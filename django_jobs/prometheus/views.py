"""The view of the stored state."""

from __future__ import annotations

from django.db import connections
from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry

from django_jobs.prometheus.stored import StoredState


@never_cache
@require_safe
def stored_state(request: HttpRequest) -> HttpResponse:
    """What the database holds, for a scraper. It tells the names of queues: keep it from the public.

    With LoginRequiredMiddleware wrap it in ``login_not_required`` where the scraper has no login.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StoredState())
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(registry), content_type=content_type)


for _alias in connections:
    # A transaction of ATOMIC_REQUESTS could not begin when the database is away, and that is worth telling.
    stored_state = non_atomic_requests(_alias)(stored_state)
