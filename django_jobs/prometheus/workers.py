"""Metrics of a worker, or of the workers under one supervisor, by their snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from django_jobs.worker.measures import BOUNDS, Snapshot
from django_jobs.worker.ports import Answer

HELP = {
    "statements": "Statements of the worker's own parts.",
    "connects": "Connections that the worker's own parts have opened.",
    "timed_out": "Attempts that took longer than their timeout.",
    "dropped": "Outcomes of claims that were no longer the worker's.",
    "running": "Jobs that run now.",
    "executors": "Jobs that can run at once.",
    "processes": "Processes that run jobs.",
    "memory_bytes": "Memory that the processes hold.",
    "clock_skew_seconds": "Seconds that this host's clock is ahead of the database's.",
}


class OfWorkers(Collector):
    """The metrics of a snapshot.

    :param snapshot: takes one.
    """

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        """The metrics, as of now."""
        snapshot = self._snapshot()
        attempts = CounterMetricFamily(
            "django_jobs_worker_attempts",
            "Attempts that ended, by outcome.",
            labels=["queue", "name", "outcome"],
        )
        for *labels, count in snapshot["attempts"]:
            attempts.add_metric(labels, count)
        yield attempts
        yield _histogram(
            "django_jobs_worker_run_seconds",
            "How long attempts took that completed or failed.",
            snapshot["runs"],
        )
        yield _histogram(
            "django_jobs_worker_wait_seconds",
            "How long they had been due when they were claimed.",
            snapshot["waits"],
        )
        for name, value in snapshot["counters"].items():
            counter = CounterMetricFamily(f"django_jobs_worker_{name}", HELP.get(name, name))
            counter.add_metric([], value)
            yield counter
        for name, value in snapshot["gauges"].items():
            yield GaugeMetricFamily(f"django_jobs_worker_{name}", HELP.get(name, name), value=value)


def _histogram(name: str, help_: str, rows: Iterable[tuple[str, str, list[float]]]) -> Metric:
    family = HistogramMetricFamily(name, help_, labels=["queue", "name"])
    edges = [*map(str, BOUNDS), "+Inf"]
    for queue_name, job_name, (*buckets, total) in rows:
        family.add_metric([queue_name, job_name], [*zip(edges, accumulate(buckets), strict=True)], total)
    return family


class _Together:
    """Several collectors, as a registry is to its encoder."""

    def __init__(self, *collectors: Collector) -> None:
        self._collectors = collectors

    def collect(self) -> Iterator[Metric]:
        """All of their metrics."""
        for collector in self._collectors:
            yield from collector.collect()


def page(snapshot: Callable[[], Snapshot]) -> Callable[[str], Answer]:
    """The page ``/metrics``: the worker's metrics, and those of the process and of its jobs, which are in
    prometheus-client's own registry."""
    together = _Together(OfWorkers(snapshot), REGISTRY)

    def answer(accept: str) -> Answer:
        encode, content_type = choose_encoder(accept)
        return Answer(200, content_type, encode(together))

    return answer
