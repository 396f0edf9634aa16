"""An outcome that can't be stored harms no other one, and is told."""

import json

import pytest
from django.db.utils import DataError, IntegrityError, InternalError, OperationalError

from django_jobs.worker import writing
from django_jobs.worker.completer import Completer
from tests.waiting import eventually
from tests.worker.completer.helping import batches, put_all, stored
from tests.worker.fakes import Gate, attempted, row

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
