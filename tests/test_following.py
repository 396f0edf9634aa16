"""A job followed to its end: refresh(), wait(), and the same from async code."""

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from django.db.transaction import TransactionManagementError

from django_jobs import enqueue_many, job, operations, registry
from django_jobs.models import Job
from django_jobs.store import django_store, following
from django_jobs.store.outcomes import COMPLETED
from django_jobs.store.rows import Outcome

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
def definition():
    made = job(name="tests.followed")(lambda: None)
    yield made
    registry.remove(made)


def complete(result='"done"'):
    """What a worker does."""
    store = django_store("default")
    worker = store.register_worker("host", 1, "[]", 1, "1", 30.0)
    jobs = store.claim(worker.id, "default", 100)
    store.finish([Outcome(each.id, each.claims, COMPLETED, result=result) for each in jobs])


def in_thread(function):
    def run():
        try:
            function()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_refresh_reads_the_row_again(definition):
    queued = definition.enqueue()
    same = queued
    complete()

    assert queued.state == "available"
    assert not queued.is_finished
    assert queued.refresh() is same
    assert (queued.state, queued.result, queued.is_finished) == ("completed", "done", True)


def test_refresh_of_a_job_that_is_gone(definition):
    queued = definition.enqueue()
    Job.objects.all().delete()

    with pytest.raises(Job.DoesNotExist, match=rf"no job {queued.id} in database 'default' any more"):
        queued.refresh()
    with pytest.raises(Job.DoesNotExist):
        queued.wait()


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_wait_ends_with_whatever_end(definition, state):
    queued = definition.enqueue()
    Job.objects.update(state=state, finalized_at="2031-01-01T00:00:00Z")

    assert queued.wait(0) is queued
    assert queued.state == state


def test_wait_returns_when_the_job_is_finished(definition):
    queued = definition.enqueue()
    thread = in_thread(complete)

    assert queued.wait(30).result == "done"
    thread.join(30)


def test_wait_has_an_end(definition):
    queued = definition.enqueue()

    with pytest.raises(
        TimeoutError, match=rf"Job {queued.id} is available, and not finished after 0.02 seconds"
    ):
        queued.wait(0.02)


@pytest.mark.parametrize("timeout", [float("nan"), "30", True])
def test_a_timeout_that_is_none_is_refused_before_anything_is_read(
    definition, timeout, django_assert_num_queries
):
    row = definition.enqueue()

    with django_assert_num_queries(0), pytest.raises(TypeError, match=r"wait\(timeout="):
        row.wait(timeout)


def test_wait_in_a_transaction_would_wait_for_ever_and_says_so(definition):
    with transaction.atomic():
        queued = definition.enqueue()
        with pytest.raises(TransactionManagementError, match="Wait after the block"):
            queued.wait(30)


def test_what_is_finished_need_not_be_waited_for_even_in_a_transaction(definition):
    queued = definition.enqueue()
    complete()
    with transaction.atomic():
        assert queued.wait(0).result == "done"


def test_from_async_code(definition):
    async def follow():
        queued = await definition.aenqueue()
        with pytest.raises(TimeoutError):
            await queued.await_end(0.02)
        assert (await queued.arefresh()).state == "available"
        thread = in_thread(complete)
        assert (await queued.await_end(30)).result == "done"
        thread.join(30)
        await sync_to_async(connections.close_all)()

    asyncio.run(follow())


def test_the_database_is_the_one_that_the_job_was_enqueued_with(definition, monkeypatch):
    other = definition.using(using="default")
    queued = [other.enqueue(), *other.enqueue_many([()]), *enqueue_many([other.prepare()])]
    plain = definition.enqueue()

    assert [each.using for each in queued] == ["default"] * 3
    assert not hasattr(plain, "using")
    monkeypatch.setattr("django_jobs.databases.jobs_database", lambda using=None: f"asked for {using}")
    assert following.alias_of(queued[0], None) == "asked for default"
    assert following.alias_of(queued[0], "else") == "asked for else"
    assert following.alias_of(plain, None) == "asked for None"


def test_a_job_that_was_read_from_a_named_database_is_followed_there(definition, settings):
    queued = definition.using(tags=["red"]).enqueue()
    found = [
        operations.get(queued.id, using="default"),
        *operations.list_jobs(using="default").jobs,
        *operations.list_jobs(queued.id, using="default").jobs,
        *operations.tagged("red", using="default"),
    ]
    complete()
    found += operations.list_jobs(operations.Filter(state="completed"), using="default").jobs
    unnamed = operations.get(queued.id)
    settings.DJANGO_JOBS = {"DATABASE": "nowhere"}

    assert [job.refresh().state for job in found] == ["completed"] * 5
    assert found[0].wait(1).result == "done"
    with pytest.raises(ImproperlyConfigured):
        unnamed.refresh()
