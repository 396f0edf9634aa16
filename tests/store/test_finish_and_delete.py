"""Finishing jobs that are not kept: what is told of each is what a finish stores, and the row is gone with it."""

import pytest
from django.db import transaction

from django_jobs.models import Job
from django_jobs.store.outcomes import CANCELLED, COMPLETED, FAILED, RETRY, SNOOZED
from tests.store.builders import KINDS, columns, errors, outcome, update
from tests.store.test_races_postgresql import meet

ALL = ("completed", "failed", "cancelled")


def there(*jobs):
    """Which of them still exist."""
    return set(Job.objects.filter(pk__in=[job.id for job in jobs]).values_list("pk", flat=True))


def as_it_is(job):
    """All but what differs between any two jobs."""
    return {name: value for name, value in columns(job).items() if name not in ("id", "unique_key")}


@pytest.mark.parametrize("unique_for", [None, 3600])
@pytest.mark.parametrize("max_attempts", [1, 5])
@pytest.mark.parametrize("requested", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_job_is_told_as_finish_stores_it(store, make, clock, kind, requested, max_attempts, unique_for):
    worker = make.worker()
    options = {"max_attempts": max_attempts, "unique_for": unique_for}
    twin, job = (
        make.running(worker, **options, unique_key=key if unique_for else None) for key in ("a", "b")
    )
    if requested:
        store.cancel([twin.id, job.id], now=clock.now)
    update([twin.id, job.id], error_class="KeyError", metadata={"a": 1})
    clock.advance(3)
    more = {"delay": 60.0, "error_class": "ValueError", "errors": errors(1, 2), "result": '{"a": 1e22}'}

    (expected,) = store.finish([outcome(twin, kind, **more)], now=clock.now, whole_rows=True)
    (ended,) = store.finish_and_delete(
        [outcome(job, kind, **more)], {job.id: ALL}, now=clock.now, whole_rows=True
    )

    assert (ended.id, ended.state, ended.stored) == (job.id, expected.state, True)
    assert as_it_is(ended.job) == as_it_is(expected.job)
    spared = ended.state == "completed" and unique_for
    assert there(job) == ({job.id} if spared or ended.state not in ALL else set())
    if there(job):
        assert make.again(job) == ended.job


def test_a_job_that_holds_its_period_is_spared_until_that_is_over(store, make, clock):
    worker = make.worker()
    running, over = (make.running(worker, unique_key=key, unique_for=3600) for key in ("a", "b"))

    def finish(job):
        return store.finish_and_delete([outcome(job)], {job.id: ALL}, now=clock.now)

    finish(running)
    clock.now = over.key_until
    finish(over)

    assert there(running, over) == {running.id}
    assert make.again(running).holds_key


def test_only_the_states_that_are_not_kept_are_deleted_whatever_is_in_the_batch(store, make, clock):
    jobs = make.claimed(make.worker(), count=6, max_attempts=1)
    kinds = [COMPLETED, FAILED, RETRY, SNOOZED, CANCELLED, COMPLETED]
    unkept = {
        jobs[0].id: ["completed"],
        jobs[1].id: ["completed"],
        jobs[2].id: ["failed", "completed"],
        jobs[3].id: ALL,
        jobs[4].id: ["cancelled"],
    }
    batch = [outcome(job, kind, delay=60.0) for job, kind in zip(jobs, kinds, strict=True)]

    ended = store.finish_and_delete(batch[::-1], unkept, now=clock.now)

    assert sorted(tuple(item) for item in ended) == [
        (job.id, state, True, None)
        for job, state in zip(
            jobs, ["completed", "failed", "failed", "scheduled", "cancelled", "completed"], strict=True
        )
    ]
    assert there(*jobs) == {jobs[1].id, jobs[3].id, jobs[5].id}


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_that_was_lost_is_neither_finished_nor_deleted(store, make, clock, kind):
    worker = make.worker()
    old = make.running(worker)
    store.finish([outcome(old, RETRY, delay=0.0)], now=clock.now)
    (new,) = store.claim(worker, "default", 1, now=clock.now)

    (ended,) = store.finish_and_delete([outcome(old, kind, delay=9.0)], {old.id: ALL}, now=clock.now)

    assert (ended.state, ended.stored, ended.job) == ("running", False, new)
    assert make.again(old) == new


@pytest.mark.parametrize("state", ["available", "scheduled", "completed", "failed"])
def test_what_no_longer_runs_is_left_alone(store, make, clock, state):
    job = make.running(make.worker())
    finalized_at = clock.now if state in ALL else None
    update([job.id], state=state, finalized_at=finalized_at)

    (ended,) = store.finish_and_delete([outcome(job)], {job.id: ALL}, now=clock.now)

    assert (ended.state, ended.stored, there(job)) == (state, False, {job.id})


def test_the_same_batch_sent_again_finds_nothing(store, make, clock):
    jobs = make.claimed(make.worker(), count=3)
    batch, unkept = [outcome(job) for job in jobs], {job.id: ALL for job in jobs}
    assert [each.stored for each in store.finish_and_delete(batch, unkept, now=clock.now)] == [True] * 3

    assert store.finish_and_delete(batch, unkept, now=clock.now) == []


def test_nothing_is_no_statement(store):
    before = store.session.statements

    assert store.finish_and_delete([], {}) == []
    assert store.session.statements == before


def test_it_is_part_of_the_callers_transaction(shared, store, make, clock):
    jobs = make.claimed(make.worker(), count=2, queue_name="mail")
    with transaction.atomic():
        ended = shared.finish_and_delete(
            [outcome(jobs[0]), outcome(jobs[1], RETRY)], {jobs[0].id: ALL}, now=clock.now
        )
        assert there(*jobs) == {jobs[1].id}
        transaction.set_rollback(True)

    assert [item.stored for item in ended] == [True, True]
    assert [make.again(job) for job in jobs] == jobs


@pytest.mark.postgresql
@pytest.mark.parametrize("unkept", [["cancelled"], ["failed"]])
def test_one_that_waited_for_a_cancel_request_heeds_it(shared, store, make, clock, unkept):
    job = make.running(make.worker(), max_attempts=1)

    _, (ended,) = meet(
        lambda: shared.cancel([job.id], now=clock.now),
        lambda: store.finish_and_delete(
            [outcome(job, FAILED)], {job.id: unkept}, now=clock.now, whole_rows=True
        ),
    )

    assert (ended.state, ended.stored, ended.job.cancel_requested_at) == ("cancelled", True, clock.now)
    assert there(job) == (set() if unkept == ["cancelled"] else {job.id})


@pytest.mark.postgresql
def test_one_that_waited_for_a_rescue_is_late(shared, store, make, clock):
    worker = make.worker()
    job = make.running(worker)

    (rescued,), (ended,) = meet(
        lambda: shared.rescue(worker_id=worker, now=clock.now),
        lambda: store.finish_and_delete([outcome(job)], {job.id: ALL}, now=clock.now),
    )

    assert (ended.state, ended.stored) == ("scheduled", False)
    assert make.again(job).values == rescued.values


@pytest.mark.sqlite
def test_on_sqlite_both_statements_or_none(store, make, clock, monkeypatch):
    job = make.running(make.worker())
    run = store._run

    def fail(name, *args, **parameters):
        if name == "finish_and_delete":
            raise OSError("the disk is full")
        return run(name, *args, **parameters)

    monkeypatch.setattr(store, "_run", fail)
    with pytest.raises(OSError, match="full"):
        store.finish_and_delete([outcome(job)], {job.id: ALL}, now=clock.now)

    assert make.again(job) == job
