"""The words on an attempt's outcome: what it says of itself, giving up, and backoff."""

import datetime as dt

import pytest

from django_jobs import Cancel, Fail, Retry, Snooze
from tests.worker.attempt.helping import kind, last_error, raising

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
