"""Wake-ups on PostgreSQL: short hints, once for each queue and transaction, when it commits and only then.

``+queue``: there is an available job. ``@``: a scheduled one. ``!worker``: a running one is to be cancelled.
``~``: schedules have changed.
"""

import psycopg
import pytest
from django.db import connection, transaction

from django_jobs.store import django_store
from django_jobs.store.outcomes import CANCELLED, COMPLETED, RELEASED, RETRY, SNOOZED
from django_jobs.store.rows import NewJob
from django_jobs.store.schedules import Tick
from tests.store.builders import outcome

pytestmark = pytest.mark.postgresql


@pytest.fixture
def hints(transactional_db):
    """Ask for the hints since the last time that it was asked, in the order of sending."""
    parameters = connection.get_connection_params()
    for key in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(key, None)
    with psycopg.connect(**parameters, autocommit=True) as listener:
        listener.execute("LISTEN django_jobs")

        def ask():
            # A commit sends before it returns, and the listener's own round trip comes after: nothing is on its way.
            listener.execute("SELECT 1")
            return [notification.payload for notification in listener.notifies(timeout=0)]

        yield ask


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ({}, {"+mail"}),
        ({"delay": -1.0}, {"+mail"}),
        ({"delay": 5.0}, {"@"}),
        ({"run_after": -5}, {"+mail"}),
        ({"run_after": 5}, {"@"}),
        ({"pending": True}, set()),
        ({"pending": True, "delay": 5.0}, set()),
    ],
)
def test_inserting(store, clock, hints, when, expected):
    if "run_after" in when:
        when = {"run_after": clock.after(when["run_after"])}
    new = NewJob("tests.job", "mail", **when)

    store.insert(new, now=clock.now)
    assert set(hints()) == expected

    store.insert_many([new, new], now=clock.now)
    assert set(hints()) >= expected


def test_many_inserted_send_one_hint_for_each_queue(store, clock, hints):
    queues = ["mail", "default", "mail", 'a "b" \\c, {d}', "é"] * 100
    new = [NewJob("tests.job", queue, index % 3) for index, queue in enumerate(queues)]

    store.insert_many([*new, NewJob("tests.job", "later", delay=5.0)], now=clock.now)

    assert sorted(hints()) == sorted(["+mail", "+default", '+a "b" \\c, {d}', "+é", "@"])


def test_of_unique_jobs_only_those_that_are_inserted_send_hints(store, clock, hints):
    keyed = [NewJob("tests.job", queue, unique_key=queue) for queue in ("a", "b", "c")]
    store.insert(keyed[0], now=clock.now)
    store.insert(NewJob("tests.job", unique_key="later", delay=5.0), now=clock.now)
    assert sorted(hints()) == ["+a", "@"]

    store.insert(keyed[0], now=clock.now)
    store.insert_many(keyed[:1], now=clock.now)
    store.insert(NewJob("tests.job", unique_key="pending", pending=True), now=clock.now)
    assert hints() == []

    waiting = NewJob("tests.job", "c", unique_key="pending too", pending=True)
    store.insert_many([*keyed, waiting, NewJob("tests.job", "b")], now=clock.now)
    assert sorted(hints()) == ["+b", "+c"]


def test_replacing(store, clock, hints):
    new = NewJob("tests.job", "mail", unique_key="key", replace=True)
    store.insert(new, now=clock.now)
    hints()

    store.insert(new._replace(delay=5.0), now=clock.now)
    assert hints() == ["@"]
    store.insert(new, now=clock.now)
    assert hints() == ["+mail"]


def test_releasing_pending_jobs(store, make, clock, hints):
    now, later = make.one(queue_name="mail", pending=True), make.one(pending=True, delay=5.0)
    assert hints() == []

    store.release_pending([now.id, later.id], now=clock.now)

    assert sorted(hints()) == ["+mail", "@"]


def test_one_transaction_sends_each_hint_once_when_it_commits(shared, clock, hints):
    with transaction.atomic():
        for _ in range(3):
            shared.insert(NewJob("tests.job", "mail"), now=clock.now)
            shared.insert(NewJob("tests.job", "later", delay=5.0), now=clock.now)
            shared.insert_many([NewJob("tests.job", "mail")] * 3, now=clock.now)
        assert hints() == []

    assert sorted(hints()) == ["+mail", "@"]


def test_a_rollback_sends_nothing(shared, clock, hints):
    with transaction.atomic():
        shared.insert(NewJob("tests.job", "mail"), now=clock.now)
        transaction.set_rollback(True)
    assert hints() == []

    with transaction.atomic():
        shared.insert(NewJob("tests.job", "kept"), now=clock.now)
        with transaction.atomic():
            shared.insert_many([NewJob("tests.job", "dropped")], now=clock.now)
            transaction.set_rollback(True)
    assert hints() == ["+kept"]


@pytest.mark.parametrize(
    ("kind", "delay", "expected"),
    [
        (COMPLETED, None, []),
        (CANCELLED, None, []),
        (RELEASED, None, ["+mail"]),
        (RETRY, 0.0, ["+mail"]),
        (RETRY, 5.0, ["@"]),
        (SNOOZED, 0.0, ["+mail"]),
        (SNOOZED, 5.0, ["@"]),
    ],
)
def test_finishing(store, make, clock, hints, kind, delay, expected):
    jobs = make.claimed(make.worker(), count=3, queue_name="mail")
    hints()

    store.finish([outcome(job, kind, delay=delay) for job in jobs], now=clock.now)

    assert hints() == expected


def test_a_finish_that_stores_nothing_sends_nothing(store, make, clock, hints):
    job = make.running(make.worker())
    store.release([job], now=clock.now)
    hints()

    store.finish([outcome(job, RETRY, delay=0.0)], now=clock.now)

    assert hints() == []


def test_claiming_and_purging_send_nothing(store, make, clock, hints):
    worker = make.worker()
    make.insert(3)
    make.finished("failed", queue_name="other")
    hints()

    store.claim(worker, "default", 2, now=clock.now)
    store.purge("failed", 0.0, now=clock.now)
    store.heartbeat(worker, 30.0, now=clock.now)

    assert hints() == []


def test_releasing(store, make, clock, hints):
    worker = make.worker()
    jobs = [*make.claimed(worker, count=2, queue_name="a"), *make.claimed(worker, count=2, queue_name="b")]
    store.cancel([job.id for job in jobs[2:]], now=clock.now)
    hints()

    store.release(jobs, now=clock.now)

    assert hints() == ["+a"]  # those of the other queue were cancelled


def test_cancelling_tells_the_workers_that_run_them(store, make, clock, hints):
    first, second = make.worker(), make.worker()
    running = [*make.claimed(first, count=2), *make.claimed(second, count=2)]
    waiting = make.insert(2)
    done = make.finished("completed")
    hints()

    store.cancel([job.id for job in (*running, *waiting, *done)], now=clock.now)
    assert sorted(hints()) == sorted([f"!{first}", f"!{second}"])

    store.cancel([job.id for job in (*waiting, *done)], now=clock.now)
    assert hints() == []


def test_retrying(store, make, clock, hints):
    dead = make.finished("failed", queue_name="mail")
    refused = make.one(queue_name="other")
    hints()

    store.retry([dead[0].id, refused.id], now=clock.now)

    assert hints() == ["+mail"]


def test_promoting(store, make, clock, hints):
    make.insert(3, queue_name="a", delay=1.0)
    make.insert(3, queue_name="b", delay=2.0)
    make.insert(3, queue_name="c", delay=60.0)
    hints()

    store.promote(now=clock.advance(5))

    assert sorted(hints()) == ["+a", "+b"]


@pytest.mark.parametrize(("spread", "expected"), [(0.0, ["+mail"]), (5.0, ["@"])])
def test_rescuing(store, make, clock, hints, spread, expected):
    worker = make.worker()
    make.claimed(worker, count=3, queue_name="mail")
    (last,) = make.claimed(worker, queue_name="other", max_attempts=1)
    hints()

    store.rescue(worker_id=worker, spread=spread, now=clock.now)

    assert hints() == expected
    assert make.again(last).state == "failed"


def test_a_store_told_not_to_notify_sends_nothing(open_store, make, clock, hints):
    quiet = open_store(notify=False)
    worker = make.worker()
    (dead,) = make.finished("failed")
    hints()

    new = NewJob("tests.job", "mail")
    django_store("default", notify=False).insert(new, now=clock.now)
    quiet.insert_many([new._replace(delay=1.0), new], now=clock.now)
    first, second = quiet.claim(worker, "mail", 2, now=clock.now)
    quiet.finish([outcome(first, RETRY, delay=0.0)], now=clock.now)
    quiet.cancel([second.id], now=clock.now)
    quiet.release([second], now=clock.now)
    quiet.retry([dead.id], now=clock.now)
    quiet.promote(now=clock.after(5))
    quiet.claim(worker, "mail", 2, now=clock.now)
    quiet.rescue(worker_id=worker, now=clock.now)

    assert hints() == []


def test_the_longest_hint_is_far_below_what_a_notification_holds(store, clock, hints):
    queue = "\N{PILE OF POO}" * 100

    store.insert(NewJob("tests.job", queue), now=clock.now)

    (hint,) = hints()
    assert hint == f"+{queue}"
    assert len(hint.encode()) < 1000


def test_listening(store, open_store, clock):
    session = open_store().session
    heard = session.listen(
        timeout=10, on_listening=lambda: store.insert(NewJob("tests.job", "mail"), now=clock.now)
    )

    assert list(heard) == ["+mail"]
    assert list(session.listen(timeout=0)) == []


def test_schedules(store, make, clock, hints):
    schedule = make.schedule()
    assert hints() == ["~"]
    make.schedule()
    assert hints() == []

    new = NewJob("tests.job", "mail")
    store.tick_schedule(Tick(schedule, clock.now, clock.after(300), new, "{}"), now=clock.now)
    assert hints() == ["+mail"]
    store.run_schedule(schedule.id, new, "{}", now=clock.now)
    assert hints() == ["+mail"]

    store.pause_schedule(schedule.key, True, now=clock.now)
    assert hints() == ["~"]
    store.pause_schedule(schedule.key, False, now=clock.now)
    assert hints() == ["~"]


def test_of_jobs_that_are_not_kept_only_those_that_wait_again_send_hints(store, make, clock, hints):
    jobs = make.claimed(make.worker(), count=4, queue_name="mail")
    hints()
    kinds = [(COMPLETED, None), (RETRY, 0.0), (RETRY, 5.0), (CANCELLED, None)]
    batch = [outcome(job, kind, delay=delay) for job, (kind, delay) in zip(jobs, kinds, strict=True)]

    store.finish_and_delete(
        batch, {job.id: ["completed", "failed", "cancelled"] for job in jobs}, now=clock.now
    )

    assert sorted(hints()) == ["+mail", "@"]
