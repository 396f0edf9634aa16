"""Two statements at once, which never hold outcomes of the same job."""

import threading

import pytest
from django.db.utils import OperationalError

from django_jobs.worker import completer as module
from django_jobs.worker.completer import Completer
from tests.waiting import eventually
from tests.worker.completer.helping import batches, claim_of, put_all, started_double, stored
from tests.worker.fakes import TIMEOUT, Gate, attempted


def test_a_store_that_does_not_say_how_many_writes_it_takes_gets_one(completer, store, small):
    assert not hasattr(store, "completion_concurrency")
    gate = store.before["finish"] = Gate()
    completer.put(attempted(1))
    gate.wait()
    put_all(completer, range(2, 20))  # a full batch, and more
    assert (completer.most_writers, completer.writers, store.opened) == (1, 1, 1)
    gate.open()
    eventually(lambda: completer.idle)

    assert completer.writers == 1


@pytest.mark.parametrize("declared", [0, 1])
def test_a_store_that_says_one_gets_one(double, told, started, small, declared):
    double.completion_concurrency = declared
    gate = double.gates[1] = Gate()
    completer = started(Completer(double.open, told))
    completer.put(attempted(1))
    gate.wait()
    put_all(completer, range(2, 20))
    gate.open()
    eventually(lambda: completer.idle)

    assert (double.most_at_once, completer.writers) == (1, 1)


def test_a_full_batch_behind_a_write_is_written_by_a_second_writer(double, told, started, small):
    gate = double.gates[1] = Gate()
    completer = started_double(double, told, started)
    completer.put(attempted(1))
    gate.wait()
    put_all(completer, range(2, 12))
    eventually(lambda: stored(double) == list(range(2, 12)))

    assert (double.most_at_once, completer.writers, double.opened) == (2, 2, 2)
    gate.open()
    eventually(lambda: completer.idle)
    assert stored(double) == list(range(1, 12))


def test_a_second_batch_that_is_not_full_waits_for_the_first_write(double, told, started, small):
    gate = double.gates[1] = Gate()
    completer = started_double(double, told, started)
    completer.put(attempted(1))
    gate.wait()
    put_all(completer, range(2, 11))  # nine, one short of a batch

    assert (completer.writers, batches(double)) == (1, [])  # the first is in the gate
    gate.open()
    eventually(lambda: completer.idle)
    assert [len(batch) for batch in batches(double)] == [1, 9]
    assert double.most_at_once == 1


def test_the_second_writer_takes_no_rest_of_its_full_batch_either(double, told, started, small):
    first, second = Gate(), Gate()
    double.gates = {1: first, 2: second}
    completer = started_double(double, told, started)
    completer.put(attempted(1))
    first.wait()
    put_all(completer, range(2, 12))
    second.wait()
    put_all(completer, range(12, 20))
    second.open()
    eventually(lambda: stored(double) == list(range(2, 12)))

    assert len(batches(double)) == 1
    first.open()
    eventually(lambda: completer.idle)
    assert [sorted(batch) for batch in batches(double)][-1] == list(range(12, 20))


def test_where_no_second_writer_can_start_the_first_one_does_it(
    double, told, started, small, monkeypatch, caplog
):
    """It is started in an executor's thread, which must not end of it."""
    completer = started_double(double, told, started)
    gate = double.gates[1] = Gate()
    completer.put(attempted(1))
    gate.wait()

    def fail(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        put_all(completer, range(2, 13))
    assert "second writer can't start" in caplog.text
    gate.open()
    eventually(lambda: completer.idle)

    assert stored(double) == list(range(1, 13))
    assert completer.writers == 1


def test_never_more_than_two_writes_at_once(double, told, started, small):
    completer = started_double(double, told, started)

    def put(first):
        put_all(completer, range(first, first + 200))

    threads = [threading.Thread(target=put, args=(first,)) for first in range(0, 1600, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    eventually(lambda: completer.idle)

    assert stored(double) == list(range(1600))
    assert double.most_at_once <= 2


def test_the_second_writer_ends_when_there_is_no_backlog_and_comes_back_with_the_next(
    double, told, started, small, monkeypatch
):
    monkeypatch.setattr(module, "SECOND_WRITER_SECONDS", 0.01)
    completer = started_double(double, told, started)
    for round_ in (1, 2):
        first = round_ * 100
        gate = double.gates[first] = Gate()
        completer.put(attempted(first))
        gate.wait()
        put_all(completer, range(first + 1, first + 11))
        eventually(lambda first=first: first + 1 in stored(double))
        gate.open()
        eventually(lambda: completer.idle)
        eventually(lambda round_=round_: double.closed == round_)
        assert completer.writers == 1 + round_

    assert len(double.finished) == 22


# -- one job in two batches --------------------------------------------------------------------------------------------


def test_a_later_outcome_of_a_job_waits_for_the_batch_with_the_earlier_one(double, told, started, small):
    """The worker was taken for lost, claimed the job again, and has both results: the newer one counts."""
    gate = double.gates[1] = Gate()
    completer = started_double(double, told, started)
    completer.put(claim_of(1, 1, "retry", delay=5.0))
    gate.wait()
    completer.put(claim_of(1, 2, "completed"))
    put_all(completer, range(2, 12))
    eventually(lambda: len(double.finished) == 9)  # the second writer's batch, less the job in flight

    assert 1 not in stored(double)
    gate.open()
    eventually(lambda: completer.idle)

    assert [item for item in told if item[0] == 1] == [(1, "scheduled", True), (1, "completed", True)]
    assert [outcome.claims for outcome in double.finished if outcome.id == 1] == [1, 2]


def test_it_waits_for_the_retries_of_that_batch_too(double, told, started, small, pauses):
    gate = double.gates[1] = Gate()
    double.faults["finish"] = []
    completer = started_double(double, told, started)
    completer.put(claim_of(1, 1, "retry", delay=5.0))
    gate.wait()
    completer.put(claim_of(1, 2, "completed"))
    put_all(completer, range(2, 12))
    eventually(lambda: len(double.finished) == 9)
    double.faults["finish"] = [OperationalError("away")] * 3
    gate.open()
    eventually(lambda: completer.idle)

    assert pauses == [1, 2, 3]
    assert [outcome.claims for outcome in double.finished if outcome.id == 1] == [1, 2]


def test_three_outcomes_of_one_job_stay_in_order(double, told, started, small):
    gate = double.gates[1] = Gate()
    completer = started_double(double, told, started)
    completer.put(claim_of(1, 1, "retry", delay=5.0))
    gate.wait()
    for claims in (2, 3, 4):
        completer.put(claim_of(1, claims, "snoozed", delay=5.0))
        put_all(completer, range(10 * claims, 10 * claims + 10))
    gate.open()
    eventually(lambda: completer.idle)

    assert [outcome.claims for outcome in double.finished if outcome.id == 1] == [1, 2, 3, 4]
    assert [item[0] for item in told].count(1) == 4


def test_two_outcomes_of_one_job_are_never_in_one_statement(completer, store, told):
    gate = store.before["finish"] = Gate()
    completer.put(attempted(9))
    gate.wait()
    for claims in (1, 2, 3):
        completer.put(claim_of(1, claims, "snoozed", delay=1.0))
        completer.put(attempted(100 + claims))
    gate.open()
    eventually(lambda: completer.idle)

    assert all(len(set(batch)) == len(batch) for batch in batches(store))
    assert [outcome.claims for outcome in store.finished if outcome.id == 1] == [1, 2, 3]
    assert len(told) == 7
