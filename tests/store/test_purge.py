"""Deleting finished jobs by age, in bounded batches."""

import pytest

from django_jobs.models import Job
from tests.store.builders import outcome, update


def ids(jobs):
    return [job.id for job in jobs]


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_age_zero_includes_what_ended_this_very_moment(store, make, clock, state):
    jobs = make.finished(state, count=2)

    assert sorted(store.purge(state, 0.0, now=clock.now)) == ids(jobs)
    assert store.get(ids(jobs)) == []


def test_age_zero_includes_what_this_moments_finish_stored(store, make, clock):
    job = make.running(make.worker())
    store.finish([outcome(job)], now=clock.now)

    assert store.purge("completed", 0.0, now=clock.now) == [job.id]


@pytest.mark.parametrize(
    ("age", "gone"),
    [(0, True), (59.999, True), (59.999999, True), (60, True), (60.000001, False), (61, False)],
)
def test_the_age_is_inclusive(store, make, clock, age, gone):
    (job,) = make.finished("completed")

    assert store.purge("completed", float(age), now=clock.advance(60)) == ([job.id] if gone else [])


def test_a_whole_second_and_a_fraction_compare_as_times(store, make, clock):
    second = clock.now.replace(microsecond=0)
    before, at, after = make.finished("completed", count=3)
    for job, microseconds in ((before, -1), (at, 0), (after, 1)):
        update([job.id], finalized_at=second + (clock.after(microseconds / 1e6) - clock.now))

    assert sorted(store.purge("completed", 0.0, now=second)) == [before.id, at.id]


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_only_jobs_in_that_state_are_purged(store, make, clock, state):
    jobs = {each: make.finished(each)[0].id for each in ("completed", "failed", "cancelled")}
    make.one(queue_name="a")
    make.running(make.worker(), queue_name="b")
    make.one(queue_name="c", delay=5.0)

    assert store.purge(state, 0.0, now=clock.advance(3600)) == [jobs[state]]
    assert Job.objects.count() == 5


@pytest.mark.parametrize("state", ["pending", "scheduled", "available", "running"])
def test_a_live_job_is_never_purged(store, make, clock, state):
    job = make.one()
    update([job.id], state=state, worker=make.worker())

    assert store.purge(state, 0.0, now=clock.advance(3600)) == []
    assert make.again(job).state == state


def test_the_oldest_go_first_and_not_more_than_the_limit(store, make, clock):
    jobs = [make.finished("completed")[0] for _ in range(5)]
    for job, age in zip(jobs, (10, 50, 30, 20, 40), strict=True):
        update([job.id], finalized_at=clock.after(-age))

    assert sorted(store.purge("completed", 0.0, limit=2, now=clock.now)) == sorted([jobs[1].id, jobs[4].id])
    assert store.purge("completed", 0.0, limit=1, now=clock.now) == [jobs[2].id]
    assert sorted(store.purge("completed", 15.0, limit=9, now=clock.now)) == [jobs[3].id]


def test_a_job_that_holds_its_key_is_kept(store, make, clock):
    (holder, other) = make.finished("completed", count=2)
    update([holder.id], unique_key="key", holds_key=True)

    assert store.purge("completed", 0.0, now=clock.advance(3600)) == [other.id]


def test_a_retried_job_is_not_purged(store, make, clock):
    (job, other) = make.finished("failed", count=2)
    store.retry([job.id], now=clock.now)

    assert store.purge("failed", 0.0, now=clock.advance(3600)) == [other.id]


@pytest.mark.parametrize("age", [1e9, 1e12, 1e300])
def test_an_age_longer_than_the_calendar_purges_nothing(store, make, clock, age):
    (job,) = make.finished("completed")

    assert store.purge("completed", age, now=clock.now) == []
    assert make.again(job) == job


def test_a_batch_goes_on_where_the_one_before_it_ended(store, make, clock):
    jobs = [job for _ in range(3) for job in (clock.advance(1), *make.finished("failed", count=2))[1:]]

    first = store.purge_from(None, "failed", 0.0, limit=3, now=clock.now)
    (earlier,) = make.finished("failed")
    update([earlier.id], finalized_at=clock.after(-9))
    second = store.purge_from(first.end, "failed", 0.0, limit=9, now=clock.now)

    assert (first.ids, second.ids) == (ids(jobs[:3]), ids(jobs[3:]))
    assert store.purge_from(second.end, "failed", 0.0, now=clock.now).end is None
    assert store.purge("failed", 0.0, now=clock.now) == [earlier.id]
