"""Unique keys on PostgreSQL while another transaction is open: who comes second waits for what becomes of the first."""

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import OperationalError, connection, connections, transaction

from django_jobs.store import django_store
from django_jobs.store.outcomes import FAILED
from django_jobs.store.part import DEADLOCKS
from django_jobs.store.postgresql import PostgreSQLStore
from django_jobs.store.rows import NewJob
from tests.store.builders import TIMEOUT, Recorder, outcome, update, wait_until

pytestmark = pytest.mark.postgresql

KEYED = NewJob("tests.job", unique_key="key")
HOUR = KEYED._replace(unique_for=3600)


@pytest.fixture(params=["insert", "insert_many"])
def insert(request, clock):
    """Insert one job by that operation."""

    def one(store, new=KEYED, seconds=0.0):
        now = clock.after(seconds)
        return (
            store.insert(new, now=now) if request.param == "insert" else store.insert_many([new], now=now)[0]
        )

    return one


def waiting():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0]


def meet(first, second, roll_back=False):
    """Run ``first`` in a transaction, then ``second``, which must wait until that ends. What each returned."""
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            done = first()
            future = pool.submit(second)
            wait_until(lambda: future.done() or waiting() == 1, "the second waits for the first")
            assert not future.done(), f"the second has not waited: {future}"
            transaction.set_rollback(roll_back)
        return done, future.result(TIMEOUT)


# The first is being inserted


def test_what_waited_for_a_commit_is_told_of_the_job(shared, store, insert):
    before = store.session.statements
    first, second = meet(lambda: insert(shared), lambda: insert(store))

    assert (second.is_duplicate, second.id) == (True, first.id)
    assert store.session.statements - before == 2


def test_what_waited_for_a_rollback_is_inserted(shared, store, insert):
    before = store.session.statements
    first, second = meet(lambda: insert(shared), lambda: insert(store), roll_back=True)

    assert store.session.statements - before == 1
    assert (second.is_duplicate, second.id == first.id) == (False, False)
    assert store.get([first.id, second.id]) == [second]


def test_what_waited_for_a_savepoint_that_is_rolled_back_is_inserted(shared, store, insert):
    def first():
        with transaction.atomic():
            job = insert(shared)
            transaction.set_rollback(True)
        shared.insert(NewJob("tests.other"))
        return job

    with transaction.atomic():
        first()
        assert not insert(store).is_duplicate  # nobody has it, so nobody is waited for


def test_many_of_which_one_waited(shared, store, clock):
    new = [KEYED._replace(unique_key=key) for key in ("c", "key", "a", "b")]
    store.insert(new[2], now=clock.now)

    first, jobs = meet(
        lambda: shared.insert(KEYED, now=clock.now), lambda: store.insert_many(new, now=clock.now)
    )

    assert [job.is_duplicate for job in jobs] == [False, True, True, False]
    assert jobs[1].id == first.id
    assert [job.unique_key for job in jobs] == ["c", "key", "a", "b"]


def test_a_key_of_a_period_waits_too(shared, store, insert):
    first, second = meet(lambda: insert(shared, HOUR), lambda: insert(store, HOUR, 60.0))

    assert (second.is_duplicate, second.id) == (True, first.id)


def test_of_many_that_come_at_once_one_is_inserted(open_store, clock):
    stores = [open_store() for _ in range(6)]
    barrier = threading.Barrier(len(stores))

    def one(store):
        barrier.wait(TIMEOUT)
        return store.insert(KEYED, now=clock.now)

    with ThreadPoolExecutor(len(stores)) as pool:
        jobs = list(pool.map(one, stores))

    assert sorted(job.is_duplicate for job in jobs) == [False] + [True] * 5
    assert len({job.id for job in jobs}) == 1


def test_two_calls_with_the_same_keys_in_different_orders_do_not_wait_in_a_circle(shared, open_store, clock):
    a, middle, z = (KEYED._replace(unique_key=key) for key in "amz")
    one, other = open_store(), open_store()

    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            shared.insert(middle, now=clock.now)
            first = pool.submit(one.insert_many, [a, middle, z], clock.now)
            wait_until(lambda: waiting() == 1, "the first call waits")
            second = pool.submit(other.insert_many, [z, middle, a], clock.now)
            wait_until(lambda: waiting() == 2, "the second call waits")
        jobs, same = first.result(TIMEOUT), second.result(TIMEOUT)

    assert [job.is_duplicate for job in jobs] == [False, True, False]
    assert [job.is_duplicate for job in same] == [True, True, True]
    assert same == jobs[::-1]


# The first is being changed


def test_what_waited_for_a_claim_is_told_of_the_running_job(shared, store, make, insert, clock):
    worker, job = make.worker(), make.one(unique_key="key")

    _, second = meet(lambda: shared.claim(worker, "default", 1, now=clock.now), lambda: insert(store))

    assert (second.is_duplicate, second.id, second.state) == (True, job.id, "running")


@pytest.mark.parametrize("roll_back", [False, True])
def test_what_waited_for_an_end_is_inserted_if_that_holds(shared, store, make, insert, clock, roll_back):
    job = make.running(make.worker(), unique_key="key")

    _, second = meet(
        lambda: shared.finish([outcome(job)], now=clock.now), lambda: insert(store), roll_back=roll_back
    )

    assert (second.is_duplicate, second.id == job.id) == (roll_back, roll_back)


def test_a_job_that_ends_and_enqueues_itself_again_is_not_told_of_as_it_was(
    shared, store, make, insert, clock
):
    job = make.running(make.worker(), unique_key="key")

    def again():
        shared.finish([outcome(job)], now=clock.now)
        return shared.insert(KEYED, now=clock.now)

    successor, second = meet(again, lambda: insert(store))

    assert (second.is_duplicate, second.id) == (True, successor.id)


def test_a_row_that_somebody_only_locked_is_told_of_without_end(shared, store, make, insert, clock):
    job = make.one(unique_key="key")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT FROM django_jobs_job WHERE id = %s FOR UPDATE", [job.id])
        second = insert(store)

    assert (second.is_duplicate, second.id) == (True, job.id)


# The caller's transaction stays open


@pytest.mark.parametrize("kind", ["completed", "retry"])
def test_whoever_finishes_the_job_does_not_wait_for_the_caller(shared, store, make, insert, clock, kind):
    job = make.running(make.worker(), unique_key="key")
    with transaction.atomic():
        assert insert(shared).is_duplicate
        assert insert(shared, KEYED._replace(replace=True)).is_duplicate

        (ended,) = store.finish([outcome(job, kind, delay=5.0)], now=clock.now)
        assert ended.stored


def test_whoever_claims_the_job_does_not_wait_either(shared, store, make, insert, clock):
    make.one(unique_key="key")
    with transaction.atomic():
        assert insert(shared).is_duplicate
        assert len(store.claim(make.worker(), "default", 1, now=clock.now)) == 1


class ClaimsFirst(Recorder):
    """Somebody claims the job just before it is replaced."""

    def fetch(self, statement, parameters):
        if statement.name == "replace":
            self.claim()
        return super().fetch(statement, parameters)

    def savepoint(self):
        return self.session.savepoint()


def test_a_job_that_is_claimed_before_it_is_replaced_is_not_kept_locked(shared, store, make, insert, clock):
    worker, job = make.worker(), make.one(unique_key="key", args="[1]")
    shared.session = ClaimsFirst(shared.session)
    shared.session.claim = lambda: store.claim(worker, "default", 1, now=clock.now)

    with transaction.atomic():
        second = insert(shared, KEYED._replace(args="[2]", replace=True))
        (ended,) = store.finish([outcome(make.again(job))], now=clock.now)

    assert (second.is_duplicate, second.args, second.state, ended.stored) == (True, [1], "running", True)


def test_of_two_that_replace_the_second_wins(shared, store, make, insert):
    make.one(unique_key="key", args="[1]")

    _, second = meet(
        lambda: insert(shared, KEYED._replace(args="[2]", replace=True)),
        lambda: insert(store, KEYED._replace(args="[3]", replace=True)),
    )

    assert (second.is_duplicate, second.args, make.again(second).args) == (True, [3], [3])


# Retrying


@pytest.fixture
def dead(make):
    """Two dead letters, the first of which once held the key."""
    jobs = make.finished("failed", count=2)
    update([jobs[0].id], unique_key="key")
    return jobs


@pytest.mark.parametrize("roll_back", [False, True])
def test_a_retry_that_waited_for_a_twin_breaks_no_batch(shared, store, dead, clock, roll_back):
    _, answers = meet(
        lambda: shared.insert(KEYED, now=clock.now),
        lambda: store.retry([job.id for job in dead], now=clock.now),
        roll_back=roll_back,
    )

    assert [answer.done for answer in answers] == [roll_back, True]
    assert answers[0].reason == ("" if roll_back else "Another job holds its unique key 'key'.")


def test_nor_the_transaction_that_the_retry_is_in(shared, store, dead, clock):
    def retry():
        try:
            with transaction.atomic():
                answers = django_store("default").retry([job.id for job in dead], now=clock.now)
                return answers, django_store("default").insert(NewJob("tests.job"), now=clock.now)
        finally:
            connections.close_all()

    _, (answers, job) = meet(lambda: shared.insert(KEYED, now=clock.now), retry)

    assert [answer.done for answer in answers] == [False, True]
    assert len(store.get([job.id])) == 1


def test_of_two_twins_retried_apart_one_gets_the_key(shared, store, make, clock):
    twins = make.finished("failed", count=2)
    update([job.id for job in twins], unique_key="key")

    (first,), (second,) = meet(
        lambda: shared.retry([twins[0].id], now=clock.now), lambda: store.retry([twins[1].id], now=clock.now)
    )

    assert (first.done, second.done, second.job.state) == (True, False, "failed")


# Several keys of one call, in a transaction that keeps what it has taken


def in_a_transaction(new, now):
    """Insert in a transaction, on Django's connection of this thread."""
    try:
        with transaction.atomic():
            return django_store("default").insert_many(new, now=now)
    finally:
        connections.close_all()


def test_keys_that_are_asked_for_again_are_not_taken_out_of_order(open_store, make, clock, monkeypatch):
    """The first key changes hands while this waits for it, and has the second one; another call has the first by now,
    and waits for the second."""
    a, b = (KEYED._replace(unique_key=key) for key in "ab")
    worker, theirs = make.worker(), []
    ask = PostgreSQLStore._insert_unique

    def interrupted(self, jobs, now):
        told = ask(self, jobs, now)
        if not theirs and told[0] is None:
            make.store.finish(
                [outcome(job, FAILED) for job in make.store.claim(worker, "first", 1, now=clock.now)],
                now=clock.now,
            )
            theirs.append(pool.submit(in_a_transaction, [a, b], clock.now))
            wait_until(lambda: waiting() == 1, "the other has the first key, and waits for the second")
        return told

    with ThreadPoolExecutor(2) as pool:
        first = open_store()
        with first.session.connection.transaction():
            first.insert(a._replace(queue_name="first"), now=clock.now)
            monkeypatch.setattr(PostgreSQLStore, "_insert_unique", interrupted)
            mine = pool.submit(in_a_transaction, [a, b], clock.now)
            wait_until(lambda: waiting() == 1, "this waits for the first key")
        jobs = mine.result(TIMEOUT)
        others = theirs[0].result(TIMEOUT)

    assert [job.is_duplicate for job in others] == [False, False]
    assert [(job.is_duplicate, job.id) for job in jobs] == [(True, job.id) for job in others]


def test_a_deadlock_of_a_retry_and_an_insert_reaches_neither(store, make, clock):
    """The retry has locked a row, and wants a key; the insert has that key, and would replace the row's arguments."""
    z = make.one(unique_key="z")
    failed = make.finished("failed", unique_key="a")[0]
    update([failed.id], holds_key=False)
    new = [KEYED._replace(unique_key=key, replace=True) for key in "az"]

    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT FROM django_jobs_job WHERE id = %s FOR UPDATE", [z.id])
            retrying = pool.submit(store.retry, [z.id, failed.id], now=clock.now)
            wait_until(lambda: waiting() == 1, "the retry waits for the row, and is the next to have it")
            inserting = pool.submit(in_a_transaction, new, clock.now)
            wait_until(lambda: waiting() == 2, "the insert has the first key, and waits for the row as well")
        jobs, retried = inserting.result(TIMEOUT), retrying.result(TIMEOUT)

    assert [job.unique_key for job in jobs] == ["a", "z"]
    assert jobs[1].id == z.id
    assert [answer.job.id for answer in retried] == [z.id, failed.id]
    assert len([job for job in store.get({failed.id, jobs[0].id}) if job.holds_key]) == 1


@pytest.mark.parametrize(
    ("statement", "operation"),
    [
        ("_insert_unique", lambda store: store.insert_many([KEYED._replace(unique_key=key) for key in "ab"])),
        ("_retry", lambda store: store.retry([1])),
    ],
    ids=["insert_many", "retry"],
)
def test_a_deadlock_over_what_the_transaction_had_before_is_told_soon(
    shared, monkeypatch, statement, operation
):
    """The way back to the savepoint lets nothing of that go: each try ends in another one, after deadlock_timeout."""
    tries = []

    def circle(*args):
        tries.append(args)
        raise OperationalError("deadlock detected") from psycopg.errors.DeadlockDetected("deadlock detected")

    monkeypatch.setattr(PostgreSQLStore, statement, circle)
    with pytest.raises(OperationalError, match="deadlock"), transaction.atomic():
        operation(shared)
    assert len(tries) == 1 + DEADLOCKS


# All at once


def test_bulk_inserts_finishes_and_purges_overlap_without_a_deadlock(open_store, make, clock):
    """In rounds, at whose beginning all keys are free: so both who enqueue take them at once."""
    rounds, keys = 10, [f"key {number}" for number in range(200)]
    worker = make.worker()
    barrier = threading.Barrier(4)

    def in_rounds(act, at_the_end=lambda number: None):
        try:
            for number in range(rounds):
                barrier.wait(TIMEOUT)
                act(number)
                barrier.wait(TIMEOUT)
                at_the_end(number)
        except BaseException:
            barrier.abort()
            raise

    def enqueue(store, order):
        in_rounds(lambda _: store.insert_many([KEYED._replace(unique_key=key) for key in order]))

    def work(store):
        def finish(number):
            jobs = store.claim(worker, "default", 40)
            store.finish([outcome(job, FAILED if number % 3 == 0 else "completed") for job in jobs])
            return jobs

        def finish_all(number):
            while finish(number):
                pass

        in_rounds(finish, finish_all)

    def tidy(store):
        def purge_and_retry(number):
            store.purge("completed", 0.0)
            ids = [job.id for job in store.insert_many([KEYED._replace(unique_key=key) for key in keys[::3]])]
            store.retry([*ids, *range(max(ids) - 50, max(ids))])

        in_rounds(purge_and_retry)

    with ThreadPoolExecutor(4) as pool:
        for future in [
            pool.submit(enqueue, open_store(), keys),
            pool.submit(enqueue, open_store(), keys[::-1]),
            pool.submit(work, open_store()),
            pool.submit(tidy, open_store()),
        ]:
            future.result(TIMEOUT)
