"""A server that ends all connections, as it does when it restarts: while the worker idles, while it runs, while it
finishes. And a host whose clock is two hours wrong."""

import datetime as real  # noqa: ICN001 - it is changed below
import threading

import pytest
from django.db import connection
from django.utils import timezone

from django_jobs.models import Job, Worker
from django_jobs.store import django_store
from tests.waiting import eventually
from tests.workload.jobs import nothing

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


def end_all_connections() -> int:
    """As a restart does it; this one aside, which asks for it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return cursor.fetchone()[0]


@pytest.fixture
def held(define):
    """A job that runs until it is told to end."""
    begun, end = threading.Event(), threading.Event()

    def hold():
        begun.set()
        assert end.wait(30)

    definition = define(hold, max_attempts=1)
    definition.begun, definition.end = begun, end
    yield definition
    end.set()


@pytest.mark.parametrize("moment", ["idle", "running", "finishing"])
def test_a_worker_connects_again_and_loses_nothing(live, held, moment):
    worker = live(size=2, heartbeat_interval=0.2, poll_interval=0.1)
    nothing.enqueue().wait(30)
    before = worker.worker_id
    row = held.enqueue()
    if moment == "idle":
        held.end.set()
        row.wait(30)
    else:
        assert held.begun.wait(30)
    if moment == "finishing":
        held.end.set()

    assert end_all_connections() >= 2
    held.end.set()

    row.wait(60)
    assert (row.state, row.attempt, row.errors) == ("completed", 1, [])
    assert nothing.enqueue().wait(60).state == "completed"
    assert worker.worker_id == before, "it was never taken for lost"


@pytest.mark.parametrize("hours", [-2, 2])
def test_nothing_is_promoted_or_rescued_by_a_clock_that_is_two_hours_wrong(live, monkeypatch, hours):
    class Wrong(real.datetime):
        """The clock of a host that nobody has set."""

        @classmethod
        def now(cls, tz=None):
            return real_now(tz) + real.timedelta(hours=hours)

    real_now = real.datetime.now
    store = django_store("default")
    other = store.register_worker("host", 1, '["*"]', 1, "1", 600.0).id
    running = nothing.enqueue()
    assert store.claim(other, "default", 1)
    later = nothing.using(run_after=real.timedelta(hours=1)).enqueue()
    Job.objects.filter(pk=later.id).update(run_after=timezone.now() + real.timedelta(hours=1))
    expired = store.register_worker("host", 2, '["*"]', 1, "1", 0.001).id
    lost = nothing.enqueue()
    assert store.claim(expired, "default", 1)

    with monkeypatch.context() as patched:
        patched.setattr(real, "datetime", Wrong)
        worker = live(size=1, heartbeat_interval=0.2, poll_interval=0.1, lease=0.6)
        soon = nothing.using(run_after=real.timedelta(seconds=0.2)).enqueue()
        # The keeper has been round: what is due by the database's clock ran, and what a dead worker held was rescued.
        eventually(lambda: Job.objects.get(pk=soon.id).state == "completed")
        eventually(lambda: Job.objects.get(pk=lost.id).state != "running")
        eventually(lambda: abs(Worker.objects.get(pk=worker.worker_id).skew - hours * 3600) < 60)
        worker.stop_now()

    assert Job.objects.get(pk=later.id).state == "scheduled"
    assert Job.objects.get(pk=running.id).state == "running"
    promoted = Job.objects.get(pk=lost.id)
    assert abs((promoted.run_after - timezone.now()).total_seconds()) < 300
