"""The completer: every outcome is stored, in few statements, whatever the database and single outcomes do to it."""

import json
import threading

import pytest
from django.db.utils import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
)

from django_jobs.store.rows import NewJob
from django_jobs.worker import completer as module, parts, writing
from django_jobs.worker.completer import Completer
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, FakeStore, Gate, attempted, row


@pytest.fixture
def store():
    return FakeStore()


@pytest.fixture
def pauses(monkeypatch):
    """The failures in a row before each pause; there is no waiting."""
    seen = []
    monkeypatch.setattr(writing, "pause_after", lambda failures, *longest: seen.append(failures) or 0.0)
    return seen


@pytest.fixture
def small(monkeypatch):
    """Batches of 10, and room for 20."""
    monkeypatch.setattr(module, "BATCH", 10)
    monkeypatch.setattr(module, "BACKLOG", 20)
    monkeypatch.setattr(module, "LINGER_JOBS", 5)
    monkeypatch.setattr(module, "BUSY", 1000)


class Told(list):
    """What the completer says is stored: (id, state, stored), in order."""

    def __call__(self, batch, ended):
        for item in batch:
            there = ended.get(item.outcome.id)
            self.append((item.outcome.id, there and there.state, there and there.stored))


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def completer(store, told, started):
    return started(Completer(store.open, told))


def batches(store):
    """The ids of each statement so far."""
    return [[outcome.id for outcome in outcomes] for (outcomes,) in store.called("finish")]


def put_all(completer, ids):
    for id_ in ids:
        completer.put(attempted(id_))


def stored(store):
    return sorted(outcome.id for outcome in store.finished)


# -- batches ----------------------------------------------------------------------------------------------------------


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


# -- two writers ------------------------------------------------------------------------------------------------------


class TwoAtOnce(FakeStore):
    """A store that can take two writes at once, and says so. Each writer gets a store of its own, of the same rows."""

    completion_concurrency = 2

    def __init__(self):
        super().__init__()
        self.at_once = 0
        self.most_at_once = 0
        self.ids_at_once = set()
        self.gates = {}

    def finish(self, outcomes):
        ids = [outcome.id for outcome in outcomes]
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            assert self.ids_at_once.isdisjoint(ids), "two statements hold outcomes of the same job"
            self.ids_at_once.update(ids)
        try:
            gate = self.gates.get(ids[0])
            if gate is not None:
                gate()
            return super().finish(outcomes)
        finally:
            with self.lock:
                self.at_once -= 1
                self.ids_at_once.difference_update(ids)


@pytest.fixture
def double():
    return TwoAtOnce()


def started_double(double, told, started):
    completer = started(Completer(double.open, told))
    eventually(lambda: completer.most_writers == 2)
    return completer


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


def claim_of(id_, claims, kind="completed", **more):
    return attempted(row(id_, claims=claims), kind, **more)


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


# -- errors of the database's -----------------------------------------------------------------------------------------

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


# -- one bad outcome --------------------------------------------------------------------------------------------------

POISON = [
    DataError("invalid byte sequence"),
    IntegrityError("check constraint"),
    UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
    ValueError("no"),
    OverflowError("int too large"),
    TypeError("no"),
]


def poisoned(store, *ids, error=POISON[0], also_plain=False):
    """Statements that hold one of these outcomes fail; unless it is the one that says that it can't be stored."""

    def check(outcomes):
        for outcome in outcomes:
            if outcome.id in ids and (also_plain or outcome.error_class != "django_jobs.OutcomeNotStorable"):
                raise error

    store.before["finish"] = check


def one_batch(completer, store, ids, **poison):
    """Make the completer write these outcomes in one statement."""
    gate = store.before["finish"] = Gate()
    completer.put(attempted(0))
    gate.wait()
    poisoned(store, *poison.pop("poison"), **poison)
    put_all(completer, ids)
    gate.open()
    eventually(lambda: completer.idle)


@pytest.mark.parametrize("error", POISON, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("poison", [[1], [50], [100], [1, 2, 51, 100]], ids=str)
def test_one_bad_outcome_is_one_bad_outcome(completer, store, told, pauses, error, poison):
    one_batch(completer, store, range(1, 101), poison=poison, error=error)

    kinds = {outcome.id: outcome.kind for outcome in store.finished}
    assert kinds == {id_: "failed" if id_ in poison else "completed" for id_ in range(101)}
    assert {item[0] for item in told if item[1] == "failed"} == set(poison)
    assert all(item[2] for item in told)
    assert pauses == []
    assert len(batches(store)) <= 2 + len(poison) * 20


def test_it_becomes_a_dead_letter_that_says_so_in_ascii(completer, store, told, caplog):
    bad = row(1, attempt=3, errors='[{"number": 4, "class": "KeyError", "message": "é \\ud800"}]')
    poisoned(store, 1, error=DataError("ungültig: \ud800\0"))
    completer.put(attempted(bad, result='"\ud800"'))
    eventually(lambda: completer.idle)

    (outcome,) = store.finished
    assert (outcome.kind, outcome.error_class, outcome.result) == (
        "failed",
        "django_jobs.OutcomeNotStorable",
        None,
    )
    assert outcome.errors.isascii()
    first, error = json.loads(outcome.errors)
    assert (first["number"], first["message"]) == (4, "é \ud800")
    assert (error["number"], error["attempt"], error["class"]) == (5, 3, "django_jobs.OutcomeNotStorable")
    assert error["message"].startswith("DataError: ung\\xfcltig")
    assert "Job 1: its outcome can't be stored: DataError: ung" in caplog.text


def test_its_error_is_stored_even_where_nothing_else_of_the_row_can_be_read(completer, store, monkeypatch):
    def fail(*args):
        raise ValueError("no")

    monkeypatch.setattr(writing, "with_error", fail)
    poisoned(store, 1)
    completer.put(attempted(1))
    eventually(lambda: completer.idle)

    (outcome,) = store.finished
    assert json.loads(outcome.errors)[0]["class"] == "django_jobs.OutcomeNotStorable"


def test_one_that_can_not_be_stored_at_all_takes_no_other_with_it(completer, store, told, caplog):
    one_batch(completer, store, range(1, 9), poison=[2], also_plain=True)

    assert stored(store) == [0, 1, 3, 4, 5, 6, 7, 8]
    assert completer.lost == 1
    assert "The outcome of job 2 is lost" in caplog.text

    put_all(completer, [10, 11])
    eventually(lambda: completer.idle)
    assert stored(store)[-2:] == [10, 11]


def test_one_that_makes_the_database_fail_in_a_strange_way_is_found_too(completer, store, told, pauses):
    """No error of data; but without this outcome the statement succeeds, which proves that the database is well."""
    one_batch(completer, store, range(1, 9), poison=[5], error=InternalError("XX000"))

    kinds = {outcome.id: outcome.kind for outcome in store.finished}
    assert kinds == {id_: "failed" if id_ == 5 else "completed" for id_ in range(9)}


@pytest.mark.parametrize("moment", range(6))
def test_a_bad_outcome_and_an_outage_at_once_lose_nothing(completer, store, told, pauses, moment):
    """The database goes away after that many statements, for three of them."""
    calls = []

    def check(outcomes):
        calls.append(1)
        if moment < len(calls) <= moment + 3:
            raise OperationalError("away")
        for outcome in outcomes:
            if outcome.id == 1 and outcome.error_class != "django_jobs.OutcomeNotStorable":
                raise DataError("bad")

    store.before["finish"] = check
    completer.put(attempted(1))
    eventually(lambda: completer.idle)

    assert [(outcome.id, outcome.kind) for outcome in store.finished] == [(1, "failed")]
    assert (completer.lost, told) == (0, [(1, "failed", True)])


@pytest.mark.parametrize("statements", range(4, 14))
def test_an_outage_may_end_at_any_statement_and_no_good_outcome_is_to_blame(
    completer, store, told, pauses, statements
):
    calls = []

    def check(outcomes):
        calls.append(1)
        if len(calls) <= statements:
            raise InternalError("cannot execute UPDATE in a read-only transaction")

    store.before["finish"] = check
    completer.put(attempted(1))
    eventually(lambda: completer.idle)

    assert (completer.lost, told) == (0, [(1, "completed", True)])


def test_an_outcome_whose_row_somebody_holds_for_long_is_stored_in_the_end(completer, store, told, pauses):
    """Its statement runs into a time-out, again and again, and the database is well."""
    held = list(range(30))

    def check(outcomes):
        if held and any(outcome.id == 1 for outcome in outcomes):
            held.pop()
            raise OperationalError("canceling statement due to statement timeout")

    store.before["finish"] = check
    put_all(completer, [1, 2, 3])
    eventually(lambda: completer.idle)

    assert sorted(told) == [(id_, "completed", True) for id_ in (1, 2, 3)]


@pytest.mark.parametrize("error", [ValueError("in a signal's receiver"), SystemExit(3)], ids=repr)
def test_what_follows_a_stored_batch_may_fail_without_harm(store, started, caplog, error):
    def fail(batch, ended):
        raise error

    completer = started(Completer(store.open, fail))
    put_all(completer, [1])
    eventually(lambda: completer.idle)
    put_all(completer, [2])
    eventually(lambda: completer.idle)

    assert stored(store) == [1, 2]
    assert caplog.text.count("What is to happen after outcomes are stored failed") == 2


# -- life -------------------------------------------------------------------------------------------------------------


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


# -- on the database --------------------------------------------------------------------------------------------------


@pytest.fixture
def claimed(open_store):
    """Claim new jobs of the database: how many."""
    real = open_store()
    worker = real.register_worker("host", 1, "[]", 4, "1", 30.0)

    def claim(count):
        real.insert_many([NewJob("tests.job")] * count)
        return real.claim(worker.id, "default", count)

    return claim


def test_a_poisoned_outcome_on_the_database(open_store, told, started, claimed, monkeypatch):
    """Really refused: by the driver, by the server, by a constraint; and all the others are stored."""
    monkeypatch.setattr(module, "LINGER_SECONDS", 0.0)
    jobs = claimed(40)
    store = open_store()
    gate = Gate()
    real_finish, first = store.finish, []

    def finish(outcomes):
        if not first:
            first.append(1)
            gate()
        return real_finish(outcomes)

    store.finish = finish
    completer = started(Completer(lambda: store, told))
    completer.put(attempted(jobs[0]))
    gate.wait()
    bad = {
        3: attempted(jobs[3], result='"\ud800"'),
        17: attempted(jobs[17], "failed", error_class="\ud800", errors="[]"),
        39: attempted(jobs[39], "retry", float("nan"), error_class="x" * 5, errors="[]"),
    }
    for number in range(1, 40):
        completer.put(bad.get(number) or attempted(jobs[number], result=f"{number}"))
    gate.open()
    eventually(lambda: completer.idle)

    after = open_store().get([job.id for job in jobs])
    assert [job.state for job in after] == [
        "failed" if number in (3, 17, 39) else "completed" for number in range(40)
    ]
    assert {after[number].error_class for number in (3, 17, 39)} == {"django_jobs.OutcomeNotStorable"}
    assert [job.result for job in after][4:9] == [4, 5, 6, 7, 8]


def test_the_number_of_writers_is_the_store_s_own(open_store, told, started, database_name):
    completer = started(Completer(open_store, told))
    expected = 2 if database_name == "postgresql" else 1

    eventually(lambda: completer.most_writers == expected)


def test_outcomes_on_the_database_are_few_statements(open_store, told, started, claimed):
    jobs = claimed(2000)
    opened = []

    def open_counted():
        opened.append(open_store())
        return opened[-1]

    completer = started(Completer(open_counted, told))
    for job in jobs:
        completer.put(attempted(job))
    eventually(lambda: completer.idle)

    assert len(told) == 2000
    assert all(item[1:] == ("completed", True) for item in told)
    assert sum(store.session.statements for store in opened) <= 10
