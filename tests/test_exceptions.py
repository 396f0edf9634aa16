"""A handler's words on its own outcome, and the delays in them."""

import copy
import datetime as dt
import math
import pickle

import pytest

from django_jobs import Cancel, Fail, InvalidArguments, InvalidJob, Retry, Snooze
from django_jobs.exceptions import Control, seconds


@pytest.mark.parametrize(
    ("delay", "expected"), [(5, 5.0), (0.5, 0.5), (dt.timedelta(minutes=1), 60.0), (-1, -1.0)]
)
def test_a_delay_in_seconds(delay, expected):
    assert seconds(delay) == Snooze(delay).delay == Retry(delay).delay == expected
    assert type(seconds(delay)) is float


@pytest.mark.parametrize("delay", ["5", None, True, [5], dt.datetime(2031, 1, 1, tzinfo=dt.UTC)])
def test_what_is_no_delay(delay):
    with pytest.raises(TypeError, match="a delay is a number of seconds or a timedelta, not"):
        seconds(delay)


@pytest.mark.parametrize(
    "delay", [math.nan, math.inf, -math.inf, 1e300, 10**400, dt.timedelta.max, dt.timedelta.min]
)
def test_a_delay_that_no_database_could_add(delay):
    with pytest.raises(ValueError, match="a delay must be finite and at most a hundred years, not"):
        Snooze(delay)


def test_retry_may_leave_the_delay_to_the_backoff():
    assert Retry().delay is None
    assert Retry(reason="busy").reason == str(Retry(reason="busy")) == "busy"


def test_the_reason_is_the_message():
    assert (str(Fail("gone")), Fail("gone").reason) == ("gone", "gone")
    assert (str(Cancel("not needed")), Cancel("not needed").reason) == ("not needed", "not needed")
    assert Fail().reason == Cancel().reason == Retry().reason == ""


@pytest.mark.parametrize("copied", [copy.copy, lambda word: pickle.loads(pickle.dumps(word))])
@pytest.mark.parametrize(
    "word", [Fail("a"), Cancel("a"), Snooze(5), Retry(5, "a"), Retry(reason="a"), Retry()]
)
def test_words_can_be_copied(word, copied):
    other = copied(word)

    assert (type(other), vars(other), str(other)) == (type(word), vars(word), str(word))


def test_what_each_can_be_caught_as():
    assert issubclass(InvalidArguments, InvalidJob)
    assert issubclass(InvalidJob, ValueError)
    assert issubclass(InvalidArguments, TypeError)
    assert all(issubclass(word, Control) for word in (Fail, Cancel, Snooze, Retry))
