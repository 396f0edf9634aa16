"""The checks of options where they are made: alike on both databases, and normalized to plain types."""

import datetime as dt
import enum

import pytest
from django.db import models
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy

from django_jobs import InvalidJob, limits
from django_jobs.options import (
    Options,
    check,
    check_aliases,
    check_exceptions,
    check_name,
    check_queue_name,
    check_retry_on,
    check_run_after,
)


def kind(value):
    return type(value).__name__


class Level(enum.IntEnum):
    URGENT = 50


class Queue(models.TextChoices):
    MAIL = "mail"


class OldQueue(str, enum.Enum):  # noqa: UP042 - the kind that is formatted as OldQueue.MAIL
    MAIL = "mail"


class TestCheck:
    def test_returns_what_is_allowed(self):
        options = Options("mail", 5, 3, dt.timedelta(1), "default")

        assert check(options, "job") == options

    @pytest.mark.parametrize("queue", [Queue.MAIL, OldQueue.MAIL, mark_safe("mail")])
    def test_makes_the_queue_a_plain_string(self, queue):
        checked = check(Options(queue), "job")

        assert type(checked.queue_name) is str
        assert f"{checked.queue_name}" == "mail"

    def test_makes_numbers_plain_integers(self):
        checked = check(Options("mail", Level.URGENT, Level.URGENT), "job")

        assert (checked.priority, checked.max_attempts) == (50, 50)
        assert type(checked.priority) is type(checked.max_attempts) is int

    @pytest.mark.parametrize("number", [10**5000, float("nan"), "5", None, 5.0, True, [5]], ids=kind)
    def test_what_is_no_whole_number_in_range(self, number):
        with pytest.raises(
            InvalidJob, match=r"^priority of job is .*; it must be a whole number from -100 to 100"
        ):
            check(Options("mail", number), "job")

    @pytest.mark.parametrize("using", ["nowhere", "", 5, [], {}])
    def test_what_is_no_database(self, using):
        with pytest.raises(InvalidJob, match=r"^using=.* of job is no database; DATABASES has default\.$"):
            check(Options(using=using), "job")


class TestQueueName:
    @pytest.mark.parametrize(
        "name", ["a", "with space", "a-b_c.d/e@f", "ä", "日本", "😀", "x" * 100, "%s", "'", "<b>"]
    )
    def test_allowed(self, name):
        check_queue_name(name, "job")

    @pytest.mark.parametrize(
        "name", ["a,b", "a:3", "*", " a", "a ", "a\nb", "a\tb", "\x7f", "\u2028", "\xa0a"]
    )
    def test_what_a_command_line_could_not_say(self, name):
        with pytest.raises(
            InvalidJob, match=r"of job can't be written in runjobs --queues: leave out commas, colons"
        ):
            check_queue_name(name, "job")

    @pytest.mark.parametrize("name", [None, 5, b"mail", gettext_lazy("mail"), ["mail"]])
    def test_what_is_no_string(self, name):
        with pytest.raises(
            InvalidJob, match=r"^queue_name of job is .*; it must be a string that is not empty\.$"
        ):
            check_queue_name(name, "job")


class TestName:
    def test_becomes_a_plain_string(self):
        assert type(check_name(OldQueue.MAIL)) is str
        assert check_aliases([OldQueue.MAIL], None) == ("mail",)


class TestRunAfter:
    @pytest.mark.parametrize(
        "moment",
        [
            dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-12))),
            dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=12))),
            dt.datetime(9000, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
        ],
    )
    def test_out_of_the_range(self, moment):
        with pytest.raises(InvalidJob, match="of job must lie between the years 1970 and 9000"):
            check_run_after(moment, "job")

    @pytest.mark.parametrize(
        "delay", [dt.timedelta.max, dt.timedelta.min, dt.timedelta(seconds=limits.LONGEST_DELAY + 1)]
    )
    def test_too_far_away(self, delay):
        with pytest.raises(InvalidJob, match="of job is more than a hundred years from now"):
            check_run_after(delay, "job")

    @pytest.mark.parametrize("value", ["2031-01-01", dt.date(2031, 1, 1), 60, True, b""])
    def test_of_another_type(self, value):
        with pytest.raises(
            InvalidJob, match=r"of type \w+; it must be an aware datetime or a timedelta from now\.$"
        ):
            check_run_after(value, "job")

    def test_a_time_zone_without_an_offset_is_none(self):
        class Vague(dt.tzinfo):
            def utcoffset(self, moment):
                return None

            tzname = dst = utcoffset

        with pytest.raises(InvalidJob, match="has no time zone"):
            check_run_after(dt.datetime(2031, 1, 1, tzinfo=Vague()), "job")


class TestGiveUpOn:
    @pytest.mark.parametrize("classes", [KeyError, (KeyError,), [KeyError]])
    def test_becomes_a_tuple(self, classes):
        assert check_exceptions(classes, "give_up_on", "job") == (KeyError,)

    def test_may_be_nothing(self):
        assert check_exceptions((), "give_up_on", "job") == ()

    @pytest.mark.parametrize("classes", [None, "KeyError", KeyError("x"), int, [KeyError, int], {KeyError}])
    def test_must_be_exception_classes(self, classes):
        with pytest.raises(InvalidJob, match=r"^give_up_on of job has .*; it must be exception classes\.$"):
            check_exceptions(classes, "give_up_on", "job")


class TestRetryOn:
    @pytest.mark.parametrize("classes", [KeyError, (KeyError,), [KeyError]])
    def test_becomes_a_tuple(self, classes):
        assert check_retry_on(classes, "job") == (KeyError,)

    def test_none_is_all(self):
        assert check_retry_on(None, "job") is None

    @pytest.mark.parametrize("classes", ["KeyError", KeyError("x"), int, [KeyError, int], {KeyError}])
    def test_must_be_exception_classes(self, classes):
        with pytest.raises(InvalidJob, match=r"^retry_on of job has .*; it must be exception classes\.$"):
            check_retry_on(classes, "job")

    @pytest.mark.parametrize("classes", [(), []])
    def test_must_not_be_empty(self, classes):
        with pytest.raises(
            InvalidJob, match=r"^retry_on of job is empty\. Leave it out .* has max_attempts=1\.$"
        ):
            check_retry_on(classes, "job")
