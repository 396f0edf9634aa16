"""Metrics for Prometheus; needs the extra ``prometheus``: ``pip install "django-runjobs[prometheus]"``.

Of what the database holds, for one scrape target whatever the number of workers::

    path("jobs/metrics", django_jobs.prometheus.stored_state),

Or, beside metrics of the site's own: ``prometheus_client.REGISTRY.register(StoredState())``. A worker's own counters
and histograms are served by ``manage.py runjobs --metrics-port 9100``.
"""

from django.core.exceptions import ImproperlyConfigured

try:
    import prometheus_client as _installed  # noqa: F401
except ImportError as error:
    raise ImproperlyConfigured(
        'django_jobs.prometheus needs prometheus-client: pip install "django-runjobs[prometheus]"'
    ) from error

from django_jobs.prometheus.stored import StoredState
from django_jobs.prometheus.views import stored_state

__all__ = ["StoredState", "stored_state"]
