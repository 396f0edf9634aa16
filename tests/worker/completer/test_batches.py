"""Every outcome is stored, in few statements; at a backlog, executors wait."""

import threading

from django_jobs.worker import completer as module
from tests.waiting import eventually
from tests.worker.completer.helping import batches, put_all, stored
from tests.worker.fakes import TIMEOUT, Gate, attempted


def test_an_outcome_is_stored_at_once_when_nothing_else_happens(completer, store, told):
    completer.put(attempted(1))
    eventually(lambda: completer.idle)

    assert batches(store) == [[1]]
    assert told == [(1, "completed", True)]


def test_what_piles_up_during_a_write_is_one_batch(completer, store):
    gate = store.before["finish"] = Gate()
    completer.put(attempted(1))
    gate.wait()
    put_all(completer, range(2, 500))
    assert not completer.idle
    gate.open()
    eventually(lambda: completer.idle)

    assert batches(store) == [[1], list(range(2, 500))]
    assert completer.writers == 1


def test_a_batch_is_never_larger_than_its_bound(completer, store, small):
    gate = store.before["finish"] = Gate()
    completer.put(attempted(1))
    gate.wait()
    put_all(completer, range(2, 20))
    gate.open()
    eventually(lambda: completer.idle)

    assert [len(batch) for batch in batches(store)] == [1, 10, 8]


def test_the_bounds_are_those_that_were_measured():
    assert (module.BATCH, module.BACKLOG) == (5000, 10_000)


def test_a_busy_completer_lingers_for_more_and_not_for_ever(completer, store, monkeypatch):
    monkeypatch.setattr(module, "BUSY", 1)
    monkeypatch.setattr(module, "LINGER_SECONDS", TIMEOUT)
    monkeypatch.setattr(module, "LINGER_JOBS", 3)
    completer.put(attempted(1))
    eventually(lambda: batches(store) == [[1]])

    put_all(completer, [2, 3])
    assert batches(store) == [[1]]
    completer.put(attempted(4))
    eventually(lambda: batches(store) == [[1], [2, 3, 4]])

    monkeypatch.setattr(module, "LINGER_SECONDS", 0.01)
    put_all(completer, [5, 6, 7])
    completer.put(attempted(8))
    eventually(lambda: stored(store) == [1, 2, 3, 4, 5, 6, 7, 8])


def test_no_outcome_is_left_behind_by_many_threads(completer, store, told):
    def put(first):
        put_all(completer, range(first, first + 500))

    threads = [threading.Thread(target=put, args=(first,)) for first in range(0, 4000, 500)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    eventually(lambda: completer.idle)

    assert stored(store) == list(range(4000))
    assert sorted(told) == [(id_, "completed", True) for id_ in range(4000)]


def test_single_outcomes_at_any_moment_are_all_stored_without_another_one_to_wake_it(completer, store):
    for id_ in range(300):
        completer.put(attempted(id_))
        eventually(lambda id_=id_: len(store.finished) == id_ + 1, interval=0.0001)


# -- holding back -----------------------------------------------------------------------------------------------------


def test_executors_are_held_back_at_a_backlog_and_go_on_when_there_is_room(completer, store, small):
    gate = store.before["finish"] = Gate()
    completer.put(attempted(0))
    gate.wait()
    put_all(completer, range(1, 20))
    held = threading.Thread(target=put_all, args=(completer, [20, 21]), daemon=True)
    held.start()
    eventually(lambda: len(completer._outcomes) == 20)
    held.join(0.05)
    assert held.is_alive(), "the twentieth that waits should have been held back"
    assert len(completer._outcomes) == 20
    gate.open()
    held.join(TIMEOUT)

    assert not held.is_alive()
    eventually(lambda: completer.idle)
    assert stored(store) == list(range(22))


def test_a_stop_lets_those_go_that_are_held_back(completer, store, small, pauses):
    gate = store.before["finish"] = Gate()
    completer.put(attempted(0))
    gate.wait()
    put_all(completer, range(1, 20))
    held = threading.Thread(target=put_all, args=(completer, [20]), daemon=True)
    held.start()
    eventually(lambda: len(completer._outcomes) == 20)
    completer.stop()
    held.join(TIMEOUT)
    assert not held.is_alive()

    gate.open()
    assert completer.join(TIMEOUT)
    assert stored(store) == list(range(21))
