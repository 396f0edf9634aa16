"""The overview: how it goes, in numbers, charts and words."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _

from django_jobs.admin.room import RoomAdmin


class OverviewPage(RoomAdmin):
    """The overview, as a view of the admin of jobs."""

    def get_urls(self) -> list[URLPattern]:
        """The overview's, before what the class behind has."""
        view = self.admin_site.admin_view(self.overview)
        return [path("overview/", view, name="django_jobs_job_overview"), *super().get_urls()]

    def overview(self, request: HttpRequest) -> TemplateResponse:
        """Show it."""
        self.must(request, "django_jobs.view_job")
        context: dict[str, Any] = {}
        return self.page(
            request, "admin/django_jobs/overview.html", _("Overview"), context, section="overview", live=True
        )
