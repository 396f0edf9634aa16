"""``assert_enqueued()`` and what it says."""

import datetime as dt

import pytest
from asgiref.sync import async_to_sync

from django_jobs.testing import (
    aassert_enqueued,
    assert_enqueued,
    assert_not_enqueued,
    enqueued_jobs,
    run_jobs,
)
from tests.testing import jobs
from tests.workload import tasks


def test_a_job_that_waits(anywhere):
    row = jobs.note.enqueue(5)

    for job in (jobs.note, jobs.note.using(priority=1), "tests.testing.jobs.note"):
        assert assert_enqueued(job) == row
    assert_not_enqueued(jobs.fail)


def test_a_task(anywhere):
    result = tasks.echo.enqueue({1: (2,)})

    assert str(assert_enqueued(tasks.echo, args=[{"1": [2]}]).id) == result.id
    assert_not_enqueued(tasks.noop)


@pytest.mark.parametrize(
    ("args", "kwargs", "found"),
    [
        ([5], None, True),
        ((5,), {}, True),
        (None, {"value": 5}, True),
        ([], {"value": 5}, True),
        ([6], None, False),
        ([], None, False),
        ([5], {"twice": False}, False),
        (None, {"twice": 5}, False),
        ([1, 2, 3], None, False),
    ],
)
def test_arguments_however_they_are_passed(db, args, kwargs, found):
    jobs.note.enqueue(5)
    if found:
        assert_enqueued(jobs.note, args=args, kwargs=kwargs)
    else:
        assert_not_enqueued(jobs.note, args=args, kwargs=kwargs)


def test_arguments_of_a_name_that_is_not_registered(db):
    from django_jobs.models import Job

    row = jobs.note.enqueue(5)
    Job.objects.filter(pk=row.id).update(name="gone")

    assert_enqueued("gone", args=[5])
    assert_not_enqueued("gone", kwargs={"value": 5})


def test_tuples_come_back_as_lists(db):
    jobs.note.enqueue({"a": [1, [2]]})
    assert_enqueued(jobs.note, args=[{"a": (1, (2,))}])


def test_other_fields(db):
    jobs.note.using(queue_name="mail", priority=3, tags=["t"], run_after=dt.timedelta(hours=1)).enqueue()

    assert_enqueued(jobs.note, queue_name="mail", priority=3, tags=["t"], state="scheduled")
    assert_not_enqueued(jobs.note, priority=4)
    assert_not_enqueued(jobs.note, queue_name="default")
    with pytest.raises(TypeError, match="no 'queue'; did you mean 'queue_name'"):
        assert_enqueued(jobs.note, queue="mail")


def test_how_many(db):
    first, _ = jobs.note.enqueue(1), jobs.note.enqueue(1)

    assert assert_enqueued(jobs.note, count=2).id == first.id
    with pytest.raises(AssertionError, match="2 of 3 enqueued"):
        assert_enqueued(jobs.note, count=3)


def test_one_that_has_run_waits_no_more(anywhere):
    jobs.note.enqueue()
    run_jobs()

    assert_not_enqueued(jobs.note)
    assert enqueued_jobs() == []


def test_the_message_says_what_waits_instead(db):
    with pytest.raises(AssertionError, match=r"jobs\.fail: none enqueued\. Nothing waits\."):
        assert_enqueued(jobs.fail)
    row = jobs.note.enqueue("x")
    with pytest.raises(AssertionError) as caught:
        assert_enqueued(jobs.note, args=["y"], queue_name="default", count=1)

    assert str(caught.value) == (
        "tests.testing.jobs.note with args=['y'], queue_name='default': none of 1 enqueued. There wait:\n"
        f"  {row.id}: tests.testing.jobs.note args=['x'] kwargs={{}} queue_name='default' available"
    )
    jobs.note.enqueue_many([(number,) for number in range(20)])
    with pytest.raises(AssertionError, match=r"and 11 more"):
        assert_not_enqueued(jobs.note)


def test_what_is_no_job(db):
    with pytest.raises(TypeError, match="5 is no job"):
        assert_enqueued(5)


@pytest.mark.django_db(transaction=True)
def test_from_async_code():
    async def go():
        await jobs.note.aenqueue(1)
        return await aassert_enqueued(jobs.note, args=[1])

    assert async_to_sync(go)().args == [1]


def test_the_fixture(assert_enqueued):
    jobs.note.enqueue()
    assert_enqueued(jobs.note)
