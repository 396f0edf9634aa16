"""Deleting jobs by id."""

import pytest

from django_jobs.models import Job
from tests.store.builders import update


@pytest.mark.parametrize("state", ["pending", "scheduled", "available", "completed", "failed", "cancelled"])
def test_what_does_not_run_is_deleted_and_comes_back_as_it_was(store, make, clock, state):
    job = make.one(args="[1]")
    update(
        [job.id],
        state=state,
        finalized_at=clock.now if state in ("completed", "failed", "cancelled") else None,
    )
    before = make.again(job)

    assert store.delete([job.id], now=clock.now) == [before]
    assert not Job.objects.exists()


def test_a_running_job_stays(store, make, clock):
    running = make.running(make.worker())
    other = make.one()

    assert store.delete([running.id, other.id], now=clock.now) == [other]
    assert make.again(running).state == "running"


def test_ids_alone_come_back_where_nobody_reads_the_rows(store, make, clock):
    jobs = make.insert(3)

    deleted = store.delete([job.id for job in reversed(jobs)], now=clock.now, whole_rows=False)

    assert [job.id for job in deleted] == [job.id for job in jobs]


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_with_a_state_only_what_ended_in_it(store, make, clock, state):
    jobs = {each: make.finished(each)[0].id for each in ("completed", "failed", "cancelled")}
    waiting = make.one()

    deleted = store.delete([*jobs.values(), waiting.id], state, clock.now)

    assert [job.id for job in deleted] == [jobs[state]]


def test_with_a_state_a_retried_job_stays(store, make, clock):
    (job,) = make.finished("failed")
    store.retry([job.id], now=clock.now)

    assert store.delete([job.id], "failed", clock.now) == []
    assert make.again(job).state == "available"


def test_with_a_state_a_job_that_holds_its_key_is_kept_until_that_is_over(store, make, clock):
    live, over, without = make.finished("completed", count=3)
    update([live.id], unique_key="a", holds_key=True, key_until=clock.after(60))
    update([over.id], unique_key="b", holds_key=True, key_until=clock.now)

    deleted = store.delete([live.id, over.id, without.id], "completed", clock.now)

    assert [job.id for job in deleted] == [over.id, without.id]
    assert store.delete([live.id], now=clock.now), "without a state it is the operator's word"


def test_nothing_to_delete(store):
    assert store.delete([]) == store.delete([987_654_321]) == []
