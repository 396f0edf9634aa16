"""One attempt: whatever the job does, an outcome comes of it, and the next attempt starts clean."""

import asyncio
import contextvars
import datetime as dt
import decimal
import gc
import json
import sys
import threading
import weakref

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone, translation
from django.utils.decorators import async_only_middleware
from django.utils.functional import SimpleLazyObject

from django_jobs import Cancel, Fail, JobContext, Retry, Snooze, current_job, registry
from django_jobs.serialization import Undecodable
from django_jobs.worker import attempt, outcomes
from django_jobs.worker.attempt import Runner, broken
from django_jobs.worker.signs import Signs
from tests.worker.fakes import NOW, WORKER, row
from tests.worker.test_failures import Unreadable


@pytest.fixture
def signs():
    signs = Signs()
    signs.worker_id = WORKER
    return signs


@pytest.fixture
def run(define, signs):
    """Run a function as a job, once, and return how that ended."""

    def run(function, *args, columns=None, factories=(), **options):
        kwargs = options.pop("kwargs", {})
        definition = define(function, **options)
        columns = {"args": json.dumps(args), "kwargs": json.dumps(kwargs), **(columns or {})}
        return Runner(registry, signs, factories).run(row(name=definition.name, **columns))

    return run


def kind(ended):
    return ended.outcome.kind


def errors(ended):
    text = ended.outcome.errors
    text.encode()  # storable
    assert "\0" not in text
    return json.loads(text)


def last_error(ended):
    error = errors(ended)[-1]
    assert ended.outcome.error_class == error["class"]
    assert ended.error == f"{error['class']}: {error['message']}"
    return error


def raising(error):
    def fail():
        raise error

    return fail


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


# -- what fails -------------------------------------------------------------------------------------------------------


class OddInit(Exception):
    """Can't be made again from its args, nor copied, nor pickled."""

    def __init__(self, one, two, *, three):
        super().__init__()
        self.lock = threading.Lock()

    def __reduce__(self):
        raise TypeError("not to be pickled")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        SystemExit(0),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        StopIteration(5),
        StopAsyncIteration(),
        asyncio.CancelledError(),
        MemoryError(),
        RecursionError("deep"),
        OddInit(1, 2, three=3),
        BaseExceptionGroup("several", [KeyboardInterrupt(), ValueError("no")]),
        Unreadable(ValueError("second")),
        Unreadable(SystemExit(3)),
        Unreadable(KeyboardInterrupt()),
    ],
    ids=lambda error: type(error).__name__ + type(getattr(error, "error", None)).__name__,
)
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_job_raises_is_its_failure(run, error, is_async):
    async def fail():
        await asyncio.sleep(0)
        raise error

    ended = run(fail if is_async else raising(error))

    assert kind(ended) == "retry"
    assert ended.outcome.delay > 0
    if not (
        is_async and isinstance(error, StopIteration | StopAsyncIteration)
    ):  # Python makes RuntimeErrors of these
        assert last_error(ended)["class"].endswith(type(error).__name__)
    assert last_error(ended)["attempt"] == 1


def test_an_exception_that_stands_for_no_class_of_its_own(run):
    """A test of its class that raises is the job's failure too."""

    class Meta(type):
        def __instancecheck__(cls, instance):
            raise SystemExit("gotcha")

    class Strange(Exception, metaclass=Meta):
        pass

    ended = run(raising(ValueError("no")), give_up_on=(Strange,))

    assert kind(ended) == "retry"
    assert last_error(ended)["class"] == "ValueError"


def test_the_traceback_begins_in_the_job(run):
    def failing_job():
        raise ValueError("here")

    trace = last_error(run(failing_job))["traceback"]

    assert "in failing_job" in trace
    assert trace.splitlines()[1].endswith("in failing_job")


def test_a_traceback_of_ten_megabytes_is_bounded(run):
    ended = run(raising(ValueError("\0\ud800" + "x" * 10_000_000)))

    assert len(ended.outcome.errors) < 20_000
    assert len(ended.trace) <= 10_000


def test_an_error_is_added_to_those_before(run):
    before = '[{"number": 4, "class": "KeyError"}]'
    ended = run(raising(ValueError("no")), columns={"errors": before, "attempt": 5, "claims": 9})

    assert [(error["number"], error["class"]) for error in errors(ended)] == [
        (4, "KeyError"),
        (5, "ValueError"),
    ]
    assert (last_error(ended)["attempt"], ended.outcome.claims) == (5, 9)


def test_an_error_that_can_not_be_recorded_in_full_is_recorded_in_short(run, monkeypatch, caplog):
    whole = outcomes.with_error

    def failing(job, name, message, trace="", now=None):
        if message:
            raise ValueError("nobody knows why")
        return whole(job, name, message, trace, now)

    monkeypatch.setattr(outcomes, "with_error", failing)
    ended = run(raising(ValueError("no")))

    assert (kind(ended), errors(ended)[-1]["class"]) == ("retry", "ValueError")
    assert "could not be recorded in full" in caplog.text


class Hostile:
    """Fails at whatever is done to it."""

    def __getattribute__(self, name):
        raise RuntimeError(f"no {name}")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "nan"),
        ({"a": [float("inf")]}, "inf"),
        ("nul \0", "NUL"),
        ("surrogate \ud800", "surrogate"),
        ({1: 2}, "key"),
        ((1, 2), "tuple"),
        ({1, 2}, "set"),
        (b"bytes", "bytes"),
        (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "datetime"),
        (translation.gettext_lazy("lazy"), "lazy"),
        (
            {"jobs": [row(5)]},
            "the result['jobs'][0] is of type JobRow, which is not JSON. It is a job: pass its id, and read",
        ),
        (
            [{"when": {"at": dt.date(2026, 1, 1)}}],
            "the result[0]['when']['at'] is of type date, which is not JSON. Pass .isoformat()",
        ),
        (object(), "object"),
        (10**5000, "digits"),
        ("x" * 1_000_000, "1,000,002 bytes as JSON, over the limit of 1,000,000"),
        ("é" * 500_000, "1,000,002 bytes as JSON"),
        (Fail, "type"),
    ],
    ids=lambda value: value[:10] if isinstance(value, str) else type(value).__name__,
)
def test_a_result_that_can_not_be_stored_is_a_dead_letter_that_says_why(run, value, message):
    ended = run(lambda: value)

    assert kind(ended) == "failed"
    assert last_error(ended)["class"] == "django_jobs.ResultNotStorable"
    assert message in last_error(ended)["message"]
    assert ended.outcome.result is None


def test_a_result_that_fails_at_whatever_is_done_to_it_is_a_failure(run):
    for value in (Hostile(), SimpleLazyObject(raising(LookupError("no such row")))):
        ended = run(lambda value=value: value)

        assert (kind(ended), last_error(ended)["class"]) == ("failed", "django_jobs.ResultNotStorable")


def test_a_result_that_contains_itself_is_a_failure(run):
    value: list = []
    value.append(value)

    assert last_error(run(lambda: value))["class"] == "django_jobs.ResultNotStorable"


def test_how_large_a_result_may_be_is_a_setting(run, settings):
    settings.DJANGO_JOBS = {"MAX_RESULT_BYTES": 10}

    assert kind(run(lambda: "x" * 8)) == "completed"
    assert kind(run(lambda: "x" * 9)) == "failed"


def test_a_job_whose_work_is_done_is_not_run_again_for_its_result(run):
    assert kind(run(lambda: {1}, retry_on=Exception)) == "failed"
    assert kind(run(raising(ValueError("no")), retry_on=Exception)) == "retry"


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


# -- names that are not registered -------------------------------------------------------------------------------------


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


# -- words on the outcome ---------------------------------------------------------------------------------------------


@pytest.fixture(params=["raised", "returned", "raised in async", "returned in async"])
def saying(request):
    """How a job says its word."""

    def says(word):
        async def job():
            if request.param == "raised in async":
                raise word
            return word

        if "async" in request.param:
            return job
        return raising(word) if request.param == "raised" else lambda: word

    return says


def test_fail_is_a_dead_letter_at_once(run, saying):
    ended = run(saying(Fail("no such user")), columns={"attempt": 1})

    assert (kind(ended), ended.outcome.delay) == ("failed", None)
    assert last_error(ended)["class"] == "django_jobs.exceptions.Fail"
    assert last_error(ended)["message"] == "no such user"


def test_cancel_is_recorded_with_its_reason_and_without_a_traceback(run, saying):
    ended = run(saying(Cancel("not needed")))

    assert kind(ended) == "cancelled"
    assert (last_error(ended)["message"], last_error(ended)["traceback"]) == ("not needed", "")


@pytest.mark.parametrize(
    ("delay", "seconds"), [(90, 90.0), (dt.timedelta(minutes=2), 120.0), (0, 0.0), (-5, 0.0)]
)
def test_snooze_waits_and_is_no_failure(run, saying, delay, seconds):
    ended = run(saying(Snooze(delay)))

    assert ended.outcome == (1, 1, "snoozed", seconds, None, None, None)
    assert ended.error is None


@pytest.mark.parametrize(
    ("delay", "seconds"), [(90, 90.0), (dt.timedelta(minutes=2), 120.0), (0, 0.0), (-5, 0.0)]
)
def test_retry_is_a_failure_that_says_when(run, saying, delay, seconds):
    ended = run(saying(Retry(delay, "rate limit")), backoff=5)

    assert (kind(ended), ended.outcome.delay) == ("retry", seconds)
    assert last_error(ended)["message"] == "rate limit"


def test_retry_without_a_delay_goes_by_the_backoff(run, saying):
    assert run(saying(Retry()), backoff=[5, 7], columns={"attempt": 2}).outcome.delay == 7.0


def test_a_word_that_came_of_an_error_is_told_by_that_error(run):
    def job():
        try:
            raise KeyError("user")
        except KeyError as error:
            raise Fail("no such user") from error

    error = last_error(run(job))

    assert (error["class"], error["message"]) == ("KeyError", "no such user")
    assert "KeyError: 'user'" in error["traceback"]


def test_the_cause_of_a_retry_is_what_the_backoff_sees(run):
    seen = []

    def job():
        raise Retry from ValueError("cause")

    run(job, backoff=lambda attempt, error, job: seen.append(error) or 1)

    assert isinstance(seen[0], ValueError)


@pytest.mark.parametrize("word", [Fail, Cancel, Retry])
def test_a_word_can_be_raised_as_a_class(run, word):
    def job():
        raise word

    assert kind(run(job)) == {Fail: "failed", Cancel: "cancelled", Retry: "retry"}[word]


def test_a_word_whose_delay_was_broken_is_a_failure_like_any_other(run):
    def job():
        word = Snooze(1)
        word.delay = "soon"
        raise word

    ended = run(job)

    assert (kind(ended), last_error(ended)["class"]) == ("retry", "TypeError")


def test_a_word_with_a_delay_that_is_not_a_number_is_a_failure_like_any_other(run):
    def job():
        word = Retry(1)
        word.delay = float("nan")
        raise word

    ended = run(job)

    assert kind(ended) == "retry"
    assert ended.outcome.delay == ended.outcome.delay, "not NaN"


# -- giving up, and backoff -------------------------------------------------------------------------------------------


def test_the_exceptions_to_give_up_on_are_dead_letters_at_once(run):
    assert kind(run(raising(KeyError("x")), give_up_on=(LookupError,))) == "failed"
    assert kind(run(raising(SystemExit(1)), give_up_on=SystemExit)) == "failed"
    assert kind(run(raising(ValueError("x")), give_up_on=(LookupError,))) == "retry"


def test_arguments_that_do_not_decode_can_be_given_up_on(run):
    assert kind(run(lambda: None, give_up_on=ValueError, columns={"args": "5"})) == "failed"
    assert kind(run(lambda: None, retry_on=OSError, columns={"args": "5"})) == "failed"
    assert kind(run(lambda: None, retry_on=ValueError, columns={"args": "5"})) == "retry"


def test_only_after_the_exceptions_to_retry_on_is_it_tried_again(run):
    assert kind(run(raising(ConnectionError("x")), retry_on=(OSError,))) == "retry"
    assert kind(run(raising(SystemExit(1)), retry_on=[OSError, SystemExit])) == "retry"
    assert kind(run(raising(ValueError("x")), retry_on=OSError)) == "failed"


@pytest.mark.parametrize(
    ("retry_on", "give_up_on"), [(OSError, OSError), (ConnectionError, OSError), (OSError, Exception)]
)
def test_where_both_match_it_is_given_up(run, retry_on, give_up_on):
    assert kind(run(raising(ConnectionError("x")), retry_on=retry_on, give_up_on=give_up_on)) == "failed"


def test_a_retry_is_obeyed_whatever_is_to_be_retried_on(run, saying):
    assert kind(run(saying(Retry()), retry_on=OSError)) == "retry"
    assert kind(run(saying(Retry(5)), retry_on=OSError)) == "retry"
    assert kind(run(saying(Snooze(5)), retry_on=OSError)) == "snoozed"
    assert kind(run(saying(Fail()), retry_on=Exception)) == "failed"


def test_a_broken_delay_makes_no_dead_letter_of_a_retry(run):
    def job():
        word = Retry(5)
        word.delay = "soon"
        raise word

    assert kind(run(job, retry_on=OSError)) == "retry"


def test_the_backoff_gets_attempt_error_and_job(run):
    seen = []
    ended = run(
        raising(ValueError("no")),
        backoff=lambda *args: seen.append(args) or dt.timedelta(seconds=3),
        columns={"attempt": 4},
    )

    ((number, error, job),) = seen
    assert (number, str(error), job.attempt) == (4, "no", 4)
    assert ended.outcome.delay == 3.0


def backoff_that_raises(error):
    def backoff(attempt, exception, job):
        raise error

    return backoff


@pytest.mark.parametrize(
    "backoff",
    [
        backoff_that_raises(ValueError("broken")),
        backoff_that_raises(SystemExit(3)),
        backoff_that_raises(KeyboardInterrupt()),
        lambda *args: None,
        lambda *args: -1,
        lambda *args: "5",
        lambda *args: float("nan"),
        lambda *args: float("inf"),
        lambda *args: 10**5000,
        lambda *args: dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        lambda: 5,
    ],
)
def test_a_broken_backoff_falls_back_to_the_default_and_is_logged(run, backoff, caplog):
    ended = run(raising(ValueError("no")), backoff=backoff, columns={"attempt": 2})

    assert kind(ended) == "retry"
    assert 14 <= ended.outcome.delay <= 18
    assert "The backoff of job 1 failed" in caplog.text
    assert last_error(ended)["class"] == "ValueError"


def test_three_hundred_failures_do_not_overflow(run):
    ended = run(raising(ValueError("no")), columns={"attempt": 300, "max_attempts": 1000})

    assert ended.outcome.delay == 86_400.0


# -- a clean start ----------------------------------------------------------------------------------------------------

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="nothing")


@pytest.mark.parametrize("ends", ["well", "badly", "async"])
def test_what_a_job_sets_ends_with_it(run, ends):
    def set_all():
        translation.activate("de")
        timezone.activate(dt.timezone(dt.timedelta(hours=5)))
        variable.set("something")
        decimal.getcontext().prec = 3
        assert look() == ["de", "UTC+05:00", "something", 3]
        if ends == "badly":
            raise ValueError("no")

    async def aset_all():
        set_all()

    def look():
        return [
            translation.get_language(),
            str(timezone.get_current_timezone()),
            variable.get(),
            decimal.getcontext().prec,
        ]

    clean = run(look).outcome.result
    assert kind(run(aset_all if ends == "async" else set_all)) == (
        "retry" if ends == "badly" else "completed"
    )

    assert run(look).outcome.result == clean
    assert json.loads(clean) == ["en", "UTC", "nothing", 28]
    assert variable.get() == "nothing"


def test_a_job_does_not_see_what_is_set_around_the_worker(run):
    def look():
        return variable.get()

    token = variable.set("around")
    try:
        assert run(look).outcome.result == '"nothing"'
    finally:
        variable.reset(token)


def test_a_job_run_inside_of_a_job_knows_which_one_it_is(run, define, signs):
    inner = define(lambda: current_job().job.id)

    def outer():
        runner = Runner(registry, signs)
        return [int(runner.run(row(2, name=inner.name)).outcome.result), current_job().job.id]

    assert run(outer).outcome.result == "[2,1]"


def test_nothing_of_a_failed_job_is_kept(run):
    """Not its frames, with all that they hold, in the outcomes that wait to be stored."""

    class Large:
        pass

    held = []

    def job():
        large = Large()
        held.append(weakref.ref(large))
        raise ValueError(large)

    ended = run(job)
    gc.collect()

    assert kind(ended) == "retry"
    assert held[0]() is None


# -- middleware -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("takes_context", [False, True])
def test_middleware_is_around_every_kind_of_job(run, is_async, takes_context):
    seen = []

    def noting(step):
        def around(context):
            seen.append((context.job.id, context.name))
            assert current_job().job is context.job
            return step(context) + 1

        return around

    @async_only_middleware
    def async_noting(step):
        async def around(context):
            seen.append((context.job.id, context.name))
            return await step(context) + 1

        return around

    def job(number):
        return number

    def context_job(context, number):
        assert context.job.id == 1
        return number

    async def ajob(number):
        return number

    async def context_ajob(context, number):
        return context_job(context, number)

    function = {
        (False, False): job,
        (False, True): context_job,
        (True, False): ajob,
        (True, True): context_ajob,
    }
    ended = run(
        function[is_async, takes_context],
        5,
        takes_context=takes_context,
        factories=[noting, async_noting],
        name="tests.m",
    )

    assert ended.outcome.result == "7"
    assert seen == [(1, "tests.m")] * 2


@pytest.mark.parametrize("is_async", [False, True])
def test_a_middleware_sees_the_job_s_error_and_its_own_error_is_the_job_s_failure(run, is_async):
    seen = []

    def noting(step):
        def around(context):
            try:
                return step(context)
            except BaseException as error:
                seen.append(type(error))
                raise

        return around

    def failing(step):
        def around(context):
            raise LookupError("in the middleware")

        return around

    async def ajob():
        raise ValueError("no")

    job = ajob if is_async else raising(ValueError("no"))
    assert last_error(run(job, factories=[noting]))["class"] == "ValueError"
    assert seen == [ValueError]
    assert last_error(run(job, factories=[noting, failing]))["class"] == "LookupError"
    assert seen == [ValueError, LookupError]


def test_a_middleware_can_swallow_an_error_and_change_a_word(run):
    def swallowing(step):
        def around(context):
            try:
                return step(context)
            except ValueError:
                return "swallowed"
            except Snooze:
                raise Cancel("no time") from None

        return around

    assert run(raising(ValueError("no")), factories=[swallowing]).outcome.result == '"swallowed"'
    assert kind(run(raising(Snooze(5)), factories=[swallowing])) == "cancelled"


def test_jobs_of_several_threads_do_not_mix_in_one_middleware(define, signs):
    def adding(step):
        def around(context):
            barrier.wait(30)
            return [context.job.id, step(context)]

        return around

    barrier = threading.Barrier(4)
    definition = define(lambda number: number)
    runner = Runner(registry, signs, [adding])
    results = []

    def run_one(number):
        ended = runner.run(row(number, name=definition.name, args=f"[{number}]"))
        results.append(json.loads(ended.outcome.result))

    threads = [threading.Thread(target=run_one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(results) == [[number, number] for number in range(4)]


# -- the worker's own faults ------------------------------------------------------------------------------------------


def test_a_fault_of_the_worker_s_is_recorded_and_the_job_tried_again():
    ended = broken(row(3), ValueError("ours"))

    assert (ended.outcome.id, ended.outcome.kind, ended.outcome.delay) == (3, "retry", 60.0)
    assert errors(ended)[-1]["class"] == "django_jobs.WorkerError"
    assert "ValueError: ours" in errors(ended)[-1]["message"]


def test_even_where_nothing_can_be_recorded_the_claim_ends(monkeypatch):
    def failing(*args, **kwargs):
        raise SystemExit("no")

    monkeypatch.setattr(outcomes, "with_error", failing)
    ended = broken(row(3), ValueError("ours"))

    assert (ended.outcome.id, ended.outcome.kind, ended.outcome.errors) == (3, "retry", None)


def test_the_recursion_limit_is_no_trap(run):
    """A job that leaves next to no stack is failed, not the worker."""

    def deep(number):
        return deep(number + 1) if number < 10**9 else None

    ended = run(deep, 0)

    assert (kind(ended), last_error(ended)["class"]) == ("retry", "RecursionError")
    assert sys.getrecursionlimit() >= 1000
