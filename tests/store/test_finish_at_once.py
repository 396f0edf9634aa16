"""As many completion batches at once as a store says that it takes: disjoint ones, each on a connection of a pool."""

import queue
import threading

import pytest
from django.db import transaction

from django_jobs.store import django_store
from tests.store.builders import in_threads, outcome, wait_until

SIZE = 200


@pytest.fixture
def pool(open_store):
    """Stores on connections of their own, for whoever needs one."""
    pool = queue.SimpleQueue()
    for _ in range(open_store().completion_concurrency):
        pool.put(open_store())
    return pool


def test_how_many_a_store_takes(store, shared, database_name):
    assert store.completion_concurrency == (2 if database_name == "postgresql" else 1)
    assert store.guarantees().concurrent_completion_writes == store.completion_concurrency


def test_in_a_transaction_it_takes_one(transactional_db):
    with transaction.atomic():
        assert django_store("default").completion_concurrency == 1


def test_the_advertised_number_of_disjoint_batches_is_stored_at_once(pool, store, make, clock):
    number = store.completion_concurrency
    jobs = make.claimed(make.worker(), count=SIZE * number)
    barrier = threading.Barrier(number)

    def write(share):
        def run():
            one = pool.get()
            barrier.wait(60)
            ended = one.finish([outcome(job) for job in share], now=clock.now)
            pool.put(one)
            return ended

        return run

    # Each batch has ids from the whole range, as executors leave them: the rows of one lie between the other's.
    answers = in_threads(*(write(jobs[start::number]) for start in range(number)))

    assert all(item.stored and item.state == "completed" for ended in answers for item in ended)
    assert [len(ended) for ended in answers] == [SIZE] * number
    assert {job.state for job in store.get([job.id for job in jobs])} == {"completed"}


@pytest.mark.postgresql
def test_they_really_run_at_once(pool, store, open_store, make, clock):
    """One row of each batch is held until every statement is under way."""
    number = store.completion_concurrency
    jobs = make.claimed(make.worker(), count=SIZE * number)
    shares = [jobs[start::number] for start in range(number)]
    holder = open_store().session.connection

    def write(share):
        def run():
            return pool.get().finish([outcome(job) for job in share], now=clock.now)

        return run

    def all_wait():
        (waiting,) = store.session.connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ).fetchone()
        return waiting == number

    def release():
        wait_until(all_wait, "every batch waits for its row")
        holder.execute("ROLLBACK")

    holder.execute("BEGIN")
    holder.execute(
        "SELECT id FROM django_jobs_job WHERE id = ANY(%s) FOR UPDATE", [[share[0].id for share in shares]]
    )
    *answers, _ = in_threads(*map(write, shares), release)

    assert all(item.stored for ended in answers for item in ended)
