"""The list of jobs: a tab for each state, filters, a search, and places to go on from, however long it is."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _, pgettext_lazy

from django_jobs import operations
from django_jobs.admin.job_actions import ActionsPage
from django_jobs.admin.job_lines import JobLine
from django_jobs.admin.job_query import ARGUMENTS, SINCE, JobQuery
from django_jobs.job_registry import registry
from django_jobs.operations import InvalidFilter
from django_jobs.operations.filters import STATES
from django_jobs.operations.searching import WINDOW
from django_jobs.states import State
from django_jobs.store.rows import JobRow

PAGE = 50
LOOKS = 20_000  # jobs that one page looks at
MOST_FOUND, MOST_READ = 100, 1000  # by their arguments

# What a column is called, and of which tabs it is; the tab of all jobs is "".
COLUMNS: dict[str, tuple[str | Promise, tuple[str, ...]]] = {
    "state": (_("state"), ("", State.SCHEDULED)),
    "queue": (_("queue"), ("", *STATES)),
    "priority": (_("priority"), (State.PENDING, State.SCHEDULED, State.AVAILABLE)),
    "attempt": (_("attempt"), ("", *STATES)),
    "progress": (_("progress"), (State.RUNNING,)),
    "worker": (_("worker"), (State.RUNNING,)),
    "created": (_("enqueued"), ("", State.PENDING)),
    "when": (pgettext_lazy("column: when it was due, began or ended", "when"), ("",)),
    "due": (_("due"), (State.SCHEDULED, State.AVAILABLE)),
    "began": (_("began"), (State.RUNNING,)),
    "ended": (_("ended"), (State.COMPLETED, State.FAILED, State.CANCELLED)),
    "waited": (_("waited"), (State.AVAILABLE, State.COMPLETED)),
    "took": (_("took"), (State.COMPLETED, State.FAILED)),
}
ORDERS: dict[str, str | Promise] = {
    "": _("The newest first."),
    State.PENDING: _("The newest first."),
    State.SCHEDULED: _("Those due first come first."),
    State.AVAILABLE: _("By queue, as they will be claimed."),
    State.RUNNING: _("By worker."),
    State.COMPLETED: _("Those that ended last come first."),
    State.FAILED: _("Those that ended last come first."),
    State.CANCELLED: _("Those that ended last come first."),
}


class Found(NamedTuple):
    """The jobs of a page.

    :param after: where the next page begins; None on the last.
    :param searched: among how many jobs arguments were searched, if they were.
    :param is_cut: whether more were found than are shown.
    :param is_short: whether the page looked at as many jobs as it may before it was full.
    """

    jobs: list[JobRow]
    after: str | None = None
    searched: int | None = None
    is_cut: bool = False
    is_short: bool = False
    searched_all: bool = True


class JobsPage(ActionsPage):
    """The list of jobs, as the view of their admin."""

    def list_page(self, request: HttpRequest, more: dict[str, Any]) -> HttpResponse:
        """Show a page of it. Nine statements at most, beside those for the session and the user."""
        query = JobQuery(request.GET)
        found = self.found(query)
        counts = operations.counts()
        lines = [JobLine(job, query.now) for job in found.jobs]
        tab = "" if query.id is not None else query.state
        columns = [(key, title) for key, (title, tabs) in COLUMNS.items() if tab in tabs]
        context = {
            "query": query,
            "found": found,
            "lines": lines,
            "columns": columns,
            "order": ORDERS[tab],
            "tabs": [
                {"title": _("All"), "url": query.tab(""), "current": tab == "", "count": None},
                *(
                    {
                        "title": state.label,
                        "url": query.tab(state),
                        "current": tab == state,
                        "count": counts[state],
                    }
                    for state in State
                ),
            ],
            "actions": self.actions_for(request, tab) if query.is_valid else [],
            "names": sorted(definition.name for definition in registry),
            "queues": sorted(registry.queue_names()),
            "since": SINCE,
            "since_is_other": query.values.get("since", "") not in dict(SINCE),
            "window": WINDOW,
            "looks": LOOKS,
            "next_url": query.next_page(found.after) if found.after else None,
            "previous_url": query.previous_page(),
            "arguments_url": None
            if query.searches_arguments or not query.search
            else query.address(**{"in": ARGUMENTS}),
        }
        return self.page(
            request,
            "admin/django_jobs/jobs.html",
            _("Jobs"),
            {**context, **more},
            live=not query.searches_arguments,
        )

    def found(self, query: JobQuery) -> Found:
        """The jobs of the page. Eight statements at most."""
        if not query.is_valid:
            return Found([])
        try:
            if query.searches_arguments:
                matches = operations.search_arguments(
                    query.filter, query.search, limit=MOST_FOUND, reads=MOST_READ, whole=False
                )
                return Found(
                    matches.jobs, None, matches.searched, is_cut=matches.cut, searched_all=not matches.more
                )
            page = operations.list_jobs(query.filter, limit=PAGE, after=query.after, looks=LOOKS, whole=False)
        except InvalidFilter as error:
            query.errors.append(error.translated)
            return Found([])
        return Found(page.jobs, page.next, is_short=page.next is not None and len(page.jobs) < PAGE)
