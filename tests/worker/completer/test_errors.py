"""Writes that the database refuses are tried again until it takes them."""

import threading

import pytest
from django.db.utils import (
    DatabaseError,
    DataError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
)

from django_jobs.worker import writing
from tests.waiting import eventually
from tests.worker.completer.helping import batches, put_all, stored
from tests.worker.fakes import TIMEOUT, Gate, attempted

AWAY = [OperationalError("away"), InterfaceError("closed"), OSError("unreachable")]
OURS_TO_WAIT_FOR = [
    ProgrammingError("no such table, until the migration is through"),
    InternalError("cannot execute UPDATE in a read-only transaction"),
    NotSupportedError("no"),
    DatabaseError("no"),
]


@pytest.mark.parametrize("error", AWAY + OURS_TO_WAIT_FOR, ids=lambda error: type(error).__name__)
def test_a_write_that_fails_is_tried_again_with_back_off(completer, store, told, pauses, error, caplog):
    store.faults["finish"] = [error] * 4
    completer.put(attempted(1))
    eventually(lambda: completer.idle)

    assert pauses == [1, 2, 3, 4]
    assert told == [(1, "completed", True)]
    assert "1 outcomes are not stored yet (4 in a row)" in caplog.text


def test_a_wake_up_does_not_skip_the_back_off(completer, store, monkeypatch):
    monkeypatch.setattr(writing, "pause_after", lambda failures: TIMEOUT)
    store.faults["finish"] = [OperationalError("away")]
    completer.put(attempted(1))
    eventually(lambda: batches(store) == [[1]])
    put_all(completer, range(2, 50))

    assert batches(store) == [[1]]


@pytest.mark.parametrize("error", AWAY + OURS_TO_WAIT_FOR, ids=lambda error: type(error).__name__)
def test_a_long_outage_loses_and_blames_nothing(completer, store, told, pauses, error):
    """Good outcomes must not become dead letters because the server was a standby for a while."""
    away = threading.Event()
    away.set()

    def check(outcomes):
        if away.is_set():
            raise error

    store.before["finish"] = check
    put_all(completer, range(1, 9))
    eventually(lambda: len(pauses) > 40)
    away.clear()
    eventually(lambda: completer.idle)

    assert stored(store) == list(range(1, 9))
    assert {outcome.kind for outcome in store.finished} == {"completed"}
    assert sorted(told) == [(id_, "completed", True) for id_ in range(1, 9)]
    assert completer.lost == 0


def test_after_an_outage_what_has_waited_is_written_in_few_statements(completer, store, pauses):
    away = threading.Event()
    away.set()

    def check(outcomes):
        if away.is_set():
            raise OperationalError("away")

    gate = store.before["finish"] = Gate()
    completer.put(attempted(0))
    gate.wait()
    put_all(completer, range(1, 1001))
    store.before["finish"] = check
    gate.open()
    eventually(lambda: len(pauses) > 30)
    before = len(batches(store))
    away.clear()
    eventually(lambda: completer.idle)

    assert len(batches(store)) - before <= 20


def test_a_batch_that_is_too_large_for_the_server_is_halved_until_it_is_not(completer, store, pauses):
    def check(outcomes):
        if len(outcomes) > 30:
            raise OperationalError("out of memory")

    gate = store.before["finish"] = Gate()
    completer.put(attempted(0))
    gate.wait()
    store.before["finish"] = check
    put_all(completer, range(1, 101))
    gate.open()
    eventually(lambda: completer.idle)

    assert stored(store) == list(range(101))
    assert {outcome.kind for outcome in store.finished} == {"completed"}


@pytest.mark.parametrize("error", AWAY, ids=lambda error: type(error).__name__)
def test_what_was_stored_though_the_answer_was_lost_counts_as_stored(completer, store, told, pauses, error):
    store.late_faults["finish"] = [error]
    completer.put(attempted(1))
    eventually(lambda: completer.idle)

    assert told == [(1, "completed", True)]
    assert len(batches(store)) == 2


@pytest.mark.parametrize(
    ("kind", "delay", "state"),
    [("completed", None, "completed"), ("failed", None, "failed"), ("cancelled", None, "cancelled"),
     ("retry", 5.0, "scheduled"), ("retry", 0.0, "available"), ("snoozed", 5.0, "scheduled")],
)  # fmt: skip
def test_so_it_is_with_every_outcome(completer, store, told, pauses, kind, delay, state):
    store.late_faults["finish"] = [OperationalError("the answer is lost")]
    completer.put(attempted(1, kind, delay))
    eventually(lambda: completer.idle)

    assert told == [(1, state, True)]


def test_so_it_is_when_the_batch_is_halved_afterwards(completer, store, told, pauses):
    gate = store.before["finish"] = Gate()
    completer.put(attempted(0))
    gate.wait()
    put_all(completer, [1, 2])
    store.late_faults["finish"] = [None, OperationalError("the answer is lost")]
    store.late_faults["finish"] = []
    store.before.clear()
    calls = []

    def lose(outcomes):
        calls.append(len(outcomes))
        if len(calls) == 2:
            raise OperationalError("the answer is lost")

    def refuse(outcomes):
        if len(calls) == 2 and len(outcomes) == 2:
            raise DataError("one of them")

    store.after["finish"], store.before["finish"] = lose, refuse
    gate.open()
    eventually(lambda: completer.idle)

    assert sorted(told) == [(0, "completed", True), (1, "completed", True), (2, "completed", True)]


def test_a_claim_that_was_rescued_meanwhile_does_not_count_as_stored(completer, store, told, pauses):
    """The answer to the first try was an error, and another worker's keeper has rescued the job since."""
    lost = attempted(1, "completed")
    store.finished.append(attempted(1, "retry", 5.0).outcome)  # what ended the claim was not this
    store.faults["finish"] = [OperationalError("away")]
    completer.put(lost)
    eventually(lambda: completer.idle)

    assert told == [(1, "scheduled", False)]


def test_a_job_that_is_gone_is_told_as_gone_and_the_others_are_stored(completer, store, told):
    store.gone = {2}
    gate = store.before["finish"] = Gate()
    completer.put(attempted(1))
    gate.wait()
    put_all(completer, [2, 3])
    gate.open()
    eventually(lambda: completer.idle)

    assert told == [(1, "completed", True), (2, None, None), (3, "completed", True)]
