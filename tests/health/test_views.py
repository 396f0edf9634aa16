"""The health views: what they answer, to whom, and what they cost."""

import datetime as dt

import pytest
from django.db import OperationalError
from django.urls import include, path
from django.utils import timezone

from django_jobs.models import Queue, Worker
from tests.test_statistics import jobs

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

urlpatterns = [path("jobs/health/", include("django_jobs.health.urls"))]

LIVE, READY = "/jobs/health/live", "/jobs/health/ready"


def worker(lease=30.0, **columns):
    now = timezone.now()
    return Worker.objects.create(
        host="web1",
        pid=1,
        queues=["*"],
        started_at=now,
        heartbeat_at=now,
        expires_at=now + dt.timedelta(seconds=lease),
        **columns,
    )


def late(seconds, **columns):
    jobs("available", run_after=timezone.now() - dt.timedelta(seconds=seconds), **columns)


@pytest.fixture
def answer(client, settings):
    """What ready says, with its reasons; keywords are the setting HEALTH."""

    def ask(**health):
        settings.DJANGO_JOBS = {"HEALTH": {"details": True, **health}}
        response = client.get(READY)
        body = response.json()
        assert (response.status_code == 200) == (body["status"] == "ok") == (not body.get("reasons"))
        return body.get("reasons", [])

    return ask


def test_live_asks_no_database(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        response = client.get(LIVE)

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_ready(client, django_assert_num_queries):
    worker()
    late(200)
    with django_assert_num_queries(2):
        response = client.get(READY)

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_it_says_no_more_than_it_is_told_to(client):
    late(400, queue_name="secret")

    response = client.get(READY)

    assert (response.status_code, response.json()) == (503, {"status": "failing"})


def test_workers(answer):
    assert answer() == ["0 of 1 workers are alive"]
    assert answer(workers=0) == []

    worker()
    worker(lease=-1.0)
    worker(stopped_at=timezone.now())
    worker(lost_at=timezone.now())
    assert answer() == []
    assert answer(workers=2) == ["1 of 2 workers is alive"]


def test_queues_that_wait(answer):
    worker()
    late(400, queue_name="mail")
    late(500, queue_name="mail", priority=-5)
    late(100, queue_name="other")

    assert [reason[:25] for reason in answer()] == ["queue mail has waited for"]
    assert answer(late=None) == []
    assert answer(queues={"mail": None}) == []
    assert answer(queues={"mail": dt.timedelta(hours=1)}) == []
    assert [reason.split()[1] for reason in answer(queues={"other": 50})] == ["mail", "other"]


def test_a_paused_queue_may_wait(answer):
    worker()
    late(400, queue_name="mail")
    now = timezone.now()
    Queue.objects.create(name="mail", paused_at=now, created_at=now, updated_at=now)

    assert answer() == []


def test_a_database_that_does_not_answer(answer, client, monkeypatch):
    def away(self, now=None):
        raise OperationalError("no route to host 10.0.0.5")

    monkeypatch.setattr("django_jobs.store.statistics.StatisticsStatements.live_workers", away)

    assert answer() == ["the database does not answer"]
    assert client.get(LIVE).status_code == 200


def test_a_database_that_is_away_and_transactions_for_requests(client, settings, monkeypatch):
    """The transaction of ATOMIC_REQUESTS would fail before the view can say anything."""
    from django.db import connection

    def away(*args, **kwargs):
        raise OperationalError("away")

    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    monkeypatch.setattr("django.db.transaction.Atomic.__enter__", away)
    monkeypatch.setattr("django_jobs.store.statistics.StatisticsStatements.live_workers", away)

    assert client.get(LIVE).status_code == 200
    assert client.get(READY).status_code == 503


@pytest.mark.parametrize("url", [LIVE, READY])
def test_who_may_ask_and_how(client, settings, url):
    worker()
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.contrib.auth.middleware.LoginRequiredMiddleware"]

    response = client.get(url)
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    assert client.head(url).status_code == 200
    assert client.post(url).status_code == 405


@pytest.mark.parametrize(
    "value",
    [
        {"workers": -1}, {"workers": True}, {"late": -5}, {"late": "x"}, {"queues": []}, {"queues": {"": 5}},
        {"queues": {"mail": "x"}}, {"details": 1}, {"other": 1}, [], {"workers": 1.5},
    ],
)  # fmt: skip
def test_settings_that_can_not_be_meant(value, settings):
    from django_jobs.checks import check_settings

    settings.DJANGO_JOBS = {"HEALTH": value}

    assert [message.id for message in check_settings()] == ["django_jobs.E003"]
