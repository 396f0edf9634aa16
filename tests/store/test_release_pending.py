"""Pending jobs: they wait for an operator, whatever the time is."""

import pytest

from tests.store.builders import update


def test_a_pending_job_is_neither_claimed_nor_promoted(store, make, clock):
    job = make.one(pending=True)
    later = make.one(pending=True, delay=5.0)

    assert (job.state, later.state) == ("pending", "pending")
    assert store.promote(now=clock.advance(60)) == []
    assert store.claim(make.worker(), "default", 10, now=clock.now) == []
    assert store.next_due(now=clock.now) is None


def test_a_released_job_is_due_from_then_on(store, make, clock):
    job = make.one(pending=True)

    (answer,) = store.release_pending([job.id], now=clock.advance(60))

    assert answer.done
    assert (answer.job.state, answer.job.run_after, answer.job.created_at) == (
        "available",
        clock.now,
        job.created_at,
    )
    assert make.again(job) == answer.job
    assert [each.id for each in store.claim(make.worker(), "default", 1, now=clock.now)] == [job.id]


def test_one_whose_time_has_not_come_is_scheduled(store, make, clock):
    job = make.one(pending=True, delay=90.0)

    (answer,) = store.release_pending([job.id], now=clock.advance(60))

    assert (answer.done, answer.job.state, answer.job.run_after) == (True, "scheduled", job.run_after)


@pytest.mark.parametrize("state", ["scheduled", "available", "running", "completed", "failed", "cancelled"])
def test_others_stay_as_they_are_and_the_answer_says_so(store, make, clock, state):
    other, job = make.one(), make.one(pending=True)
    finished = state in ("completed", "failed", "cancelled")
    update([other.id], state=state, worker=make.worker(), finalized_at=clock.now if finished else None)
    before = make.again(other)

    answers = store.release_pending([job.id, other.id, 987_654_321], now=clock.now)

    assert [(answer.job.id, answer.done) for answer in answers] == [(other.id, False), (job.id, True)]
    assert answers[0].reason == f"It is {state}, not pending."
    assert before == answers[0].job == make.again(other)


def test_a_pending_job_holds_its_key_before_and_after(store, make, clock):
    job = make.one(pending=True, unique_key="key")
    assert make.one(unique_key="key").id == job.id

    (answer,) = store.release_pending([job.id], now=clock.now)

    assert (answer.done, answer.job.holds_key) == (True, True)


def test_a_pending_job_can_be_cancelled(store, make, clock):
    job = make.one(pending=True)
    store.cancel([job.id], now=clock.now)

    (answer,) = store.release_pending([job.id], now=clock.now)

    assert (answer.done, answer.job.state) == (False, "cancelled")


def test_nothing_to_release(store):
    assert store.release_pending([]) == []
