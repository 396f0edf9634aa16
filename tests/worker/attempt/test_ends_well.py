"""Attempts that end well, and their arguments."""

import asyncio
import datetime as dt
import json
import threading

import pytest
from asgiref.sync import sync_to_async

from django_jobs import JobContext, current_job, registry, serialization
from django_jobs.serialization import Undecodable
from django_jobs.worker import attempt
from django_jobs.worker.attempt import Runner
from tests.worker.attempt.helping import errors, kind, last_error
from tests.worker.fakes import NOW, row

# -- what ends well ---------------------------------------------------------------------------------------------------


def test_a_job_without_a_result_is_completed(run):
    seen = []
    ended = run(lambda *args, **kwargs: seen.append((args, kwargs)), 1, "two", kwargs={"three": [3.0]})

    assert seen == [((1, "two"), {"three": [3.0]})]
    assert ended.outcome == (1, 1, "completed", None, None, None, None)
    assert ended.error is None
    assert ended.seconds >= 0


@pytest.mark.parametrize(
    "value", [0, "", [], False, 1e22, 2**70, -0.0, "日本 \u2028", {"a": [None, {"b": 1.5}]}]
)
def test_a_result_comes_back_equal(run, value):
    ended = run(lambda: value)

    assert kind(ended) == "completed"
    assert repr(json.loads(ended.outcome.result)) == repr(value)


def test_json_is_decoded_once_and_only_what_the_job_uses(run, monkeypatch):
    """Errors, tags and metadata are the job's to read, and empty arguments need no decoding."""
    decoded = []
    decode = attempt.decode

    def noting(text):
        decoded.append(text)
        return decode(text)

    monkeypatch.setattr(attempt, "decode", noting)
    monkeypatch.setattr(serialization, "decode", noting)
    others = {"errors": '[{"number": 1}]', "tags": '["a"]', "metadata": '{"a": 1}'}

    assert kind(run(lambda: None, columns=others)) == "completed"
    assert decoded == []
    assert kind(run(lambda *args, **kwargs: None, 1, kwargs={"a": 2}, columns=others)) == "completed"
    assert decoded == ["[1]", '{"a": 2}']


def test_an_async_job_runs_to_its_end_and_its_database_work_stays_on_the_thread(run):
    threads = []

    async def job(number):
        await asyncio.sleep(0)
        threads.append(await sync_to_async(threading.current_thread)())
        return number + 1

    ended = run(job, 4)

    assert (kind(ended), ended.outcome.result) == ("completed", "5")
    assert threads == [threading.current_thread()]


@pytest.mark.parametrize("is_async", [False, True])
def test_the_context_is_the_first_argument_and_current_job_is_the_same(run, is_async):
    seen = []

    def note(context, number):
        seen.append((context, current_job(), number))

    async def anote(context, number):
        note(context, number)

    run(anote if is_async else note, 5, takes_context=True, columns={"attempt": 2, "max_attempts": 2})

    ((context, current, number),) = seen
    assert (number, context.attempt, context.is_last_attempt()) == (5, 2, True)
    assert (current.job, current.name) == (context.job, context.name)
    assert not context.should_stop()
    assert current_job() is None


def test_no_context_is_made_for_a_job_that_does_not_ask_for_it(run, monkeypatch):
    """Without middleware, nothing is paid for it."""
    made = []
    monkeypatch.setattr(attempt, "JobContext", lambda *args: made.append(args) or JobContext(*args))
    wrapped = []
    monkeypatch.setattr(attempt.middleware, "wrap", lambda *args, **kwargs: wrapped.append(args))

    run(lambda: None)
    assert (made, wrapped) == ([], [])

    run(lambda context: None, takes_context=True)
    assert len(made) == 1


def test_a_sign_reaches_a_job_that_looks_for_it(run, signs):
    def look():
        before = current_job().should_stop()
        signs.stopping = True
        return [before, current_job().should_stop()]

    assert run(look).outcome.result == "[false,true]"


# -- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["args", "kwargs"])
@pytest.mark.parametrize(
    "text",
    [
        "null", "5", '"text"', "true", "no JSON", "", "[1", '{"a":', "[NaN]", '{"a": Infinity}', "[" * 100_000,
        Undecodable('["\\xff"]'), b"[]", b"\xff", "9" * 5000, "[" + "9" * 5000 + "]",
    ],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_arguments_that_do_not_decode_are_the_job_s_failure(run, column, text):
    called = []
    ended = run(lambda *args, **kwargs: called.append(1), columns={column: text})

    assert called == []
    assert kind(ended) == "retry"
    assert ended.outcome.delay > 0
    assert last_error(ended)["class"] == "django_jobs.UndecodableArguments"


@pytest.mark.parametrize(
    ("column", "text"), [("args", "{}"), ("kwargs", "[]"), ("args", '{"a": 1}'), ("kwargs", "[1]")]
)
def test_arguments_of_the_other_shape_are_the_job_s_failure(run, column, text):
    assert last_error(run(lambda *args, **kwargs: None, columns={column: text}))["class"] == (
        "django_jobs.UndecodableArguments"
    )


def test_arguments_that_no_longer_fit_the_function_are_the_job_s_failure(run):
    ended = run(lambda one: None, 1, 2)

    assert (kind(ended), last_error(ended)["class"]) == ("retry", "TypeError")
    ended = run(lambda one: None, kwargs={"two": 1, "with space": 2})
    assert last_error(ended)["class"] == "TypeError"


def test_a_job_may_change_its_arguments_without_any_other_seeing_it(run):
    def change(*args, **kwargs):
        kwargs["more"] = 1
        return [len(args), len(kwargs)]

    for _ in range(2):
        assert run(change).outcome.result == "[0,1]"


# -- names that are not registered ------------------------------------------------------------------------------------


@pytest.fixture
def unknown(signs):
    def run(**columns):
        return Runner(registry, signs).run(row(name="tests.nowhere", **columns))

    return run


def since(seconds, number=1, **more):
    at = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=seconds)
    return json.dumps(
        [{"number": number, "class": "django_jobs.NotRegistered", "at": at.isoformat(), **more}]
    )


def test_an_unknown_name_waits_a_minute_and_spends_no_attempt(unknown):
    ended = unknown()

    assert (kind(ended), ended.outcome.delay) == ("snoozed", 60.0)
    assert last_error(ended)["class"] == "django_jobs.NotRegistered"
    assert "'tests.nowhere'" in last_error(ended)["message"]
    assert "aliases=" in last_error(ended)["message"]


def test_an_unknown_name_is_recorded_once_while_it_waits(unknown):
    before = since(23 * 3600)
    ended = unknown(errors=before)

    assert (kind(ended), ended.outcome.errors) == ("snoozed", before)


def test_an_unknown_name_is_a_dead_letter_after_a_day(unknown):
    ended = unknown(errors=since(24 * 3600 + 1))

    assert (kind(ended), ended.outcome.delay) == ("failed", None)
    assert [error["number"] for error in errors(ended)] == [1, 2]


def test_the_day_begins_anew_when_the_name_was_known_in_between(unknown):
    old = json.loads(since(30 * 3600))
    ended = unknown(errors=json.dumps([*old, {"number": 2, "class": "ValueError", "at": NOW.isoformat()}]))

    assert kind(ended) == "snoozed"
    assert [error["class"] for error in errors(ended)] == [
        "django_jobs.NotRegistered", "ValueError", "django_jobs.NotRegistered",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "before",
    [
        "null", "5", "{}", '{"a": 1}', "[]", "[null]", "[5]", '["text"]', "[{}]", "no JSON",
        '[{"class": "django_jobs.NotRegistered"}]',
        '[{"class": "django_jobs.NotRegistered", "at": null}]',
        '[{"class": "django_jobs.NotRegistered", "at": "soon"}]',
        '[{"class": "django_jobs.NotRegistered", "at": 5}]',
        '[{"class": "django_jobs.NotRegistered", "at": "2031-05-06T07:08:09"}]',
        '[{"class": ["django_jobs.NotRegistered"], "at": []}]',
    ],
)  # fmt: skip
def test_strange_errors_of_a_job_with_an_unknown_name_do_no_harm(unknown, before):
    assert kind(unknown(errors=before)) == "snoozed"


def test_a_name_that_is_not_text_is_unknown(signs):
    ended = Runner(registry, signs).run(row(name=b"\xff"))

    assert kind(ended) == "snoozed"


def test_an_alias_is_known(run, signs, define):
    define(lambda: "by its old name", aliases=["tests.old"])

    assert Runner(registry, signs).run(row(name="tests.old")).outcome.result == '"by its old name"'
