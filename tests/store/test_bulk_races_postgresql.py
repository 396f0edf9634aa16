"""An operator's update or delete that meets another statement on a row: the second sees what was stored."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from tests.store.builders import TIMEOUT, update, wait_until
from tests.store.test_races_postgresql import meet, somebody_waits

pytestmark = pytest.mark.postgresql


def test_an_update_that_waited_for_a_claim_changes_nothing(shared, store, make, clock):
    job, worker = make.one(), make.worker()

    _, (answer,) = meet(
        lambda: shared.claim(worker, "default", 1, now=clock.now),
        lambda: store.update([job.id], priority=5, queue_name="other", delay=60.0, now=clock.now),
    )

    assert (answer.done, answer.job.state, answer.job.priority) == (False, "running", 0)
    assert make.again(job) == answer.job


def test_an_update_that_waited_for_a_retry_does_not_break(shared, store, make, clock):
    (job,) = make.finished("failed")

    _, (answer,) = meet(
        lambda: shared.retry([job.id], now=clock.now),
        lambda: store.update([job.id], priority=5, delay=60.0, now=clock.now),
    )

    # It was not waiting when the statement began: left alone, and told as it is now.
    assert (answer.done, answer.job.state, answer.job) == (False, "available", make.again(job))


def test_an_update_that_waited_for_an_attempt_is_compared_with_it(shared, store, make, clock):
    job, worker = make.one(), make.worker()

    def attempt():
        shared.claim(worker, "default", 1, now=clock.now)
        update([job.id], state="scheduled", worker=None)

    _, (answer,) = meet(attempt, lambda: store.update([job.id], max_attempts=1, now=clock.now))

    assert (answer.done, answer.job.max_attempts) == (False, 5)


def test_a_delete_that_waited_for_a_claim_leaves_it(shared, store, make, clock):
    job, worker = make.one(), make.worker()

    _, deleted = meet(
        lambda: shared.claim(worker, "default", 1, now=clock.now),
        lambda: store.delete([job.id], now=clock.now),
    )

    assert (deleted, make.again(job).state) == ([], "running")


def test_a_purge_by_id_that_waited_for_a_retry_leaves_it(shared, store, make, clock):
    (job,) = make.finished("failed")

    _, deleted = meet(
        lambda: shared.retry([job.id], now=clock.now), lambda: store.delete([job.id], "failed", clock.now)
    )

    assert (deleted, make.again(job).state) == ([], "available")


@pytest.mark.parametrize("second", ["update", "delete"])
def test_rows_are_locked_in_the_order_of_their_ids(store, make, clock, second):
    """Given in another order, it stands at the first id, and has taken none of those behind it."""
    ids = [job.id for job in make.insert(3)]

    def change():
        if second == "update":
            return store.update(ids[::-1], priority=1, now=clock.now)
        return store.delete(ids[::-1], now=clock.now)

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            lock(ids[0])
            waiting = pool.submit(change)
            wait_until(somebody_waits, "the statement waits for the first row")
            lock(ids[2], "NOWAIT")
        assert len(waiting.result(TIMEOUT)) == 3


def lock(job_id, how=""):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT FROM django_jobs_job WHERE id = %s FOR UPDATE {how}", [job_id])
