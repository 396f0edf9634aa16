"""Metrics of what the database holds: jobs, queues, workers."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from django.db import DatabaseError
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from django_jobs.databases import jobs_database
from django_jobs.operations import counts
from django_jobs.operations.status import COUNTED, queues_of
from django_jobs.store import django_store

logger = logging.getLogger("django_jobs.prometheus")

# So many queues have metrics of their own, those with most waiting jobs.
MOST_QUEUES = 500


class StoredState(Collector):
    """Reads the numbers behind the admin's pages at each scrape: eight statements, each bounded.

    :param using: the alias of the database that holds the jobs; by default the one that is set.
    """

    def __init__(self, using: str | None = None) -> None:
        self.using = using

    def describe(self) -> Iterator[Metric]:
        """Nothing, so that to register it asks no database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """The metrics. When the database does not answer, ``django_jobs_up`` alone, with 0."""
        up = GaugeMetricFamily("django_jobs_up", "Whether the database that holds the jobs answers.")
        try:
            families = [*self._jobs(), *self._queues_and_workers()]
        except (DatabaseError, OSError) as error:
            logger.warning("The stored state can't be read: %s", error)
            families = []
        up.add_metric([], 1.0 if families else 0.0)
        return iter([up, *families])

    def _jobs(self) -> Iterator[Metric]:
        jobs = GaugeMetricFamily(
            "django_jobs_jobs",
            "Jobs by state, 10000 at most of each: more are not counted.",
            labels=["state"],
        )
        for state, count in counts(using=self.using).items():
            jobs.add_metric([state], count)
        yield jobs

    def _queues_and_workers(self) -> Iterator[Metric]:
        alias = jobs_database(self.using)
        store = django_store(alias)
        now, workers = store.live_workers()
        alive = [worker for worker in workers if worker.expires_at >= now]
        queues = sorted(queues_of(store, alias, workers), key=lambda queue: queue.available, reverse=True)

        jobs = GaugeMetricFamily(
            "django_jobs_queue_jobs",
            "Jobs of a queue by state, counted up to a bound.",
            labels=["queue", "state"],
        )
        oldest = GaugeMetricFamily(
            "django_jobs_queue_oldest_seconds",
            "Since when the longest due of the available jobs is due; 0 when none is available.",
            labels=["queue"],
        )
        recent = GaugeMetricFamily(
            "django_jobs_queue_recent_attempts",
            "Attempts that ended in the last five minutes, by outcome.",
            labels=["queue", "outcome"],
        )
        serving = GaugeMetricFamily(
            "django_jobs_queue_workers", "Workers that take jobs of the queue.", labels=["queue"]
        )
        paused = GaugeMetricFamily(
            "django_jobs_queue_paused", "Whether the queue is paused.", labels=["queue"]
        )
        for queue in queues[:MOST_QUEUES]:
            for state in COUNTED:
                jobs.add_metric([queue.name, state], getattr(queue, state))
            oldest.add_metric([queue.name], queue.oldest or 0.0)
            for outcome, number in (
                ("completed", queue.completed), ("failed", queue.dead), ("retried", queue.retried),
            ):  # fmt: skip
                recent.add_metric([queue.name, outcome], number)
            serving.add_metric([queue.name], len(queue.workers))
            paused.add_metric([queue.name], queue.paused_at is not None)
        yield from (jobs, oldest, recent, serving, paused)

        yield GaugeMetricFamily("django_jobs_workers", "Workers that are alive.", value=len(alive))
        yield GaugeMetricFamily(
            "django_jobs_workers_late",
            "Workers whose lease has run out and who are not taken for lost yet.",
            value=len(workers) - len(alive),
        )
        yield GaugeMetricFamily(
            "django_jobs_executors",
            "Jobs that the workers which are alive can run at once.",
            value=sum(worker.concurrency for worker in alive),
        )
        yield GaugeMetricFamily(
            "django_jobs_workers_running",
            "Jobs that the workers which are alive run.",
            value=sum(worker.running for worker in alive),
        )
        yield GaugeMetricFamily(
            "django_jobs_clock_skew_seconds",
            "The greatest difference between a worker's clock and the database's.",
            value=max((abs(worker.skew) for worker in alive), default=0.0),
        )
