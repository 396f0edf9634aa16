"""The health views, to be included: ``path("jobs/health/", include("django_jobs.health.urls"))``."""

from django.urls import path

from django_jobs.health.views import live, ready

app_name = "django_jobs_health"

urlpatterns = [
    path("live", live, name="live"),
    path("ready", ready, name="ready"),
]
