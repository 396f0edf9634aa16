"""Views for load balancers, orchestrators and monitors: whether the site answers, and whether its jobs get done.

::

    path("jobs/health/", include("django_jobs.health.urls")),   # .../live and .../ready

Both take no login and tell nobody more than "ok" or "failing", unless ``DJANGO_JOBS["HEALTH"]`` says so.
"""

from django_jobs.health.views import live, ready

__all__ = ["live", "ready"]
