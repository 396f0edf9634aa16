"""Metrics of what the database holds."""

import datetime as dt

import prometheus_client
import pytest
from django.db import OperationalError
from django.urls import path
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry

from django_jobs.models import Queue, Worker
from django_jobs.prometheus import StoredState, stored, stored_state
from tests.test_statistics import counted, jobs

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

urlpatterns = [path("metrics", stored_state)]


def scraped(client):
    """The samples, by name and labels."""
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain")
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.content.decode())
        for sample in family.samples
    }


def test_the_stored_state(client):
    now = timezone.now()
    jobs("available", 3, queue_name="mail", run_after=now - dt.timedelta(seconds=50))
    jobs("failed", 2)
    counted(now, count=7, queue_name="mail")
    counted(now, "failed", 2, queue_name="mail", error_class="E")
    Queue.objects.create(name="shut", paused_at=now, created_at=now, updated_at=now)
    beat = {"host": "a", "pid": 1, "queues": ["*"], "started_at": now, "heartbeat_at": now, "concurrency": 10}
    Worker.objects.create(expires_at=now + dt.timedelta(seconds=30), running=4, skew=-1.5, **beat)
    Worker.objects.create(expires_at=now - dt.timedelta(seconds=30), running=5, skew=9.0, **beat)

    samples = scraped(client)

    def of(name, **labels):
        return samples["django_jobs_" + name, *sorted(labels.items())]

    assert of("up") == 1
    assert (of("jobs", state="available"), of("jobs", state="failed"), of("jobs", state="pending")) == (
        3,
        2,
        0,
    )
    assert of("queue_jobs", queue="mail", state="available") == 3
    assert 50 <= of("queue_oldest_seconds", queue="mail") < 110
    assert of("queue_recent_attempts", queue="mail", outcome="completed") == 7
    assert of("queue_recent_attempts", queue="mail", outcome="failed") == 2
    assert (of("queue_paused", queue="shut"), of("queue_paused", queue="mail")) == (1, 0)
    assert of("queue_workers", queue="mail") == 1
    assert (of("workers"), of("workers_late"), of("executors"), of("workers_running")) == (1, 1, 10, 4)
    assert of("clock_skew_seconds") == 1.5


def test_its_statements_are_fixed(client, django_assert_num_queries):
    for number in range(20):
        jobs("available", queue_name=f"q{number}")
    with django_assert_num_queries(7):
        scraped(client)


def test_queues_without_end_are_bounded(client, monkeypatch):
    monkeypatch.setattr(stored, "MOST_QUEUES", 2)
    for number in range(4):
        jobs("available", number + 1, queue_name=f"q{number}")

    assert {labels[0][1] for name, *labels in scraped(client) if name == "django_jobs_queue_paused"} == {
        "q2",
        "q3",
    }


def test_hostile_names(client):
    jobs("available", queue_name='a"b\\c\n<script>')

    assert ("django_jobs_queue_workers", ("queue", 'a"b\\c\n<script>')) in scraped(client)


def test_a_database_that_is_away(client, monkeypatch):
    def away(self, most):
        raise OperationalError("away")

    monkeypatch.setattr("django_jobs.store.statistics.StatisticsStatements.count_states", away)

    assert scraped(client) == {("django_jobs_up",): 0.0}


def test_in_a_registry_of_the_sites_own(django_assert_num_queries):
    registry = CollectorRegistry(auto_describe=True)
    with django_assert_num_queries(0):
        registry.register(StoredState())
    assert b"django_jobs_up 1.0" in prometheus_client.generate_latest(registry)


def test_who_may_ask_and_how(client):
    assert client.post("/metrics").status_code == 405
    openmetrics = client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert openmetrics["Content-Type"].startswith("application/openmetrics-text")
    assert openmetrics.content.endswith(b"# EOF\n")
