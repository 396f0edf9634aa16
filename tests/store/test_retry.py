"""An operator's retry of finished jobs, and unique keys on the way."""

import pytest

from django_jobs.store.outcomes import RETRY
from tests.store.builders import errors, outcome, update, write


def retried(answers):
    return {answer.job.id: (answer.job.state, answer.done) for answer in answers}


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_a_finished_job_is_available_again_with_no_attempt_spent(store, make, clock, state):
    (job,) = make.finished(state, max_attempts=2)
    update([job.id], attempt=2, error_class="ValueError", cancel_requested_at=clock.now, priority=7)
    write(job, "errors", errors(1, 2))
    write(job, "result", "5")

    (answer,) = store.retry([job.id], now=clock.advance(60))

    again = answer.job
    assert answer.done
    assert (again.state, again.attempt, again.max_attempts, again.priority) == ("available", 0, 2, 7)
    assert (again.run_after, again.finalized_at, again.cancel_requested_at) == (clock.now, None, None)
    assert ([error["number"] for error in again.errors], again.result) == ([1, 2], None)
    assert again == make.again(job)


def test_the_job_then_runs_under_a_claim_of_its_own(store, make, clock):
    worker = make.worker()
    old = make.running(worker, max_attempts=1)
    store.finish([outcome(old, RETRY)], now=clock.now)
    store.retry([old.id], now=clock.now)

    (new,) = store.claim(worker, "default", 1, now=clock.now)

    assert (new.attempt, new.claims) == (1, 2)
    assert not store.finish([outcome(old)], now=clock.now)[0].stored
    assert store.finish([outcome(new)], now=clock.now)[0].stored


@pytest.mark.parametrize("state", ["pending", "scheduled", "available", "running"])
def test_a_live_job_stays_as_it_is(store, make, clock, state):
    job = make.one(max_attempts=3)
    update([job.id], state=state, worker=make.worker(), attempt=1, cancel_requested_at=clock.now)
    before = make.again(job)

    (answer,) = store.retry([job.id], now=clock.advance(60))

    assert (answer.job, answer.done) == (before, False)
    assert make.again(job) == before


def test_the_second_of_two_operators_is_told_that_it_was_done(store, make, clock):
    (job,) = make.finished("failed")
    (first,) = store.retry([job.id], now=clock.now)

    (second,) = store.retry([job.id], now=clock.advance(1))

    assert (first.done, second.done, second.job) == (True, False, first.job)


def test_all_that_exist_come_back_in_the_order_of_their_ids(store, make, clock):
    dead, other = make.finished("failed", count=2)
    clock.advance(60)
    waiting = make.one(delay=5.0)

    answers = store.retry([waiting.id, other.id, 987_654_321, dead.id, dead.id], now=clock.advance(60))

    assert [(answer.job.id, answer.done) for answer in answers] == [
        (dead.id, True),
        (other.id, True),
        (waiting.id, False),
    ]


def test_nothing_to_retry(store):
    assert store.retry([]) == []


# Unique keys


def test_a_retried_job_holds_its_key_again(store, make, clock):
    (job,) = make.finished("failed")
    update([job.id], unique_key="key")

    (answer,) = store.retry([job.id], now=clock.advance(1))

    assert (answer.done, answer.job.holds_key) == (True, True)


@pytest.mark.parametrize("state", ["pending", "scheduled", "available", "running"])
def test_a_job_whose_key_a_live_one_holds_is_refused_and_the_others_are_retried(store, make, clock, state):
    dead, other = make.finished("failed", count=2)
    live = make.one()
    update([dead.id], unique_key="key")
    update([other.id], unique_key="another key")
    update([live.id], unique_key="key", holds_key=True, state=state, worker=make.worker())

    answers = store.retry([dead.id, other.id], now=clock.advance(1))

    assert retried(answers) == {dead.id: ("failed", False), other.id: ("available", True)}
    assert not make.again(dead).holds_key


def test_of_twins_retried_at_once_the_newest_gets_the_key(store, make, clock):
    twins = make.finished("cancelled", count=3)
    update([job.id for job in twins], unique_key="key")

    answers = store.retry([job.id for job in twins], now=clock.advance(1))

    assert [answer.done for answer in answers] == [False, False, True]
    assert [answer.job.holds_key for answer in answers] == [False, False, True]


def test_a_live_twin_among_the_ids_keeps_the_key(store, make, clock):
    (dead,) = make.finished("failed")
    live = make.one()
    update([dead.id, live.id], unique_key="key")
    update([live.id], holds_key=True)

    answers = store.retry([dead.id, live.id], now=clock.advance(1))

    assert retried(answers) == {dead.id: ("failed", False), live.id: ("available", False)}


def test_a_finished_twin_that_holds_no_key_is_no_hindrance(store, make, clock):
    first, second = make.finished("failed", count=2)
    update([first.id, second.id], unique_key="key")

    (answer,) = store.retry([first.id], now=clock.advance(1))

    assert answer.done
    assert make.again(second).state == "failed"
