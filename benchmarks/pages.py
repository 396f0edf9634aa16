"""What each page of the admin takes, of a table with very many jobs."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlencode

from benchmarks.core.commands import Benchmark, say, site
from benchmarks.core.databases import Database
from benchmarks.core.meters import Meter
from benchmarks.core.output import Column, Row
from benchmarks.core.shop import AREAS, ERRORS, NAMES, fill_shop

WARM = 1  # calls that are not counted
MOST_PLACES = 3  # pages of a list that are gone on to
TABS = ("", "pending", "scheduled", "available", "running", "completed", "failed", "cancelled")
QUESTIONS = "questions before actions"


class Pages(Benchmark):
    """What each page of the admin takes, and the views that machines ask: with ten million jobs of forty names in eight
    queues, in every state and with errors, arguments and tags, and a month of statistics. Each page is fetched by
    Django's test client, so the time is the server's: from the request to the last byte, with middleware and templates,
    and without a network. Medians of warm calls, in milliseconds.
    """

    name = "pages"
    columns: ClassVar = (
        Column("database", "database"),
        Column("kind", "kind of page"),
        Column("pages", "pages"),
        Column("ms", "median, ms", ".0f"),
        Column("slowest", "slowest of them"),
        Column("slowest_ms", "its median, ms", ".0f"),
        Column("statements", "statements"),
        Column("kb", "kB"),
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--rows",
            type=int,
            default=10_000_000,
            help="of jobs; default: 10000000 (which take some GB of disk)",
        )
        parser.add_argument("--calls", type=int, default=5, help="of each page; default: 5")
        parser.add_argument(
            "--unsettled",
            action="store_true",
            help="without VACUUM and ANALYZE after the table is filled: the planner knows nothing of it, and no "
            "page of it is known to be visible to all",
        )
        parser.add_argument("--only", metavar="TEXT", help="pages with this in their name")
        parser.add_argument("--each", action="store_true", help="a line for each page, not for each kind")

    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        with site(database, durable=False) as meter:
            began = time.monotonic()
            self.prepare(meter, options)
            say(f"{options.rows:,} jobs: {time.monotonic() - began:.0f} s")
            rows = list(measured(options.calls, options.only))
            return rows if options.each else kinds(rows)

    def prepare(self, meter: Meter, options: argparse.Namespace) -> None:
        """Fill the tables."""
        if options.unsettled and hasattr(meter, "has_statements"):
            meter.run("ALTER TABLE django_jobs_job SET (autovacuum_enabled = off)")
        fill_shop(meter, options.rows)
        if not options.unsettled:
            meter.settle()


class Page(NamedTuple):
    """A page.

    :param kind: of the pages that are told together.
    :param get: fetches it.
    """

    kind: str
    name: str
    get: Callable[[], Any]


def measured(calls: int, only: str | None) -> Iterator[Row]:
    """A row for each page."""
    visitor = Visitor()
    for page in visitor.pages():
        if only is not None and only not in f"{page.kind}, {page.name}":
            continue
        times, response = [], None
        for number in range(WARM + calls):
            visitor.statements = 0
            began = time.perf_counter()
            response = page.get()
            if number >= WARM:
                times.append(1000 * (time.perf_counter() - began))
        assert response is not None
        assert response.status_code in (200, 503), (page.name, response.status_code)
        row = {
            "kind": page.kind,
            "pages": 1,
            "ms": statistics.median(times),
            "slowest": page.name,
            "slowest_ms": statistics.median(times),
            "statements": visitor.statements,
            "kb": len(response.content) / 1000,
        }
        say(f"{page.kind}, {page.name}: {row['ms']:.0f} ms")
        yield row


def kinds(rows: Sequence[Row]) -> list[Row]:
    """A row for each kind of page: the median of its pages, and the slowest of them."""
    found = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        those = [row for row in rows if row["kind"] == kind]
        slowest = max(those, key=lambda row: row["ms"])
        found.append(
            {
                "kind": kind,
                "pages": len(those),
                "ms": statistics.median(row["ms"] for row in those),
                "slowest": slowest["slowest"],
                "slowest_ms": slowest["ms"],
                "statements": max(row["statements"] for row in those),
                "kb": max(row["kb"] for row in those),
            }
        )
    return found


class Visitor:
    """A superuser, who looks at everything."""

    def __init__(self) -> None:
        from django.contrib.auth.models import User
        from django.db import connection
        from django.test import Client

        self.client = Client()
        self.client.force_login(User.objects.create_superuser("admin"))
        self.statements = 0
        connection.execute_wrappers.append(self.count)

    def count(self, execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        """Count a statement."""
        self.statements += 1
        return execute(sql, params, many, context)

    def pages(self) -> Iterator[Page]:
        """All of them."""
        for period in ("hour", "day", "week"):
            yield self.page("overview", f"last {period}", "job_overview", period=period)
        yield from self.tabs()
        yield from self.filters()
        yield from self.searches()
        yield from self.rows()
        yield self.page("failures", "all groups", "job_failures")
        for name in ("queue", "worker", "schedule"):
            yield self.page(f"{name}s", "all", f"{name}_changelist")
        yield from self.questions()
        for name in ("health/live", "health/ready", "metrics"):
            yield Page("for machines", f"/{name}", self.getter(f"/{name}"))

    def tabs(self) -> Iterator[Page]:
        """The list of jobs, in each state: its first page, some behind it, and the way back."""
        for state in TABS:
            name = state or "all"
            first = self.url("job_changelist", state=state)
            yield Page("jobs: tabs", name, self.getter(first))
            response = self.getter(first)()
            for number in range(2, MOST_PLACES + 2):
                address = response.context_data["next_url"]
                if address is None:
                    break
                get = self.getter(self.url("job_changelist") + address)
                yield Page("jobs: next page", f"{name}, page {number}", get)
                response = get()
                back = self.url("job_changelist") + response.context_data["previous_url"]
                yield Page("jobs: page before", f"{name}, from page {number}", self.getter(back))

    def filters(self) -> Iterator[Page]:
        """The list by each filter."""
        given: dict[str, dict[str, Any]] = {
            "queue": {"queue": AREAS[0]},
            "a rare queue": {"queue": AREAS[-1]},
            "name": {"name": NAMES[0]},
            "a name that no job has": {"name": "shop.none"},
            "worker": {"worker": self.newest("worker")},
            "priority": {"priority": "10"},
            "since": {"since": "1h"},
            "error": {"error": ERRORS[0]},
            "tag": {"tag": "tenant-7"},
            "queue, name and priority": {"queue": AREAS[0], "name": NAMES[0], "priority": "10"},
        }
        for name, query in given.items():
            for state in ("", "completed", "failed", "available"):
                yield self.page(
                    "jobs: filters", f"{state or 'all'}, {name}", "job_changelist", state=state, **query
                )

    def searches(self) -> Iterator[Page]:
        """The list by what is searched, in what has its place in a row and in arguments."""
        words = {
            "an id": self.newest("job") // 2,
            "part of a name": "mail.se",
            "a tag": "tenant-7",
            "a unique key": "order:50",
            "what no job has": "nowhere to be found",
        }
        for name, text in words.items():
            for state in ("", "completed", "available"):
                yield self.page(
                    "jobs: search", f"{state or 'all'}, {name}", "job_changelist", q=text, state=state
                )
        arguments = {
            "a text in all": "neighbours",
            "a text in some": "customer7",
            "a number": "4711",
            "name=value": "order=4711",
            "what no job has": "nowhere to be found",
        }
        for name, text in arguments.items():
            for state in ("", "completed", "failed", "available", "scheduled"):
                query = {"q": text, "state": state, "in": "arguments"}
                yield self.page(
                    "jobs: search in arguments", f"{state or 'all'}, {name}", "job_changelist", **query
                )

    def rows(self) -> Iterator[Page]:
        """The pages of one job, queue, worker and schedule."""
        from django_jobs.models import Job

        for state in TABS[1:]:
            ids = Job.objects.filter(state=state).order_by("-id").values_list("id", flat=True)
            yield self.page("a job", state, "job_change", ids[0])
        keyed = Job.objects.filter(id__lte=1000, unique_key__isnull=False).values_list("id", flat=True)
        yield self.page("a job", "with a unique key", "job_change", keyed[0])
        yield self.page("a job", "of a schedule", "job_change", 500)
        scheduled = Job.objects.filter(state="scheduled").order_by("-id").values_list("id", flat=True)
        yield self.page("a job", "edit", "job_edit", scheduled[0])
        for period in ("hour", "day", "week"):
            yield self.page("a queue", f"last {period}", "queue_change", AREAS[0], period=period)
        yield self.page("a worker", "a busy one", "worker_change", self.newest("worker"))
        yield self.page("a schedule", "with a last job", "schedule_change", self.newest("schedule"))

    def questions(self) -> Iterator[Page]:
        """What is asked before something is done."""
        from django_jobs.models import Job

        for action in ("retry", "cancel", "delete", "run_now", "release", "update"):
            yield self.question(f"{action} all", action)
        yield self.question("retry all of a name that failed", "retry", state="failed", name=NAMES[0])
        yield self.question("delete all of an error", "delete", state="failed", error=ERRORS[0])
        yield self.question("cancel all of a rare queue", "cancel", state="available", queue=AREAS[-1])
        text = {"q": "customer", "in": "arguments"}
        yield self.question("retry all with a text in their arguments", "retry", state="failed", **text)
        selected = list(Job.objects.filter(state="failed").order_by("-id").values_list("id", flat=True)[:50])
        fields = {"scope": "selected", "job": selected}
        yield Page(QUESTIONS, "delete 50 selected", lambda: self.act("delete", fields))
        yield self.page(QUESTIONS, "purge a queue", "queue_purge", queue=AREAS[0])
        yield self.page(QUESTIONS, "stop a worker", "worker_stop", self.newest("worker"))

    def newest(self, model: str) -> int:
        """The id of the newest row."""
        from django.apps import apps

        return int(
            apps.get_model("django_jobs", model).objects.order_by("-pk").values_list("pk", flat=True)[0]
        )

    def question(self, name: str, action: str, /, **query: str) -> Page:
        """The question before something is done to all that match."""
        fields = {"scope": "all", "query": urlencode(query), "to_priority": "5"}
        return Page(QUESTIONS, name, lambda: self.act(action, fields))

    def act(self, action: str, fields: dict[str, Any]) -> Any:
        """Send a form with an action."""
        return self.client.post(self.url("job_act"), {"action": action, **fields})

    def page(self, kind: str, name: str, view: str, /, *args: Any, **query: Any) -> Page:
        """A page by the name of its view."""
        return Page(kind, name, self.getter(self.url(view, *args, **query)))

    def getter(self, address: str) -> Callable[[], Any]:
        """What fetches an address."""
        return lambda: self.client.get(address)

    def url(self, view: str, /, *args: Any, **query: Any) -> str:
        """An address of the admin."""
        from django.urls import reverse

        given = {name: value for name, value in query.items() if value != ""}
        return reverse(f"admin:django_jobs_{view}", args=args) + (f"?{urlencode(given)}" if given else "")


BENCHMARK = Pages()
