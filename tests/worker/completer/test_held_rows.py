"""The completer beside rows that somebody else's transaction holds, and with outcomes that are large."""

import threading

import pytest
from django.db import connection, connections, transaction
from django.db.utils import OperationalError

from django_jobs.models import Job
from django_jobs.store.rows import NewJob
from django_jobs.worker import completer as module, held_rows, writing
from django_jobs.worker.completer import Completer
from tests.waiting import eventually
from tests.worker.completer.helping import batches, stored
from tests.worker.fakes import TIMEOUT, Gate, attempted, row


@pytest.fixture
def told():
    return []


@pytest.fixture
def completer(store, told, started, monkeypatch):
    monkeypatch.setattr(held_rows, "ASIDE_SECONDS", 0.01)

    def tell(batch, ended):
        told.extend((each.outcome.id, ended[each.outcome.id].state) for each in batch)

    return started(Completer(store.open, tell))


# -- rows that others hold -------------------------------------------------------------------------------------------


def test_an_outcome_whose_row_is_held_keeps_no_other_waiting(completer, store, told, caplog):
    store.held = {2, 5}
    gate = store.before["finish"] = Gate()
    completer.put(attempted(9))
    gate.wait()
    for id_ in range(1, 7):
        completer.put(attempted(id_))
    gate.open()
    eventually(lambda: stored(store) == [1, 3, 4, 6, 9])

    for id_ in range(10, 20):
        completer.put(attempted(id_))
    eventually(lambda: len(store.finished) == 15)
    assert not completer.idle
    assert "2 outcomes wait for rows that another transaction holds, such as that of job 2" in caplog.text

    store.held = {5}
    eventually(lambda: (2, "completed") in told)
    assert (5, "completed") not in told
    store.held = set()
    eventually(lambda: completer.idle)
    assert sorted(told) == [(id_, "completed") for id_ in (*range(1, 7), 9, *range(10, 20))]


def test_it_is_looked_at_without_waiting_for_it(completer, store):
    store.held = {1}
    completer.put(attempted(1))
    eventually(lambda: len(store.called("locked")) >= 4)

    assert batches(store) == [[1]]
    store.held = set()
    eventually(lambda: completer.idle)
    assert batches(store) == [[1], [1]]


def test_a_later_outcome_of_that_job_waits_with_it(completer, store):
    store.held = {1}
    completer.put(attempted(row(1, claims=1), "retry", delay=5.0))
    eventually(lambda: store.called("locked"))
    completer.put(attempted(row(1, claims=2)))
    completer.put(attempted(2))
    eventually(lambda: stored(store) == [2])

    store.held = set()
    eventually(lambda: completer.idle)
    assert [outcome.claims for outcome in store.finished if outcome.id == 1] == [1, 2]


def test_a_held_row_that_is_free_again_at_once_is_tried_again(completer, store, told, monkeypatch):
    monkeypatch.setattr(writing, "pause_after", lambda failures: 0.0)
    store.held = {1}
    store.before["locked"] = lambda ids: store.held.clear()
    completer.put(attempted(1))
    eventually(lambda: completer.idle)

    assert told == [(1, "completed")]


@pytest.mark.parametrize("times", [1, 3])
def test_an_outage_while_it_is_looked_at_loses_nothing(completer, store, told, monkeypatch, caplog, times):
    monkeypatch.setattr(writing, "pause_after", lambda failures: 0.0)
    store.held = {1}
    completer.put(attempted(1))
    eventually(lambda: store.called("locked"))
    store.faults["locked"] = [OperationalError("away")] * times
    store.held = set()
    eventually(lambda: completer.idle)

    assert told == [(1, "completed")]
    assert caplog.text.count("set aside are not stored yet") == times, "each time it rests"


def test_an_outage_as_it_is_set_aside_loses_nothing(completer, store, told, monkeypatch):
    monkeypatch.setattr(writing, "pause_after", lambda failures: 0.0)
    store.held = {1}
    store.faults["locked"] = [OperationalError("away")]
    completer.put(attempted(1))
    completer.put(attempted(2))
    eventually(lambda: (2, "completed") in told)
    store.held = set()
    eventually(lambda: completer.idle)

    assert sorted(told) == [(1, "completed"), (2, "completed")]


def test_a_stop_stores_what_is_free_in_time(completer, store, told):
    store.held = {1}
    completer.put(attempted(1))
    eventually(lambda: store.called("locked"))
    completer.stop(TIMEOUT)
    looked = len(store.called("locked"))
    eventually(lambda: len(store.called("locked")) > looked)
    assert completer.is_alive()
    store.held = set()

    assert completer.join(TIMEOUT)
    assert (told, completer.lost) == ([(1, "completed")], 0)


def test_a_stop_does_not_wait_longer_than_it_may(completer, store, told, caplog):
    store.held = {1}
    completer.put(attempted(row(1, claims=1), "retry", delay=5.0))
    eventually(lambda: store.called("locked"))
    completer.put(attempted(row(1, claims=2)))
    completer.stop(0.0)

    assert completer.join(TIMEOUT)
    assert completer.lost >= 1
    assert "could not be stored before the end, since another transaction holds their rows" in caplog.text
    assert 1 not in stored(store)


@pytest.mark.postgresql
def test_rows_that_a_site_locks_for_long(open_store, started, monkeypatch):
    """An admin's transaction locks two jobs while they complete, and has all the time in the world."""
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.05)
    monkeypatch.setattr(held_rows, "ASIDE_SECONDS", 0.01)
    real = open_store()
    worker = real.register_worker("host", 1, "[]", 4, "1", 30.0)
    real.insert_many([NewJob("tests.job")] * 500)
    jobs = real.claim(worker.id, "default", 500)
    held = [jobs[3].id, jobs[499].id]
    locked, let_go = threading.Event(), threading.Event()

    def lock():
        with transaction.atomic():
            assert len(Job.objects.select_for_update().filter(pk__in=held)) == 2
            locked.set()
            assert let_go.wait(TIMEOUT)
        connections.close_all()

    thread = threading.Thread(target=lock)
    thread.start()
    assert locked.wait(TIMEOUT)
    completer = started(Completer(open_store, lambda batch, ended: None))
    try:
        for job in jobs:
            completer.put(attempted(job))
        eventually(lambda: Job.objects.filter(state="completed").count() == 498)
        assert set(Job.objects.filter(state="running").values_list("pk", flat=True)) == set(held)
        assert not completer.idle
    finally:
        let_go.set()
        thread.join(TIMEOUT)
    eventually(lambda: completer.idle)

    assert Job.objects.filter(state="completed").count() == 500


@pytest.mark.postgresql
def test_a_row_that_somebody_deletes_just_now_is_held_too(open_store):
    store = open_store()
    first, second, third = store.insert_many([NewJob("tests.job")] * 3)
    with transaction.atomic():
        Job.objects.filter(pk=second.id).delete()
        assert store.locked([first.id, second.id, third.id, 12345678]) == {second.id}

    assert store.locked([first.id, second.id, third.id]) == frozenset()
    with connection.cursor() as cursor:  # and this statement has let go of what it could lock
        cursor.execute("SET lock_timeout = '1s'")
        cursor.execute("UPDATE django_jobs_job SET priority = 1 WHERE id = %s", [first.id])
        cursor.execute("RESET lock_timeout")


# -- large outcomes --------------------------------------------------------------------------------------------------


@pytest.fixture
def narrow(monkeypatch):
    """A statement takes 10,000 characters, and 30,000 may wait."""
    monkeypatch.setattr(module, "BATCH_SIZE", 10_000)
    monkeypatch.setattr(module, "BACKLOG_SIZE", 30_000)


def large(id_, characters=4000, **more):
    return attempted(id_, result="x" * characters, **more)


def test_a_statement_takes_no_more_than_so_many_characters(completer, store, narrow):
    gate = store.before["finish"] = Gate()
    completer.put(attempted(1))
    gate.wait()
    for id_ in range(2, 6):
        completer.put(large(id_))
    completer.put(attempted(6, "failed", errors="y" * 7000))
    completer.put(attempted(7))
    gate.open()
    eventually(lambda: completer.idle)

    assert batches(store) == [[1], [2, 3], [4, 5], [6, 7]]


def test_one_that_is_larger_than_that_goes_alone(completer, store, narrow):
    gate = store.before["finish"] = Gate()
    completer.put(attempted(1))
    gate.wait()
    for outcome in (attempted(2), large(3, 20_000), attempted(4)):
        completer.put(outcome)
    gate.open()
    eventually(lambda: completer.idle)

    assert batches(store) == [[1], [2], [3], [4]]


def test_small_outcomes_are_not_counted(completer, store, narrow):
    gate = store.before["finish"] = Gate()
    completer.put(attempted(1))
    gate.wait()
    for id_ in range(2, 100):
        completer.put(large(id_, 900))
    gate.open()
    eventually(lambda: completer.idle)

    assert [len(batch) for batch in batches(store)] == [1, 98]


def test_executors_are_held_back_by_characters_too(completer, store, narrow):
    gate = store.before["finish"] = Gate()
    completer.put(attempted(1))
    gate.wait()
    for id_ in range(2, 9):
        completer.put(large(id_))
    assert not completer.is_crowded()
    passed = threading.Event()

    def put():
        completer.put(large(9))
        passed.set()

    thread = threading.Thread(target=put, daemon=True)
    thread.start()
    eventually(completer.is_crowded)
    assert not passed.wait(0.05)
    gate.open()
    assert passed.wait(TIMEOUT)
    eventually(lambda: completer.idle)
    thread.join(TIMEOUT)

    assert stored(store) == list(range(1, 10))
    assert completer._size == 0


def test_what_is_put_off_stays_before_what_comes_later(completer, store, narrow):
    gate = store.before["finish"] = Gate()
    completer.put(attempted(9))
    gate.wait()
    completer.put(large(8, 9000))
    completer.put(large(1, 5000))
    completer.put(attempted(row(1, claims=2)))
    gate.open()
    eventually(lambda: completer.idle)

    assert [(outcome.id, outcome.claims) for outcome in store.finished] == [(9, 1), (8, 1), (1, 1), (1, 2)]
