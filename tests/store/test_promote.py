"""Making scheduled jobs available when their time has come, and knowing when the next one is due."""

import pytest

from tests.store.builders import columns, update, write


def test_a_due_job_becomes_available_and_nothing_else_of_it_changes(store, make, clock):
    job = make.one(delay=10.0)
    assert store.claim(make.worker(), "default", 1, now=clock.advance(10)) == []

    (promoted,) = store.promote(now=clock.now)

    assert promoted.state == "available"
    assert columns(promoted) == {**columns(job), "state": "available"}
    assert make.again(job) == promoted
    assert [each.id for each in store.claim(make.worker(), "default", 1, now=clock.now)] == [job.id]


@pytest.mark.parametrize(("seconds", "due"), [(-0.000001, False), (0, True), (0.000001, True), (3600, True)])
def test_a_job_is_due_at_its_very_moment(store, make, clock, seconds, due):
    job = make.one(delay=60.0)

    assert [each.id for each in store.promote(now=clock.after(60 + seconds))] == ([job.id] if due else [])


def test_a_whole_second_is_due_at_that_second(store, make, clock):
    second = clock.now.replace(microsecond=0)
    job = make.one(run_after=clock.after(60))
    write(job, "run_after", second.strftime("%Y-%m-%d %H:%M:%S"))

    assert [each.id for each in store.promote(now=second)] == [job.id]


def test_the_longest_due_come_first_and_not_more_than_the_limit(store, make, clock):
    jobs = [make.one(delay=float(delay)) for delay in (50, 10, 40, 20, 30, 20)]
    clock.advance(45)

    first = store.promote(limit=2, now=clock.now)
    assert {job.id for job in first} == {jobs[1].id, jobs[3].id}
    assert [job.id for job in store.promote(limit=1, now=clock.now)] == [jobs[5].id]
    assert {job.id for job in store.promote(limit=10, now=clock.now)} == {jobs[4].id, jobs[2].id}
    assert store.promote(limit=10, now=clock.now) == []


@pytest.mark.parametrize("state", ["pending", "available", "running", "completed", "failed", "cancelled"])
def test_only_scheduled_jobs_are_promoted(store, make, clock, state):
    job = make.one(delay=1.0)
    finished = state in ("completed", "failed", "cancelled")
    update([job.id], state=state, worker=make.worker(), finalized_at=clock.now if finished else None)

    assert store.promote(now=clock.advance(60)) == []
    assert make.again(job).state == state


def test_the_priority_holds_again_once_promoted(store, make, clock):
    low, high = make.one(delay=1.0, priority=0), make.one(delay=2.0, priority=9)
    store.promote(now=clock.advance(5))

    assert [job.id for job in store.claim(make.worker(), "default", 2, now=clock.now)] == [high.id, low.id]


def test_the_next_due_time(store, make, clock):
    assert store.next_due(now=clock.now) is None

    make.one()
    make.running(make.worker(), queue_name="other")
    assert store.next_due(now=clock.now) is None

    make.one(delay=60.0)
    make.one(delay=20.25)
    assert store.next_due(now=clock.now) == 20.25
    assert store.next_due(now=clock.after(20.25)) == 0
    assert store.next_due(now=clock.after(30)) == -9.75

    store.promote(now=clock.after(30))
    assert store.next_due(now=clock.after(30)) == 30
