"""Finishing: what each kind of outcome stores, and what comes back."""

import json

import pytest

from django_jobs.store.outcomes import CANCELLED, FAILED, RELEASED, RETRY, SNOOZED
from tests.store.builders import KINDS, errors, outcome, update, write


def test_a_completion_is_stored(store, make, clock):
    worker = make.worker()
    job = make.running(worker)
    clock.advance(3)

    ended = store.finish([outcome(job, result='{"answer": 1e22}')], now=clock.now)

    assert [tuple(each) for each in ended] == [(job.id, "completed", True, None)]
    stored = make.again(job)
    assert (stored.state, stored.finalized_at, repr(stored.result)) == (
        "completed",
        clock.now,
        "{'answer': 1e+22}",
    )
    assert (stored.attempt, stored.claims, stored.worker_id) == (1, 1, worker)
    assert (stored.attempted_at, stored.run_after) == (job.attempted_at, job.run_after)


def test_a_completion_forgets_the_last_error_but_not_the_history(store, make, clock):
    worker = make.worker()
    job = make.running(worker)
    store.finish([outcome(job, RETRY, delay=0.0, error_class="ValueError", errors=errors(1))], now=clock.now)
    (job,) = store.claim(worker, "default", 1, now=clock.now)

    store.finish([outcome(job)], now=clock.now)

    stored = make.again(job)
    assert (stored.error_class, [error["number"] for error in stored.errors]) == (None, [1])


def test_a_failure_with_attempts_left_waits_for_its_backoff(store, make, clock):
    job = make.running(make.worker(), max_attempts=2)
    retry = outcome(job, RETRY, delay=90.5, error_class="ValueError", errors=errors(1))

    (ended,) = store.finish([retry], now=clock.advance(2))

    stored = make.again(job)
    assert (ended.state, stored.state, stored.run_after) == ("scheduled", "scheduled", clock.after(90.5))
    assert (stored.attempt, stored.finalized_at, stored.error_class) == (1, None, "ValueError")
    assert stored.errors == json.loads(errors(1))


@pytest.mark.parametrize("kind", [RETRY, SNOOZED])
@pytest.mark.parametrize("delay", [0.0, -5.0, None])
def test_without_a_delay_it_is_available_at_once(store, make, clock, kind, delay):
    job = make.running(make.worker())

    (ended,) = store.finish([outcome(job, kind, delay=delay)], now=clock.advance(2))

    stored = make.again(job)
    assert (ended.state, stored.state, stored.run_after) == (
        "available",
        "available",
        clock.after(delay or 0),
    )


def test_a_failure_of_the_last_attempt_is_a_dead_letter(store, make, clock):
    worker = make.worker()
    job = make.running(worker, max_attempts=2)
    store.finish([outcome(job, RETRY, delay=0.0)], now=clock.now)
    (job,) = store.claim(worker, "default", 1, now=clock.now)

    (ended,) = store.finish(
        [outcome(job, RETRY, delay=9.0, error_class="KeyError", errors=errors(1, 2))], now=clock.advance(1)
    )

    stored = make.again(job)
    assert (ended.state, stored.state, stored.attempt, stored.finalized_at) == (
        "failed",
        "failed",
        2,
        clock.now,
    )
    assert (stored.error_class, stored.run_after) == ("KeyError", job.run_after)
    assert store.claim(worker, "default", 1, now=clock.after(60)) == []


def test_a_failure_for_good_is_a_dead_letter_with_attempts_left(store, make, clock):
    job = make.running(make.worker(), max_attempts=5)

    (ended,) = store.finish([outcome(job, FAILED, error_class="ValueError")], now=clock.now)

    assert (ended.state, make.again(job).state, make.again(job).attempt) == ("failed", "failed", 1)


@pytest.mark.parametrize("max_attempts", [1, 5])
def test_a_snooze_gives_the_attempt_back(store, make, clock, max_attempts):
    job = make.running(make.worker(), max_attempts=max_attempts)

    (ended,) = store.finish([outcome(job, SNOOZED, delay=60.0)], now=clock.now)

    stored = make.again(job)
    assert (ended.state, stored.state, stored.run_after) == ("scheduled", "scheduled", clock.after(60))
    assert (stored.attempt, stored.claims) == (0, 1)


@pytest.mark.parametrize("max_attempts", [1, 5])
def test_a_release_gives_the_attempt_back_and_keeps_the_place(store, make, clock, max_attempts):
    job = make.running(make.worker(), max_attempts=max_attempts)

    (ended,) = store.finish([outcome(job, RELEASED)], now=clock.advance(60))

    stored = make.again(job)
    assert (ended.state, stored.state, stored.attempt, stored.run_after) == (
        "available",
        "available",
        0,
        job.run_after,
    )


def test_a_cancellation_is_stored(store, make, clock):
    job = make.running(make.worker())

    (ended,) = store.finish(
        [outcome(job, CANCELLED, error_class="Stop", errors=errors(1))], now=clock.advance(1)
    )

    stored = make.again(job)
    assert (ended.state, stored.state, stored.finalized_at) == ("cancelled", "cancelled", clock.now)
    assert (stored.attempt, stored.error_class, len(stored.errors)) == (1, "Stop", 1)


def test_an_outcome_without_errors_keeps_those_of_before(store, make, clock):
    job = make.running(make.worker())
    write(job, "errors", errors(1, 2))
    update([job.id], error_class="ValueError")

    store.finish([outcome(job, SNOOZED, delay=1.0)], now=clock.now)

    stored = make.again(job)
    assert ([error["number"] for error in stored.errors], stored.error_class) == ([1, 2], "ValueError")


def test_every_kind_at_once(store, make, clock):
    jobs = make.claimed(make.worker(), count=12, max_attempts=3)
    last = make.running(make.worker(), max_attempts=1)
    delays = {RETRY: 10.0, SNOOZED: 20.0}
    outcomes = [
        outcome(
            job,
            KINDS[index % 6],
            delay=delays.get(KINDS[index % 6]),
            result=f"[{index}]" if index % 6 == 0 else None,
        )
        for index, job in enumerate(jobs)
    ]

    ended = store.finish([outcome(last, RETRY, delay=1.0), *reversed(outcomes)], now=clock.advance(1))

    states = ["completed", "scheduled", "failed", "scheduled", "cancelled", "available"]
    assert {each.id: (each.state, each.stored) for each in ended} == {
        last.id: ("failed", True),
        **{job.id: (states[index % 6], True) for index, job in enumerate(jobs)},
    }
    stored = store.get(job.id for job in jobs)
    assert [job.state for job in stored] == states * 2
    assert [job.attempt for job in stored] == [1, 1, 1, 0, 1, 0] * 2
    assert [job.run_after for job in stored[:6]] == [
        jobs[0].run_after, clock.after(10), jobs[0].run_after, clock.after(20), jobs[0].run_after, jobs[0].run_after,
    ]  # fmt: skip
    assert [job.finalized_at == clock.now for job in stored] == [True, False, True, False, True, False] * 2
    assert [job.result for job in stored] == [
        [0],
        None,
        None,
        None,
        None,
        None,
        [6],
        None,
        None,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize("whole_rows", [False, True])
def test_what_comes_back_is_the_row_as_it_now_is(store, make, clock, whole_rows):
    first, lost = make.claimed(make.worker(), count=2)
    update([lost.id], state="failed", finalized_at=clock.now)

    ended = {each.id: each for each in store.finish([outcome(first), outcome(lost)], clock.now, whole_rows)}

    assert (ended[first.id].state, ended[first.id].stored) == ("completed", True)
    assert ended[first.id].job == (make.again(first) if whole_rows else None)
    assert (ended[lost.id].state, ended[lost.id].stored, ended[lost.id].job) == (
        "failed",
        False,
        make.again(lost),
    )


def test_nothing_to_finish(store):
    assert store.finish([]) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_is_held_only_by_a_job_that_will_run(store, make, clock, kind):
    job = make.running(make.worker())
    update([job.id], unique_key="key", holds_key=True)

    store.finish([outcome(job, kind, delay=5.0)], now=clock.now)

    assert make.again(job).holds_key == (kind in (RETRY, SNOOZED, RELEASED))
    assert make.again(job).unique_key == "key"
