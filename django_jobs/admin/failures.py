"""What failed for good: dead letters by job and exception, over windows of time, to retry or to delete as a group."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _

from django_jobs import operations
from django_jobs.admin.job_actions import ActionsPage
from django_jobs.operations import Failures
from django_jobs.states import State

MOST = 200  # groups
WINDOWS = (("hour", "1h", _("1 hour")), ("day", "24h", _("24 hours")), ("week", "7d", _("7 days")))
# By what the groups can be sorted; what is greatest comes first.
ORDERS: dict[str, Any] = {
    "last": lambda group: group.last_seen,
    "hour": lambda group: (group.hour, group.last_seen),
    "day": lambda group: (group.day, group.last_seen),
    "week": lambda group: (group.week, group.last_seen),
    "there": lambda group: (int(group.there), group.last_seen),
}


class Window(NamedTuple):
    """A number of dead letters, and the list of those that are still there."""

    title: Any
    number: int
    query: str


class Group:
    """The dead letters of one job and one exception, as the page shows them."""

    def __init__(self, failures: Failures) -> None:
        self.failures = failures

    @property
    def short_class(self) -> str:
        """The exception without its module."""
        return self.failures.error_class.rpartition(".")[2]

    def address(self, since: str = "") -> str:
        """The list of those that are still there."""
        pairs = {
            "state": str(State.FAILED),
            "name": self.failures.name,
            "error": self.failures.error_class,
            "since": since,
        }
        return f"?{urlencode({key: value for key, value in pairs.items() if value}, errors='replace')}"

    @property
    def query(self) -> str:
        """The list of all of them."""
        return self.address()

    @property
    def windows(self) -> list[Window]:
        """The numbers within each window of time."""
        return [
            Window(title, getattr(self.failures, name), self.address(since)) for name, since, title in WINDOWS
        ]

    @property
    def is_actionable(self) -> bool:
        """Whether a list can be of just these: one without an exception can't be told from others."""
        return bool(self.failures.error_class and self.failures.there)


class FailuresPage(ActionsPage):
    """The page, as a view of the admin of jobs."""

    def get_urls(self) -> list[URLPattern]:
        """Its own, before what the class behind has."""
        view = self.admin_site.admin_view(self.failures_view)
        return [path("failures/", view, name="django_jobs_job_failures"), *super().get_urls()]

    def failures_view(self, request: HttpRequest) -> TemplateResponse:
        """Show it. Two statements, beside those for the session and the user."""
        self.must(request, "django_jobs.view_job")
        by = request.GET.get("by", "last")
        if by not in ORDERS:
            by = "last"
        found = operations.failures(limit=MOST)
        groups = [Group(each) for each in sorted(found, key=ORDERS[by], reverse=True)]
        context = {
            "groups": groups,
            "by": by,
            "windows": WINDOWS,
            "is_cut": len(found) == MOST,
            "most": MOST,
            "actions": [
                action
                for action in self.actions_for(request, State.FAILED)
                if action.name in ("retry", "delete")
            ],
            "list_url": self.url("django_jobs_job_changelist"),
        }
        return self.page(
            request, "admin/django_jobs/failures.html", _("Failures"), context, section="failures", live=True
        )
