"""The fence of a finish: only the outcome of the claim that a row is running under is stored, and only once."""

import pytest

from django_jobs.models import Job
from django_jobs.store.outcomes import RELEASED, RETRY, SNOOZED
from tests.store.builders import KINDS, outcome


@pytest.mark.parametrize("second", KINDS)
@pytest.mark.parametrize("first", KINDS)
def test_a_second_outcome_of_a_claim_changes_nothing(store, make, clock, first, second):
    job = make.running(make.worker())
    store.finish([outcome(job, first, delay=5.0, result="1")], now=clock.now)
    before = make.again(job)

    (ended,) = store.finish([outcome(job, second, delay=9.0, result="2")], now=clock.advance(1))

    assert make.again(job) == before
    assert (ended.state, ended.stored, ended.job) == (before.state, False, before)


def test_the_same_batch_sent_again_at_the_same_moment_stores_nothing(store, make, clock):
    batch = [outcome(job) for job in make.claimed(make.worker(), count=3)]
    assert all(each.stored for each in store.finish(batch, now=clock.now))

    again = store.finish(batch, now=clock.now)

    assert [(each.state, each.stored) for each in again] == [("completed", False)] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_an_outcome_of_an_earlier_claim_changes_nothing(store, make, clock, kind):
    worker, other = make.worker(), make.worker()
    old = make.running(worker)
    store.finish([outcome(old, RETRY, delay=0.0)], now=clock.now)
    (new,) = store.claim(other, "default", 1, now=clock.now)

    (ended,) = store.finish([outcome(old, kind, delay=9.0)], now=clock.now)

    assert (ended.state, ended.stored) == ("running", False)
    assert make.again(old) == new


@pytest.mark.parametrize("apart", [False, True], ids=["claims of one number", "of several"])
def test_of_completions_those_of_an_earlier_claim_change_nothing(store, make, clock, apart):
    worker = make.worker()
    lost, first, second = make.claimed(worker, count=3)
    gone = [lost, second] if apart else [lost]
    store.finish([outcome(job, RETRY, delay=0.0) for job in gone], now=clock.now)
    claimed = {job.id: job for job in store.claim(worker, "default", 3, now=clock.now)}

    batch = [outcome(job) for job in (lost, first, claimed.get(second.id, second))]
    ended = store.finish(batch, now=clock.advance(1))

    assert {each.id: (each.state, each.stored) for each in ended} == {
        lost.id: ("running", False),
        first.id: ("completed", True),
        second.id: ("completed", True),
    }
    assert make.again(lost) == claimed[lost.id]


@pytest.mark.parametrize("back", [SNOOZED, RELEASED])
@pytest.mark.parametrize("late", KINDS)
def test_the_same_worker_and_attempt_are_another_claim_after_the_attempt_was_given_back(
    store, make, clock, back, late
):
    worker = make.worker()
    old = make.running(worker)
    store.finish([outcome(old, back, delay=0.0)], now=clock.now)
    (new,) = store.claim(worker, "default", 1, now=clock.now)
    assert (new.worker_id, new.attempt) == (old.worker_id, old.attempt)

    (ended,) = store.finish([outcome(old, late, delay=9.0)], now=clock.now)

    assert (ended.state, ended.stored) == ("running", False)
    assert make.again(old) == new
    assert store.finish([outcome(new)], now=clock.now)[0].stored


@pytest.mark.parametrize("kind", KINDS)
def test_an_outcome_after_a_rescue_changes_nothing(store, make, clock, kind):
    worker = make.worker()
    job = make.running(worker)
    (rescued,) = store.rescue(worker_id=worker, now=clock.now)

    (ended,) = store.finish([outcome(job, kind)], now=clock.now)

    assert (ended.state, ended.stored) == ("scheduled", False)
    assert make.again(job) == rescued


def test_a_deleted_row_is_dropped_and_the_rest_is_stored(store, make, clock):
    first, gone, third = make.claimed(make.worker(), count=3)
    Job.objects.filter(pk=gone.id).delete()

    ended = store.finish([outcome(job) for job in (first, gone, third)], now=clock.now)

    assert sorted((each.id, each.state, each.stored) for each in ended) == [
        (first.id, "completed", True),
        (third.id, "completed", True),
    ]


def test_one_lost_claim_does_not_touch_its_neighbours(store, make, clock):
    jobs = make.claimed(make.worker(), count=50)
    lost = jobs[::7]
    store.release(lost, now=clock.now)

    ended = store.finish([outcome(job) for job in jobs], now=clock.now)

    assert len(ended) == 50
    assert {each.id for each in ended if not each.stored} == {job.id for job in lost}
    assert {each.state for each in ended if not each.stored} == {"available"}
