"""The operations room: what its pages share. Sections, the shell around a page, who may see and do what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _

from django_jobs.admin.log import told
from django_jobs.admin.readonly import ReadOnlyAdmin
from django_jobs.databases import jobs_database
from django_jobs.sound_rows import sound_one

# The script asks with this header for a page again; the answer is what changes of it, without the shell around it.
LIVE_HEADER = "X-Django-Jobs-Live"

SHELL = "admin/django_jobs/base.html"
FRAGMENT = "admin/django_jobs/fragment.html"


class Section(NamedTuple):
    """An entry of the room's navigation."""

    key: str
    title: str | Promise
    url_name: str  # within the admin's namespace
    permission: str


SECTIONS = (
    Section("overview", _("Overview"), "django_jobs_job_overview", "django_jobs.view_job"),
    Section("jobs", _("Jobs"), "django_jobs_job_changelist", "django_jobs.view_job"),
    Section("failures", _("Failures"), "django_jobs_job_failures", "django_jobs.view_job"),
    Section("queues", _("Queues"), "django_jobs_queue_changelist", "django_jobs.view_queue"),
    Section("workers", _("Workers"), "django_jobs_worker_changelist", "django_jobs.view_worker"),
    Section("schedules", _("Schedules"), "django_jobs_schedule_changelist", "django_jobs.view_schedule"),
)


class RoomAdmin(ReadOnlyAdmin):
    """A model whose pages are the room's own: views that render a template within its shell.

    ``section`` is the entry of the navigation that its pages belong to, unless one says otherwise.
    """

    section = "jobs"

    # -- what Django calls -------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows for Django's own page, that of what operators did: from where jobs are written, as all others."""
        return super().get_queryset(request).using(jobs_database())

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The row for that page, whatever it holds."""
        return sound_one(self.get_queryset(request).filter(pk=self.id_of(object_id)))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of all rows, for who may see them."""
        self.must(request, self.view_permission)
        return self.list_page(request, extra_context or {})

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of one row, for who may see it; nothing is changed by hand."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        self.must(request, self.view_permission)
        return self.one_page(request, object_id, extra_context or {})

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """What operators did to a row: Django's page, with what was done in the room's words."""
        response = super().history_view(request, object_id, extra_context)
        if isinstance(response, TemplateResponse) and response.context_data is not None:
            entries: Page[LogEntry] = response.context_data["action_list"]
            entries.object_list = told(entries.object_list)
        return response

    @property
    def view_permission(self) -> str:
        """What it takes to see these rows."""
        return f"django_jobs.view_{self.opts.model_name}"

    # -- what a page fills in ----------------------------------------------------------------------------------------

    def list_page(self, request: HttpRequest, more: dict[str, Any]) -> HttpResponse:
        """The page of all rows.

        :param more: what a subclass of a site adds to the template's context.
        """
        raise NotImplementedError

    def one_page(self, request: HttpRequest, object_id: str, more: dict[str, Any]) -> HttpResponse:
        """The page of one row.

        :param object_id: as it stands in the address.
        """
        raise NotImplementedError

    # -- what pages are made of --------------------------------------------------------------------------------------

    def page(
        self,
        request: HttpRequest,
        template: str,
        title: Any,
        context: dict[str, Any] | None = None,
        *,
        section: str | None = None,
        live: bool = False,
        trail: bool | Sequence[tuple[Any, str]] = False,
        status: int = 200,
    ) -> TemplateResponse:
        """A page of the room.

        :param template: it extends ``shell`` and fills the block ``page``; what is refreshed stands in the block
            ``live`` within it.
        :param live: whether the page is refreshed while it is looked at.
        :param trail: of the breadcrumbs, those between the section and this page: titles and URLs; True: the section
            alone. By default the page is the section's own.
        """
        # What the templates' {% url %} goes by, on a site of another name.
        request.current_app = self.admin_site.name
        section = section or self.section
        fragment = live and request.headers.get(LIVE_HEADER) is not None
        response = TemplateResponse(
            request,
            template,
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": title,
                "shell": FRAGMENT if fragment else SHELL,
                "live": live,
                "now": timezone.now(),
                "section": section,
                "sections": list(self.sections(request, section)),
                "is_within": bool(trail),
                "trail": [] if isinstance(trail, bool) else trail,
                **(context or {}),
            },
            status=status,
            headers={"Cache-Control": "no-store"} if live else None,
        )
        if live:
            response["Vary"] = f"{LIVE_HEADER}, Cookie"
        return response

    def sections(self, request: HttpRequest, current: str) -> Iterator[dict[str, Any]]:
        """The navigation as this user has it."""
        for section in SECTIONS:
            if may(request, section.permission) or may(
                request, section.permission.replace(".view", ".change")
            ):
                try:
                    url = self.url(section.url_name)
                except NoReverseMatch:  # a site of the admin's kind that has not all of these models
                    continue
                yield {
                    "title": section.title,
                    "url": url,
                    "current": section.key == current,
                    "key": section.key,
                }

    def url(self, name: str, *args: Any) -> str:
        """The address of a view of this admin site: ``url("django_jobs_job_change", 7)``."""
        return reverse(f"admin:{name}", args=args, current_app=self.admin_site.name)

    def queue_url(self, name: str) -> str:
        """The address of a queue's page; of all queues for the empty name, which only somebody's SQL can write."""
        if not name:
            return self.url("django_jobs_queue_changelist")
        return self.url("django_jobs_queue_change", quote(name))

    def back(self, request: HttpRequest, default: str) -> HttpResponseRedirect:
        """Back to the page whose form was sent (its field ``next``), or to ``default``."""
        wanted = request.POST.get("next", "")
        safe = url_has_allowed_host_and_scheme(
            wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
        )
        return HttpResponseRedirect(wanted if safe and wanted.startswith("/") else default)

    def id_of(self, text: str) -> int:
        """The id in an address. Raises Http404."""
        if text.isascii() and text.isdigit() and len(text) < 19:
            return int(text)
        raise Http404

    def must(self, request: HttpRequest, permission: str) -> None:
        """Stop who lacks a permission. Raises PermissionDenied."""
        if not may(request, permission):
            raise PermissionDenied


def may(request: HttpRequest, permission: str) -> bool:
    """Whether the user of a request has a permission (``django_jobs.pause_queue``)."""
    user = request.user
    return user.is_active and user.is_staff and user.has_perm(permission)
