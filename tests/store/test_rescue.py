"""Rescue: ending the claims of workers that are gone, and of nobody else."""

import datetime as dt

import pytest

from django_jobs.models import Worker
from django_jobs.store.base import WORKER_LOST
from tests.store.builders import outcome, update


def ids(jobs):
    return [job.id for job in jobs]


def test_the_jobs_of_a_worker_whose_lease_ran_out_come_back(store, make, clock):
    worker = make.worker(lease=30)
    job = make.running(worker, max_attempts=3)
    store.lose_workers(now=clock.advance(31))

    (rescued,) = store.rescue(spread=0.0, reason="It died.", now=clock.now)

    assert (rescued.id, rescued.state, rescued.run_after) == (job.id, "available", job.run_after)
    assert (rescued.attempt, rescued.claims, rescued.finalized_at) == (1, 1, None)
    assert rescued.error_class == WORKER_LOST
    assert rescued.errors == [
        {
            "number": 1,
            "attempt": 1,
            "at": clock.now.isoformat(),
            "attempted_at": job.attempted_at.isoformat(),
            "worker": worker,
            "class": WORKER_LOST,
            "message": "It died.",
            "traceback": "",
        }
    ]
    assert rescued == make.again(job)
    assert store.rescue(now=clock.now) == []


def test_a_live_workers_jobs_are_let_be_also_when_it_is_late(store, make, clock):
    worker = make.worker(lease=30)
    job = make.running(worker)

    assert store.rescue(now=clock.advance(3600)) == []  # nobody took it for lost yet
    assert make.again(job) == job


def test_a_heartbeat_in_time_prevents_the_rescue(store, make, clock):
    worker = make.worker(lease=30)
    job = make.running(worker)
    store.heartbeat(worker, 30.0, now=clock.advance(29))
    store.lose_workers(now=clock.advance(29))

    assert store.rescue(now=clock.now) == []
    assert make.again(job) == job


def test_a_stopped_workers_jobs_come_back(store, make, clock):
    worker = make.worker()
    job = make.running(worker)
    store.stop_worker(worker, now=clock.now)

    assert ids(store.rescue(now=clock.now)) == [job.id]


def test_the_jobs_of_a_worker_without_a_row_come_back(store, make, clock):
    worker, alive = make.worker(), make.worker()
    jobs = make.claimed(worker, count=2)
    kept = make.running(alive)
    Worker.objects.filter(pk=worker).delete()

    assert ids(store.rescue(now=clock.now)) == ids(jobs)
    assert make.again(kept) == kept


def test_one_worker_can_be_rescued_at_once_while_its_lease_holds(store, make, clock):
    worker, other, lost = make.worker(), make.worker(), make.worker(lease=1)
    mine, theirs, gone = make.claimed(worker, count=3), make.running(other), make.running(lost)
    store.lose_workers(now=clock.advance(2))

    assert ids(store.rescue(worker_id=worker, spread=0.0, now=clock.now)) == ids(mine)
    assert make.again(theirs) == theirs
    assert make.again(gone) == gone
    assert ids(store.rescue(now=clock.now)) == [gone.id]


def test_a_job_that_completed_before_the_rescue_is_let_be(store, make, clock):
    worker = make.worker(lease=30)
    done, lost = make.claimed(worker, count=2)
    store.finish([outcome(done)], now=clock.advance(31))
    store.lose_workers(now=clock.now)
    before = make.again(done)

    assert ids(store.rescue(now=clock.now)) == [lost.id]
    assert make.again(done) == before


def test_a_job_claimed_again_by_a_live_worker_is_let_be(store, make, clock):
    lost, alive = make.worker(lease=30), make.worker(lease=3600)
    job = make.running(lost)
    store.lose_workers(now=clock.advance(31))
    store.rescue(spread=0.0, now=clock.now)
    (again,) = store.claim(alive, "default", 1, now=clock.now)

    assert store.rescue(now=clock.now) == []
    assert make.again(job) == again


@pytest.mark.parametrize("state", ["pending", "scheduled", "available", "completed", "failed", "cancelled"])
def test_only_running_jobs_are_rescued(store, make, clock, state):
    worker = make.worker()
    job = make.running(worker)
    finished = state in ("completed", "failed", "cancelled")
    update([job.id], state=state, finalized_at=clock.now if finished else None)
    before = make.again(job)

    assert store.rescue(worker_id=worker, now=clock.now) == []
    assert make.again(job) == before


def test_a_job_that_kills_every_worker_becomes_a_dead_letter(store, make, clock):
    make.one(max_attempts=3)
    seen = []
    for _ in range(3):
        (job,) = store.claim(make.worker(lease=30), "default", 10, now=clock.now)
        store.lose_workers(now=clock.advance(31))
        (job,) = store.rescue(spread=5.0, now=clock.now)
        seen.append((job.attempt, job.state))
        store.promote(now=clock.advance(5))

    assert seen == [(1, "scheduled"), (2, "scheduled"), (3, "failed")]
    assert (job.attempt, job.max_attempts, job.finalized_at) == (3, 3, clock.after(-5))
    assert [(error["number"], error["attempt"]) for error in job.errors] == [(1, 1), (2, 2), (3, 3)]
    assert store.claim(make.worker(), "default", 10, now=clock.after(3600)) == []


def test_rescued_jobs_come_back_spread_out(store, make, clock):
    worker = make.worker()
    make.claimed(worker, count=200)

    rescued = store.rescue(worker_id=worker, spread=10.0, now=clock.now)

    assert {job.state for job in rescued} == {"scheduled"}
    moments = [job.run_after for job in rescued]
    a_millisecond = dt.timedelta(milliseconds=1)
    assert clock.now - a_millisecond <= min(moments) <= clock.after(1)
    assert clock.after(9) <= max(moments) <= clock.after(10) + a_millisecond
    assert len(set(moments)) > 150


@pytest.mark.parametrize("spread", [0.000001, 0.001, 86400.0])
def test_any_spread_is_a_time(store, make, clock, spread):
    worker = make.worker()
    make.claimed(worker, count=20)

    rescued = store.rescue(worker_id=worker, spread=spread, now=clock.now)

    assert len(rescued) == 20
    assert all(-0.001 <= (job.run_after - clock.now).total_seconds() <= spread + 0.001 for job in rescued)


def test_the_limit_is_never_exceeded_and_the_rest_follows(store, make, clock):
    workers = [make.worker(lease=30) for _ in range(3)]
    wanted = {job.id for worker in workers for job in make.claimed(worker, count=5)}
    store.lose_workers(now=clock.advance(31))

    counts, found = [], set()
    while rescued := store.rescue(limit=4, now=clock.now):
        counts.append(len(rescued))
        found.update(ids(rescued))

    assert counts == [4, 4, 4, 3]
    assert found == wanted


def test_jobs_behind_a_thousand_of_a_live_worker_are_found(store, make, clock):
    alive, lost = make.worker(lease=3600), make.worker(lease=30)
    make.claimed(alive, count=1000)
    job = make.running(lost)
    make.claimed(make.worker(lease=3600), count=10)
    store.lose_workers(now=clock.advance(31))

    assert ids(store.rescue(limit=1, now=clock.now)) == [job.id]


def test_a_rescued_job_keeps_its_key_while_it_will_run(store, make, clock):
    worker = make.worker()
    again, dead = make.running(worker, max_attempts=2), make.running(worker, max_attempts=1)
    update([again.id], unique_key="a", holds_key=True)
    update([dead.id], unique_key="b", holds_key=True)

    rescued = store.rescue(worker_id=worker, now=clock.now)

    assert [(job.state, job.holds_key) for job in rescued] == [("scheduled", True), ("failed", False)]
