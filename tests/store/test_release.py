"""Giving claims back that never started: as if they had not been claimed."""

import json

import pytest

from django_jobs.models import Job
from django_jobs.store.outcomes import RETRY
from django_jobs.store.rows import ATTEMPT, ERRORS
from tests.store.builders import columns, error, outcome, update


def without(job, *names):
    return {name: value for name, value in columns(job).items() if name not in names}


def test_a_released_job_is_as_it_was_before_the_claim(store, make, clock):
    worker = make.worker()
    before = make.one(priority=3, queue_name="mail", args="[1]")
    (job,) = store.claim(worker, "mail", 1, now=clock.advance(5))

    (released,) = store.release([job], now=clock.advance(5))

    assert without(released, "claims", "worker_id") == without(before, "claims", "worker_id")
    assert released == make.again(before)
    assert released.claims == 1  # never given back: it is what fences the claim


def test_the_order_is_as_it_was_before_the_claim(store, make, clock):
    worker = make.worker()
    made = [
        make.one(priority=priority, run_after=clock.after(-age)) for priority in (0, 5) for age in (0, 9, 3)
    ]
    order = [job.id for job in store.claim(worker, "default", 10, now=clock.now)]
    assert len(order) == len(made)

    store.release(store.get(order[::-1]), now=clock.advance(60))

    assert [job.id for job in store.claim(worker, "default", 10, now=clock.now)] == order


def test_the_time_of_the_attempt_before_comes_back(store, make, clock):
    worker = make.worker()
    job = make.running(worker)
    started = job.attempted_at
    failed = json.dumps([error(1, attempted_at=started.isoformat())])
    store.finish([outcome(job, RETRY, delay=0.0, errors=failed)], now=clock.advance(1))
    before = make.again(job)
    (job,) = store.claim(worker, "default", 1, now=clock.advance(60))

    (released,) = store.release([job], now=clock.now)

    assert (released.attempt, released.attempted_at) == (1, started)
    assert without(released, "claims") == without(before, "claims")


def test_after_a_rescue_the_time_of_the_attempt_before_comes_back(store, make, clock):
    worker, other = make.worker(), make.worker()
    started = make.running(worker).attempted_at
    store.rescue(worker_id=worker, spread=0.0, now=clock.advance(1))
    (job,) = store.claim(other, "default", 1, now=clock.advance(60))

    (released,) = store.release([job], now=clock.now)

    assert (released.attempt, released.attempted_at) == (1, started)


def test_the_time_of_an_attempt_before_an_operators_retry_is_put_back(store, make, clock):
    worker = make.worker()
    job = make.running(worker)
    failed = json.dumps([error(1, attempted_at=job.attempted_at.isoformat())])
    store.finish([outcome(job, "failed", errors=failed)], now=clock.now)
    (retried,) = store.retry([job.id], now=clock.advance(60))
    (again,) = store.claim(worker, "default", 1, now=clock.advance(60))

    (released,) = store.release([again], now=clock.now)

    assert (retried.job.attempt, released.attempt) == (0, 0)
    assert released.attempted_at == retried.job.attempted_at == job.attempted_at


@pytest.mark.parametrize(
    "text", ["{}", '"x"', "[1]", "[{}]", '[{"attempted_at": 5}]', '[{"attempted_at": "soon"}]', "[]", "null"]
)
def test_odd_errors_do_not_keep_a_job_from_being_released(store, make, clock, text):
    worker = make.worker()
    job, neighbour = make.claimed(worker, count=2)
    with_errors = store.get([job.id])[0]
    values = list(with_errors.values)
    values[ATTEMPT], values[ERRORS] = 2, text
    odd = type(with_errors)(tuple(values))

    assert [each.state for each in store.release([odd, neighbour], now=clock.now)] == [
        "available",
        "available",
    ]


def test_a_release_sent_again_changes_nothing(store, make, clock):
    job = make.running(make.worker())
    store.release([job], now=clock.now)
    before = make.again(job)

    assert store.release([job], now=clock.advance(1)) == []
    assert make.again(job) == before
    assert before.attempt == 0


def test_a_release_of_an_earlier_claim_changes_nothing(store, make, clock):
    worker = make.worker()
    old = make.running(worker)
    store.release([old], now=clock.now)
    (new,) = store.claim(worker, "default", 1, now=clock.now)

    assert store.release([old], now=clock.now) == []
    assert make.again(old) == new


@pytest.mark.parametrize("state", ["available", "scheduled", "completed", "failed", "cancelled"])
def test_only_a_running_job_is_released(store, make, clock, state):
    job = make.running(make.worker())
    finished = state in ("completed", "failed", "cancelled")
    update([job.id], state=state, finalized_at=clock.now if finished else None)

    assert store.release([job], now=clock.now) == []
    assert (make.again(job).state, make.again(job).attempt) == (state, 1)


def test_a_deleted_row_is_dropped_and_the_rest_is_released(store, make, clock):
    jobs = make.claimed(make.worker(), count=3)
    Job.objects.filter(pk=jobs[1].id).delete()

    assert [job.id for job in store.release(jobs, now=clock.now)] == [jobs[0].id, jobs[2].id]


def test_a_job_with_one_attempt_can_be_released_again_and_again(store, make, clock):
    worker = make.worker()
    make.one(max_attempts=1)
    for count in range(1, 4):
        (job,) = store.claim(worker, "default", 1, now=clock.now)
        (released,) = store.release([job], now=clock.now)
        assert (job.attempt, released.attempt, released.claims) == (1, 0, count)


def test_a_released_job_keeps_its_key(store, make, clock):
    job = make.running(make.worker())
    update([job.id], unique_key="key", holds_key=True)

    (released,) = store.release([job], now=clock.now)

    assert released.holds_key


def test_nothing_to_release(store):
    assert store.release([]) == []
