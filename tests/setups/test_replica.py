"""A site that reads from a replica, which lags behind: nothing of the queue is read there."""

import pytest
from django.contrib.auth.models import User
from django.db import connections

from django_jobs import operations
from django_jobs.models import Job
from django_jobs.testing import assert_enqueued, drain
from tests.workload import jobs, tasks

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _replica(monkeypatch, settings):
    """An alias that answers nothing."""
    nowhere = {**connections.settings["default"], "NAME": "/nowhere/at/all", "HOST": "/nowhere"}
    monkeypatch.setitem(connections.settings, "replica", nowhere)
    settings.DATABASE_ROUTERS = ["tests.setups.routers.ReadsFromReplica"]
    yield
    if "replica" in {wrapper.alias for wrapper in connections.all(initialized_only=True)}:
        del connections["replica"]


def test_the_site_reads_there():
    with pytest.raises(Exception, match=r"database|nowhere|socket"):
        User.objects.exists()


def test_a_fresh_result_is_read_where_it_was_written():
    result = tasks.echo.enqueue(5)

    assert tasks.echo.get_result(result.id) == result
    drain()
    result.refresh()
    assert result.return_value == 5


def test_a_fresh_job_too():
    row = jobs.nothing.enqueue()

    assert row.refresh().state == "available"
    assert operations.get(row.id) == row
    assert operations.list_jobs().jobs == [row]
    assert operations.stats()
    assert_enqueued(jobs.nothing)
    drain()
    assert row.wait().state == "completed"


def test_operations_act_there():
    row = jobs.nothing.enqueue()
    operations.pause("default")

    assert operations.cancel(operations.Filter(name=jobs.nothing.name)).done == 1
    assert operations.retry([row.id]).done == 1
    assert operations.queue("default").paused_at is not None
    assert Job.objects.using("default").get().state == "available"
