"""The completer starts, stops, and starts again."""

import pytest
from django.db.utils import OperationalError

from django_jobs.worker import parts, writing
from django_jobs.worker.completer import Completer
from tests.waiting import eventually
from tests.worker.completer.helping import batches, claim_of, put_all, started_double, stored
from tests.worker.fakes import TIMEOUT, Gate, attempted


def test_a_stop_writes_everything_first(store, told, started, small):
    completer = started(Completer(store.open, told))
    gate = store.before["finish"] = Gate()
    completer.put(attempted(0))
    gate.wait()
    put_all(completer, range(1, 20))
    completer.stop()
    assert completer.is_alive()
    gate.open()

    assert completer.join(TIMEOUT)
    assert stored(store) == list(range(20))
    assert len(told) == 20
    assert store.closed == 1


def test_a_stop_of_two_writers_writes_everything_first(double, told, started, small):
    first, second = Gate(), Gate()
    double.gates = {1: first, 2: second}
    completer = started_double(double, told, started)
    completer.put(claim_of(1, 1, "retry", delay=5.0))
    first.wait()
    put_all(completer, range(2, 12))
    second.wait()
    completer.put(claim_of(1, 2))
    put_all(completer, range(20, 27))
    completer.stop()
    first.open()
    second.open()

    assert completer.join(TIMEOUT)
    assert sorted(stored(double)) == [1, *range(1, 12), *range(20, 27)]
    assert double.closed == 2


def test_a_stop_waits_for_what_the_other_writer_has_of_the_same_job(double, told, started, small):
    first, second = Gate(), Gate()
    double.gates = {1: first, 2: second}
    completer = started_double(double, told, started)
    completer.put(attempted(1))
    first.wait()
    completer.put(claim_of(2, 1, "retry", delay=5.0))
    put_all(completer, range(3, 12))
    second.wait()
    completer.put(claim_of(2, 2))
    completer.stop()
    first.open()
    eventually(lambda: 1 in stored(double))
    second.open()

    assert completer.join(TIMEOUT)
    assert [outcome.claims for outcome in double.finished if outcome.id == 2] == [1, 2]


def test_a_stop_while_the_database_is_away_has_an_end_and_says_what_is_lost(
    store, told, started, pauses, caplog
):
    completer = started(Completer(store.open, told))

    def away(outcomes):
        raise OperationalError("away")

    store.before["finish"] = away
    put_all(completer, range(1, 4))
    eventually(lambda: len(pauses) > 3)
    completer.stop(timeout=0.05)

    assert completer.join(TIMEOUT)
    assert completer.lost == 3
    assert "could not be stored before the end (OperationalError: away)" in caplog.text
    assert told == []


def test_a_stop_ends_the_pause_and_writes_when_the_database_is_back(store, told, started, monkeypatch):
    monkeypatch.setattr(writing, "pause_after", lambda failures: 3600.0)
    store.faults["finish"] = [OperationalError("away")] * 2
    completer = started(Completer(store.open, told))
    completer.put(attempted(1))
    eventually(lambda: len(batches(store)) == 1)
    completer.stop(timeout=TIMEOUT)

    assert completer.join(TIMEOUT)
    assert stored(store) == [1]


def test_a_completer_can_be_started_again(store, told, started):
    completer = started(Completer(store.open, told))
    completer.put(attempted(1))
    completer.stop()
    assert completer.join(TIMEOUT)
    assert not completer.is_alive()
    completer.start()
    completer.put(attempted(2))
    eventually(lambda: completer.idle)

    assert stored(store) == [1, 2]


def test_a_completer_that_runs_is_not_started_twice(completer):
    with pytest.raises(RuntimeError, match="completer runs already"):
        completer.start()


def test_what_was_handed_over_before_the_start_is_stored(store, told, started):
    completer = Completer(store.open, told)
    put_all(completer, [1, 2])
    started(completer)
    eventually(lambda: completer.idle)

    assert stored(store) == [1, 2]


def test_pauses_come_from_the_parts_common_back_off():
    assert writing.pause_after is parts.pause_after
