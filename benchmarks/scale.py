"""Whether the history's length is felt."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from benchmarks.core.commands import Benchmark, numbers, say, site
from benchmarks.core.databases import Database
from benchmarks.core.history import fill
from benchmarks.core.meters import Meter
from benchmarks.core.output import Column, Row

BATCH = 50
FAILED = 100  # one in so many failed


class Scale(Benchmark):
    """Whether the history's length is felt: claim and finish of 50 jobs, the admin's list of jobs (all, and those that
    failed), and the counts of all queues, with ever more finished jobs in the table. Medians in milliseconds.
    PostgreSQL does not wait for the disk at COMMIT (synchronous_commit = off): that wait would hide the rest.
    """

    name = "scale"
    columns: ClassVar = (
        Column("database", "database"),
        Column("rows", "rows of history"),
        Column("claim_ms", "claim 50, ms", ".2f"),
        Column("finish_ms", "finish 50, ms", ".2f"),
        Column("enqueue_ms", "enqueue, ms", ".2f"),
        Column("admin_ms", "admin list, ms", ".1f"),
        Column("failed_ms", "admin list of failed, ms", ".1f"),
        Column("stats_ms", "stats, ms", ".1f"),
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--rows",
            type=numbers,
            default=[10_000, 100_000, 1_000_000, 10_000_000],
            metavar="N,...",
            help="of history, ascending; default: 10000,100000,1000000,10000000 (the last takes some GB of disk)",
        )
        parser.add_argument("--calls", type=int, default=50, help="of claim and finish; default: 50")
        parser.add_argument("--pages", type=int, default=5, help="of the admin, and stats; default: 5")

    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        with site(database, durable=False) as meter:
            scale = Sizes(meter, options.calls, options.pages)
            return [scale.at(count) for count in sorted(options.rows)]


class Sizes:
    """The table, growing."""

    def __init__(self, meter: Meter, calls: int, pages: int) -> None:
        from django.contrib.auth.models import User
        from django.test import Client

        from django_jobs.store import own_store

        self.meter, self.calls, self.pages = meter, calls, pages
        self.count = 0
        self.store = own_store("default")
        self.client = Client()
        self.client.force_login(User.objects.create_superuser("admin"))

    def at(self, count: int) -> Row:
        """Measure with so many rows of history."""
        more = count - self.count
        fill(self.meter, more - more // FAILED)
        fill(self.meter, more // FAILED, "failed", error_class="'ValueError'")
        self.count = count
        self.meter.settle()
        row = {"rows": count, **self.claim_and_finish(), **self.reads()}
        say(", ".join(f"{key} {value:,.2f}" for key, value in row.items()))
        return row

    def claim_and_finish(self) -> Row:
        """By batches."""
        from benchmarks.jobs import noop
        from django_jobs.store.outcomes import COMPLETED
        from django_jobs.store.rows import JobRow, Outcome

        store = self.store
        worker = store.register_worker("host", 1, '["*"]', 10, "1", 86_400.0).id
        enqueues = timed(noop.enqueue, range(self.calls))
        noop.enqueue_many([(n,) for n in range((BATCH - 1) * self.calls)])
        claimed: list[list[JobRow]] = []
        claims = timed(lambda _: claimed.append(store.claim(worker, "default", BATCH)), range(self.calls))
        finishes = timed(
            lambda jobs: store.finish([Outcome(job.id, job.claims, COMPLETED) for job in jobs]), claimed
        )
        assert all(len(jobs) == BATCH for jobs in claimed)
        store.stop_worker(worker)
        return {"claim_ms": claims, "finish_ms": finishes, "enqueue_ms": enqueues}

    def reads(self) -> Row:
        """What people look at."""
        from django_jobs import operations

        return {
            "admin_ms": timed(self.page, ["", *[""] * self.pages]),
            "failed_ms": timed(self.page, ["?state=failed"] * self.pages),
            "stats_ms": timed(lambda _: operations.stats(), range(self.pages)),
        }

    def page(self, query: str) -> None:
        """The list of jobs in the admin."""
        from django.urls import reverse

        response = self.client.get(reverse("admin:django_jobs_job_changelist") + query, follow=True)
        assert response.status_code == 200, response.status_code


def timed(call: Callable[[Any], object], things: Sequence[Any]) -> float:
    """The median of so many calls, in milliseconds."""
    times = []
    for thing in things:
        began = time.perf_counter()
        call(thing)
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


BENCHMARK = Scale()
