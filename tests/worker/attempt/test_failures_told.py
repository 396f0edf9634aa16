"""Attempts that fail: whatever is raised, it is told."""

import asyncio
import datetime as dt
import sys
import threading

import pytest
from django.utils import translation
from django.utils.functional import SimpleLazyObject

from django_jobs import Fail
from django_jobs.worker import outcomes
from django_jobs.worker.attempt import broken
from tests.worker.attempt.helping import errors, kind, last_error, raising
from tests.worker.fakes import row
from tests.worker.test_failures import Unreadable

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
