"""What the tables themselves refuse, whoever writes."""

import pytest
from django.db import IntegrityError

from django_jobs.models import Job
from tests.store.builders import update

FINISHED = ["completed", "failed", "cancelled"]
LIVE = ["pending", "scheduled", "available", "running"]


@pytest.fixture
def job(make):
    return make.one(max_attempts=3)


def refuses(job, **values):
    with pytest.raises(IntegrityError):
        update([job.id], **values)


@pytest.mark.parametrize("state", ["", "Completed", "done", "discarded"])
@pytest.mark.parametrize("finalized", [False, True])
def test_an_unknown_state(job, clock, state, finalized):
    refuses(job, state=state, finalized_at=clock.now if finalized else None)


@pytest.mark.parametrize("state", FINISHED)
def test_a_finished_job_without_its_end(job, clock, state):
    refuses(job, state=state)
    update([job.id], state=state, finalized_at=clock.now)


@pytest.mark.parametrize("state", LIVE)
def test_a_live_job_with_an_end(job, make, clock, state):
    worker = make.worker()
    refuses(job, state=state, worker=worker, finalized_at=clock.now)
    update([job.id], state=state, worker=worker)


@pytest.mark.parametrize("state", [*LIVE, *FINISHED])
@pytest.mark.parametrize("attempt", [-1, 4, 32_000])
def test_attempts_below_zero_or_above_the_most(job, make, clock, state, attempt):
    refuses(
        job,
        state=state,
        worker=make.worker(),
        finalized_at=clock.now if state in FINISHED else None,
        attempt=attempt,
    )


@pytest.mark.parametrize("state", ["pending", "scheduled", "available"])
def test_a_waiting_job_with_no_attempt_left(job, state):
    refuses(job, state=state, attempt=3)
    update([job.id], state=state, attempt=2)


@pytest.mark.parametrize("state", ["running", *FINISHED])
def test_another_one_may_have_used_them_all(job, make, clock, state):
    update(
        [job.id],
        state=state,
        attempt=3,
        worker=make.worker(),
        finalized_at=clock.now if state in FINISHED else None,
    )


@pytest.mark.parametrize("max_attempts", [0, -1])
def test_no_attempts_at_all(job, max_attempts):
    refuses(job, max_attempts=max_attempts)


def test_fewer_attempts_than_were_spent(job):
    update([job.id], attempt=2)
    refuses(job, max_attempts=2)


@pytest.mark.parametrize("priority", [-101, 101, 32_000])
def test_a_priority_out_of_range(job, priority):
    refuses(job, priority=priority)


@pytest.mark.parametrize("priority", [-100, 0, 100])
def test_a_priority_in_range(job, priority):
    update([job.id], priority=priority)


def test_a_running_job_without_a_worker(job):
    refuses(job, state="running", worker=None)


def test_a_worker_that_need_not_exist(job):
    update([job.id], state="running", worker=987_654_321)


def test_holding_no_key(job):
    refuses(job, holds_key=True)


def test_two_holders_of_one_key(make):
    first, second, other = make.insert(3)
    update([first.id, second.id, other.id], unique_key="key")
    update([first.id], holds_key=True)
    update([other.id], unique_key="another key", holds_key=True)

    refuses(second, holds_key=True)
    update([first.id], holds_key=False)
    update([second.id], holds_key=True)


def test_two_queues_or_leaderships_of_one_name(store, clock):
    from django_jobs.models import Leadership, Queue

    store.upsert_queue("mail", now=clock.now)
    with pytest.raises(IntegrityError):
        Queue.objects.create(name="mail", created_at=clock.now, updated_at=clock.now)
    store.acquire_leadership("keeper", "a", 30.0, now=clock.now)
    with pytest.raises(IntegrityError):
        Leadership.objects.create(name="keeper", holder="b", acquired_at=clock.now, expires_at=clock.now)


@pytest.mark.parametrize(
    "column",
    [
        "name",
        "queue_name",
        "args",
        "kwargs",
        "state",
        "attempt",
        "claims",
        "run_after",
        "created_at",
        "holds_key",
    ],
)
def test_what_every_job_has(job, column):
    with pytest.raises(IntegrityError):
        Job.objects.filter(pk=job.id).update(**{column: None})
