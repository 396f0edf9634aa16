"""The pages that are measured: the admin, and what machines ask."""

from django.contrib import admin
from django.urls import include, path

from django_jobs.prometheus.views import stored_state

urlpatterns = [
    path("admin/", admin.site.urls),
    path("health/", include("django_jobs.health.urls")),
    path("metrics", stored_state),
]
