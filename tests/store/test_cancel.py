"""Cancelling: at once while a job waits, by request while it runs, and what then ends the claim."""

import pytest

from django_jobs.store.outcomes import CANCELLED, COMPLETED, FAILED, RELEASED, RETRY, SNOOZED
from tests.store.builders import outcome, update


@pytest.mark.parametrize("state", ["pending", "scheduled", "available"])
def test_a_waiting_job_is_cancelled_at_once(store, make, clock, state):
    job = make.one()
    update([job.id], state=state, unique_key="key", holds_key=True)

    (cancelled,) = store.cancel([job.id], now=clock.advance(1))

    assert (cancelled.state, cancelled.finalized_at, cancelled.cancel_requested_at) == (
        "cancelled",
        clock.now,
        clock.now,
    )
    assert (cancelled.attempt, cancelled.claims, cancelled.holds_key) == (0, 0, False)
    assert cancelled == make.again(job)
    assert store.claim(make.worker(), "default", 10, now=clock.now) == []
    assert store.promote(now=clock.after(3600)) == []


def test_a_running_job_is_asked(store, make, clock):
    worker = make.worker()
    job = make.running(worker)
    update([job.id], unique_key="key", holds_key=True)

    (asked,) = store.cancel([job.id], now=clock.advance(1))

    assert (asked.state, asked.cancel_requested_at, asked.finalized_at) == ("running", clock.now, None)
    assert (asked.claims, asked.worker_id, asked.holds_key) == (job.claims, worker, True)


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_a_finished_job_stays_as_it_is(store, make, clock, state):
    (job,) = make.finished(state)

    assert store.cancel([job.id], now=clock.advance(1)) == [job]
    assert make.again(job) == job


def test_the_second_of_two_operators_sees_the_same(store, make, clock):
    waiting = make.one()
    first = store.cancel([waiting.id], now=clock.now)
    assert store.cancel([waiting.id], now=clock.advance(1)) == first

    running = make.running(make.worker())
    first = store.cancel([running.id], now=clock.now)
    assert store.cancel([running.id], now=clock.advance(1)) == first


def test_all_that_exist_come_back_in_the_order_of_their_ids(store, make, clock):
    running = make.running(make.worker())
    (done,) = make.finished("completed")
    waiting = make.one()

    jobs = store.cancel([waiting.id, 987_654_321, done.id, running.id, waiting.id], now=clock.now)

    assert [(job.id, job.state) for job in jobs] == [
        (running.id, "running"),
        (done.id, "completed"),
        (waiting.id, "cancelled"),
    ]


def test_nothing_to_cancel(store):
    assert store.cancel([]) == []


@pytest.mark.parametrize(
    ("kind", "state", "attempt"),
    [
        (COMPLETED, "completed", 1),
        (RETRY, "cancelled", 1),
        (FAILED, "cancelled", 1),
        (SNOOZED, "cancelled", 0),
        (CANCELLED, "cancelled", 1),
        (RELEASED, "cancelled", 0),
    ],
)
@pytest.mark.parametrize("delay", [0.0, 60.0])
@pytest.mark.parametrize("max_attempts", [1, 5])
def test_what_a_finish_stores_after_a_request(store, make, clock, kind, state, attempt, delay, max_attempts):
    job = make.running(make.worker(), max_attempts=max_attempts)
    update([job.id], unique_key="key", holds_key=True)
    store.cancel([job.id], now=clock.advance(1))

    (ended,) = store.finish([outcome(job, kind, delay=delay)], now=clock.advance(1))

    stored = make.again(job)
    assert (ended.state, ended.stored, stored.state, stored.attempt) == (state, True, state, attempt)
    assert (stored.finalized_at, stored.holds_key) == (clock.now, False)
    assert (stored.cancel_requested_at, stored.run_after) == (clock.after(-1), job.run_after)
    assert store.claim(make.worker(), "default", 10, now=clock.after(3600)) == []


def test_a_release_after_a_request_cancels(store, make, clock):
    asked, other = make.claimed(make.worker(), count=2)
    update([asked.id], unique_key="key", holds_key=True)
    store.cancel([asked.id], now=clock.advance(1))

    cancelled, released = store.release([asked, other], now=clock.advance(1))

    assert (cancelled.id, cancelled.state, cancelled.finalized_at) == (asked.id, "cancelled", clock.now)
    assert (cancelled.attempt, cancelled.attempted_at, cancelled.holds_key) == (0, None, False)
    assert (released.state, released.finalized_at) == ("available", None)


@pytest.mark.parametrize("max_attempts", [1, 5])
def test_a_rescue_after_a_request_cancels(store, make, clock, max_attempts):
    worker = make.worker()
    job = make.running(worker, max_attempts=max_attempts)
    update([job.id], unique_key="key", holds_key=True)
    store.cancel([job.id], now=clock.advance(1))

    (rescued,) = store.rescue(worker_id=worker, now=clock.advance(1))

    assert (rescued.state, rescued.attempt, rescued.finalized_at) == ("cancelled", 1, clock.now)
    assert (rescued.holds_key, rescued.run_after) == (False, job.run_after)


def test_a_request_after_the_completion_was_stored_changes_nothing(store, make, clock):
    job = make.running(make.worker())
    store.finish([outcome(job)], now=clock.now)
    before = make.again(job)

    assert store.cancel([job.id], now=clock.advance(1)) == [before]


def test_a_request_between_two_attempts_cancels_at_once(store, make, clock):
    job = make.running(make.worker())
    store.finish([outcome(job, RETRY, delay=60.0)], now=clock.now)

    (cancelled,) = store.cancel([job.id], now=clock.now)

    assert (cancelled.state, cancelled.attempt) == ("cancelled", 1)
    assert store.promote(now=clock.after(60)) == []
