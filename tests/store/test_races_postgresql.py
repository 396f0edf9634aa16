"""Two statements that meet on the same row: who comes second waits, or skips it, and then sees what was stored."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, transaction

from django_jobs.store.django_session import DjangoSession
from django_jobs.store.outcomes import COMPLETED, RELEASED, RETRY, SNOOZED
from django_jobs.store.rows import NewJob
from tests.store.builders import TIMEOUT, outcome, update, wait_until

pytestmark = pytest.mark.postgresql


@pytest.fixture
def worker(make):
    return make.worker()


@pytest.fixture
def job(make, worker):
    return make.running(worker)


def somebody_waits():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone() == (1,)


def meet(first, second):
    """Run ``first`` in a transaction, then ``second``, which must wait until that commits. What each returned."""
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            done = first()
            waiting = pool.submit(second)
            wait_until(lambda: waiting.done() or somebody_waits(), "the second statement waits for the first")
            assert not waiting.done(), f"the second has not waited: {waiting}"
        return done, waiting.result(TIMEOUT)


def beside(first, second):
    """Run ``first`` in a transaction, and ``second`` beside it. What that returned, and whether it had to wait."""
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            first()
            passing = pool.submit(second)
            wait_until(lambda: passing.done() or somebody_waits(), "the second statement passes by, or waits")
            waits = not passing.done()
        return passing.result(TIMEOUT), waits


def finish(store, job, kind, **more):
    return lambda: store.finish([outcome(job, kind, **more)], now=job.attempted_at)[0]


@pytest.mark.parametrize(
    ("kind", "state"),
    [(COMPLETED, "completed"), (SNOOZED, "cancelled"), (RETRY, "cancelled"), (RELEASED, "cancelled")],
)
def test_a_finish_that_waited_for_a_cancel_request_heeds_it(shared, store, make, clock, job, kind, state):
    _, ended = meet(lambda: shared.cancel([job.id], now=clock.now), finish(store, job, kind, delay=60.0))

    assert (ended.state, ended.stored) == (state, True)
    assert make.again(job).state == state
    assert make.again(job).finalized_at == clock.now


def test_a_release_that_waited_for_a_cancel_request_heeds_it(shared, store, make, clock, job):
    _, (released,) = meet(
        lambda: shared.cancel([job.id], now=clock.now), lambda: store.release([job], now=clock.now)
    )

    assert (released.state, released.attempt, make.again(job)) == ("cancelled", 0, released)


def test_a_release_of_a_pending_job_that_waited_for_a_cancel_leaves_it(shared, store, make, clock):
    job = make.one(pending=True)

    _, (released,) = meet(
        lambda: shared.cancel([job.id], now=clock.now), lambda: store.release_pending([job.id], now=clock.now)
    )

    assert (released.done, released.job.state, make.again(job)) == (False, "cancelled", released.job)


def test_a_finish_that_waited_for_a_rescue_is_late(shared, store, make, clock, worker, job):
    (rescued,), ended = meet(
        lambda: shared.rescue(worker_id=worker, now=clock.now), finish(store, job, COMPLETED, result="1")
    )

    assert (ended.state, ended.stored, ended.job) == ("scheduled", False, make.again(job))
    assert make.again(job).values == rescued.values


@pytest.mark.parametrize("kind", [COMPLETED, RETRY, SNOOZED])
def test_a_finish_that_waited_for_another_one_is_late(shared, store, make, clock, job, kind):
    first, second = meet(finish(shared, job, kind, delay=60.0), finish(store, job, COMPLETED, result="1"))

    assert (first.stored, second.stored, second.state) == (True, False, first.state)
    assert make.again(job).result is None


@pytest.mark.parametrize("kind", [COMPLETED, RETRY])
def test_a_finish_locks_in_the_order_of_ids_in_whatever_order_outcomes_come(
    shared, store, open_store, make, clock, worker, kind
):
    first, held, last = make.claimed(worker, count=3)
    other = open_store()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            shared.cancel([held.id], now=clock.now)
            outcomes = [outcome(job, kind, delay=60.0) for job in (last, held, first)]
            waiting = pool.submit(store.finish, outcomes, clock.now)
            wait_until(somebody_waits, "the finish waits for the row that is held")
            locked = other.locked([first.id, held.id, last.id])
        waiting.result(TIMEOUT)

    assert locked == {first.id, held.id}, "what comes behind the row that it waits for is not locked yet"


def test_a_finish_that_waited_for_a_release_and_a_new_claim_is_late(shared, store, make, clock, worker, job):
    def again():
        shared.release([job], now=clock.now)
        return shared.claim(worker, "default", 1, now=clock.now)

    (new,), ended = meet(again, finish(store, job, COMPLETED))

    assert (ended.state, ended.stored) == ("running", False)
    assert (new.claims, make.again(job).values) == (2, new.values)


def test_a_cancel_that_waited_for_a_claim_asks_the_worker(shared, store, make, clock, worker):
    job = make.one()

    _, (cancelled,) = meet(
        lambda: shared.claim(worker, "default", 1, now=clock.now),
        lambda: store.cancel([job.id], now=clock.now),
    )

    assert (cancelled.state, cancelled.attempt, cancelled.worker_id) == ("running", 1, worker)
    assert cancelled.cancel_requested_at == clock.now
    assert cancelled == make.again(job)


@pytest.mark.parametrize("state", ["running", "available"])
def test_a_cancel_that_waited_for_an_end_changes_nothing(shared, store, make, clock, worker, job, state):
    if state == "available":
        store.release([job], now=clock.now)

    def end():
        claimed = job if state == "running" else shared.claim(worker, "default", 1, now=clock.now)[0]
        return finish(shared, claimed, COMPLETED)()

    _, (cancelled,) = meet(end, lambda: store.cancel([job.id], now=clock.now))

    assert (cancelled.state, cancelled.cancel_requested_at) == ("completed", None)


def test_of_two_retries_the_second_is_told_that_it_was_done(shared, store, make, clock):
    (dead,) = make.finished("failed")

    (first,), (second,) = meet(
        lambda: shared.retry([dead.id], now=clock.now), lambda: store.retry([dead.id], now=clock.after(5))
    )

    assert (first.done, second.done) == (True, False)
    assert second.job.run_after == clock.now


def test_a_cancel_that_waited_for_a_retry_cancels(shared, store, make, clock):
    (dead,) = make.finished("failed")

    _, (cancelled,) = meet(
        lambda: shared.retry([dead.id], now=clock.now), lambda: store.cancel([dead.id], now=clock.after(5))
    )

    assert (cancelled.state, cancelled.finalized_at) == ("cancelled", clock.after(5))


# Those that skip what is locked


def test_a_claim_skips_what_another_transaction_holds(shared, store, make, clock, worker):
    jobs = make.insert(3)
    claimed, waited = beside(
        lambda: shared.cancel([jobs[0].id], now=clock.now),
        lambda: store.claim(worker, "default", 2, now=clock.now),
    )

    assert [job.id for job in claimed] == [jobs[1].id, jobs[2].id]
    assert not waited


def test_a_rescue_skips_what_is_being_finished(shared, store, make, clock, worker):
    job, other = make.claimed(worker, count=2)
    rescued, waited = beside(
        finish(shared, job, COMPLETED), lambda: store.rescue(worker_id=worker, now=clock.now)
    )

    assert [each.id for each in rescued] == [other.id]
    assert make.again(job).state == "completed"
    assert not waited


def test_a_promotion_skips_what_is_being_cancelled(shared, store, make, clock):
    job, other = make.insert(2, delay=5.0)
    promoted, waited = beside(
        lambda: shared.cancel([job.id], now=clock.now), lambda: store.promote(now=clock.after(5))
    )

    assert [each.id for each in promoted] == [other.id]
    assert make.again(job).state == "cancelled"
    assert not waited


def test_a_purge_skips_what_is_being_retried(shared, store, make, clock):
    job, other = make.finished("failed", count=2)
    purged, waited = beside(
        lambda: shared.retry([job.id], now=clock.now),
        lambda: store.purge("failed", 0.0, now=clock.after(5)),
    )

    assert purged == [other.id]
    assert make.again(job).state == "available"
    assert not waited


def test_a_worker_whose_heartbeat_is_being_stored_is_not_lost(shared, store, make, clock, worker):
    late = make.worker()
    clock.advance(31)
    lost, waited = beside(
        lambda: shared.heartbeat(worker, 30.0, now=clock.now), lambda: store.lose_workers(now=clock.now)
    )

    assert [each.id for each in lost] == [late]
    assert store.lose_workers(now=clock.now) == []
    assert not waited


def test_a_worker_that_is_being_purged_waits_for_nobody(shared, store, make, clock, worker):
    store.stop_worker(worker, now=clock.now)
    purged, waited = beside(
        lambda: shared.purge_workers(0.0, now=clock.now), lambda: store.purge_workers(0.0, now=clock.now)
    )

    assert (purged, waited) == ([], False)
    assert store.purge_workers(0.0, now=clock.now) == []


def test_a_job_of_an_open_transaction_is_not_there_yet(shared, store, make, clock, worker):
    with transaction.atomic():
        shared.insert(NewJob("tests.job"), now=clock.now)
        assert store.claim(worker, "default", 1, now=clock.now) == []

    assert len(store.claim(worker, "default", 1, now=clock.now)) == 1


def test_columns_of_somebody_elses_write_survive_a_finish_that_waited(shared, store, make, clock, job):
    def write():
        update([job.id], priority=7, tags=["a"], metadata={"progress": 5})

    _, ended = meet(write, finish(store, job, COMPLETED))

    assert ended.stored
    assert (make.again(job).priority, make.again(job).tags, make.again(job).metadata) == (
        7,
        ["a"],
        {"progress": 5},
    )


def test_a_merge_that_waited_for_another_one_counts_its_bytes(shared, store, make, job):
    patch = (job.id, job.claims)

    _, ((merged, done),) = meet(
        lambda: shared.merge_metadata([(*patch, '{"first":1}')], 12),
        lambda: store.merge_metadata([(*patch, '{"second":2}')], 12),
    )

    assert (done, merged.metadata, make.again(job).metadata) == (False, {"first": 1}, {"first": 1})


def test_a_merge_that_waited_for_another_one_keeps_its_keys(shared, store, make, job):
    """The row is read as it is when it is locked, not as it was when the statement began."""
    patch = (job.id, job.claims)

    _, ((merged, _),) = meet(
        lambda: shared.merge_metadata([(*patch, '{"first":1}')]),
        lambda: store.merge_metadata([(*patch, '{"second":2}')]),
    )

    assert merged.metadata == make.again(job).metadata == {"first": 1, "second": 2}


def test_a_merge_that_waited_for_the_end_is_late(shared, store, make, job):
    _, merged = meet(
        finish(shared, job, COMPLETED), lambda: store.merge_metadata([(job.id, job.claims, '{"a":1}')])
    )

    assert merged == []
    assert make.again(job).metadata == {}


def test_a_deadlock_without_autocommit_is_told_as_it_is(shared, monkeypatch):
    """The transaction has failed by then: the statement sent again would be told of that, and not of the deadlock."""
    import psycopg  # other tests import from here, where there is none

    sent = []

    def circle(self, statement, parameters):
        sent.append(statement.name)
        raise OperationalError("deadlock detected") from psycopg.errors.DeadlockDetected("deadlock detected")

    transaction.set_autocommit(False)
    try:
        monkeypatch.setattr(DjangoSession, "fetch", circle)
        with pytest.raises(OperationalError, match="deadlock"):
            shared.cancel([1])
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert sent == ["cancel"]


def test_a_call_without_autocommit_takes_its_keys_back_to_a_savepoint(shared):
    transaction.set_autocommit(False)
    try:
        with shared.session.savepoint():
            assert connection.in_atomic_block
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
