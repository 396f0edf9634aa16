"""What a running job says of its outcome; in async code too, and where there is no job."""

import asyncio

import pytest
from asgiref.sync import sync_to_async

from django_jobs import JobContext, current_job
from django_jobs.models import Job
from django_jobs.serialization import NotStorable
from tests.waiting import eventually
from tests.worker.context.helping import queries
from tests.worker.fakes import TIMEOUT


def test_the_variants_for_async_code(live, define):
    async def work():
        context = current_job()
        await context.aprogress(1, 2)
        await context.amerge_metadata({"a": 1})
        seen = await Job.objects.aget(pk=context.job.id)
        await context.amerge_metadata({"later": 1}, later=True)
        context.progress(2, 2)  # not stored here and now: this is the event loop
        return seen.metadata

    job = define(work).enqueue()
    live(size=1)

    assert job.wait(TIMEOUT).result == {"progress": {"done": 1, "total": 2, "note": ""}, "a": 1}
    assert job.metadata == {"a": 1, "later": 1, "progress": {"done": 2, "total": 2, "note": ""}}


def test_the_context_is_the_same_wherever_it_is_asked_for(live, define):
    async def work(context):
        def inner():
            current_job().merge_metadata({"thread": 1}, later=True)

        async def task():
            current_job().merge_metadata({"task": 1}, later=True)

        await asyncio.gather(sync_to_async(inner)(), task())
        context.merge_metadata({"own": 1}, later=True)

    job = define(work, takes_context=True).enqueue()
    live(size=1)

    assert job.wait(TIMEOUT).metadata == {"thread": 1, "task": 1, "own": 1}


# -- words ------------------------------------------------------------------------------------------------------------


def test_snooze_and_cancel_end_the_attempt_there(live, define):
    def work(how):
        if how == "snooze":
            current_job().snooze(3600)
        current_job().cancel("not needed")

    definition = define(work)
    snoozed, cancelled = definition.enqueue("snooze"), definition.enqueue("cancel")
    live()

    assert cancelled.wait(TIMEOUT).state == "cancelled"
    assert cancelled.errors[0]["message"] == "not needed"
    eventually(lambda: snoozed.refresh().state == "scheduled")
    assert snoozed.attempt == 0


def test_a_context_without_a_job_takes_everything_and_stores_nothing(db):
    context = JobContext.detached("tests.direct")

    def everything():
        context.progress(1, 2, "x")
        context.merge_metadata({"a": 1})
        context.complete({"a": 1})
        assert context.heartbeat()
        assert not context.should_stop()

    assert queries(everything) == 0
    with pytest.raises(NotStorable):
        context.merge_metadata({"a": object()})


def test_a_job_without_a_timeout_has_no_end_to_its_heartbeats(running):
    assert queries(running.heartbeat) == 0
    assert running.heartbeat() is True
