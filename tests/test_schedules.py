"""``@periodic`` and ``DJANGO_JOBS["SCHEDULES"]``: what is declared, and what is refused."""

import datetime as dt
import functools
from zoneinfo import ZoneInfo

import pytest

from django_jobs import InvalidSchedule, job, periodic, registry
from django_jobs.checks import check_schedules, check_settings
from django_jobs.schedules import schedules

HOURLY = "0 * * * *"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    """What a test declares is gone when it ends."""
    for held in (registry, schedules):
        for name, value in vars(held).items():
            monkeypatch.setattr(held, name, type(value)())


@pytest.fixture
def check(settings):
    """The problems of these schedules in the settings."""

    def run(**declared):
        settings.DJANGO_JOBS = {"SCHEDULES": declared}
        return check_schedules()

    return run


def send(to="all", *, subject=""):
    """A job."""


def declared(key=None):
    """The one schedule, or the one with that key, as it is stored."""
    found, problems = schedules.collect()
    assert problems == {}
    if key is None:
        (key,) = found
    return found[key].row


class TestPeriodic:
    def test_above_job(self):
        definition = periodic("*/5 * * * *", timezone="Europe/Berlin")(job(name="send")(send))

        assert registry.get("send") is definition
        row = declared()
        assert (row.key, row.name, row.expression) == ("send", "send", "*/5 * * * *")
        assert (row.timezone, row.missed, row.args, row.kwargs, row.options) == (
            "Europe/Berlin",
            "latest",
            "[]",
            "{}",
            "{}",
        )

    def test_below_job(self):
        job(name="send")(periodic(HOURLY, key="hourly")(functools.partial(send)))

        assert (declared().key, declared().name) == ("hourly", "send")

    def test_as_it_is_written(self):
        @periodic(HOURLY, key="above")
        @job(name="both")
        @periodic(every=dt.timedelta(minutes=5), key="below", args=["some"], kwargs={"subject": "x"})
        def both(to="all", subject=""):
            pass

        assert both.name == "both"
        assert declared("above").expression == HOURLY
        below = declared("below")
        assert (below.expression, below.args, below.kwargs) == ("every 300 s", '["some"]', '{"subject":"x"}')

    def test_a_static_method(self):
        class Mail:
            @job(name="static")
            @periodic(HOURLY)
            @staticmethod
            def send():
                pass

        assert declared().name == "static"

    def test_its_time_zone_is_the_sites_unless_it_says_so(self, settings):
        settings.TIME_ZONE = "America/New_York"
        periodic(HOURLY, key="a")(job(name="send")(send))
        periodic(HOURLY, key="b", timezone=ZoneInfo("Europe/Berlin"))(registry.get("send"))

        assert (declared("a").timezone, declared("b").timezone) == ("America/New_York", "Europe/Berlin")

    def test_options_of_its_jobs(self):
        periodic(HOURLY, queue_name="mail", priority=5, max_attempts=1, missed="all")(job(name="send")(send))

        assert declared().options == '{"queue_name":"mail","priority":5,"max_attempts":1}'
        assert declared().missed == "all"

    def test_code_that_is_executed_again_declares_it_again(self):
        for expression in (HOURLY, "5 * * * *"):
            periodic(expression)(job(name="send")(send))

        assert declared().expression == "5 * * * *"

    def test_the_expression_by_its_name(self):
        periodic(cron=HOURLY)(job(name="send")(send))

        assert declared().expression == HOURLY

    def test_two_of_one_key(self):
        definition = periodic(HOURLY)(job(name="send")(send))

        with pytest.raises(InvalidSchedule, match=r"^Two schedules have the key 'send': .* another key=\.$"):
            periodic("5 * * * *")(definition)
        with pytest.raises(InvalidSchedule, match="'send'"):
            periodic(HOURLY, key="send")(job(name="other")(lambda: None))

    @pytest.mark.parametrize(
        ("args", "options", "message"),
        [
            (["61 * * * *"], {}, "The cron expression '61 \\* \\* \\* \\*' can't be read: bad minute"),
            ([], {}, "neither a cron expression nor an interval"),
            ([HOURLY], {"every": 5}, "both a cron expression and an interval"),
            ([], {"every": 0}, "every is 0"),
            ([], {"every": 5, "timezone": "UTC"}, "An interval has no time zone"),
            ([HOURLY], {"timezone": "Europe/Berln"}, "There is no time zone 'Europe/Berln'"),
            ([HOURLY], {"missed": "some"}, "missed is 'some'. It must be one of latest, all, none"),
            ([HOURLY], {"queue": "mail"}, "A schedule has no 'queue'. Did you mean 'queue_name'?"),
            ([HOURLY], {"timeout": 5}, r"give others to the job function: @job\(timeout=\.\.\.\)"),
            ([HOURLY], {"priority": "high"}, "priority is 'high'"),
            ([send], {}, "@periodic stands without its times"),
        ],
    )
    def test_what_is_refused_before_there_is_a_function(self, args, options, message):
        with pytest.raises(InvalidSchedule, match=message):
            periodic(*args, **options)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"args": [1, 2]}, r"send can't be called so: too many positional arguments; .*\)\. Correct"),
            ({"kwargs": {"subjct": 1}}, "unexpected keyword argument 'subjct'"),
            ({"args": [{1}]}, "argument 'to' is of type set"),
            ({"args": "ab"}, "args must be a list or tuple"),
            ({"kwargs": []}, "kwargs a dict"),
            ({"priority": 1000}, "priority of send is 1000"),
            ({"key": ""}, "The key '' can't name a schedule"),
            ({"key": "x" * 256}, "can't name a schedule"),
            ({"key": "a\0"}, "can't name a schedule"),
        ],
    )
    def test_what_does_not_fit_the_function(self, options, message):
        with pytest.raises(InvalidSchedule, match=message):
            periodic(HOURLY, **options)(job(name="send")(send))
        assert schedules.collect() == ({}, {})

    @pytest.mark.parametrize("target", [5, "send", int, len])
    def test_what_is_no_function(self, target):
        with pytest.raises(InvalidSchedule, match=r"^@periodic decorates a function, not "):
            periodic(HOURLY)(target)

    def test_a_function_that_never_becomes_a_job_is_found_by_the_checks(self):
        @periodic(HOURLY)
        def forgotten():
            pass

        (message,) = check_schedules()
        assert message.id == "django_jobs.E026"
        assert "forgotten, which is no job, and does nothing" in message.msg
        assert message.hint == "Decorate it with @job, too."

    def test_the_function_is_what_it_was(self):
        assert periodic(HOURLY)(send) is send
        del send.__django_jobs_periodic__


class TestSettings:
    def test_nothing_is_wrong(self, check):
        job(name="send")(send)

        assert check(a={"job": "send", "cron": HOURLY}, b={"job": "send", "every": 300, "args": ["x"]}) == []

    def test_are_declared_with_all_that_periodic_takes(self, settings):
        job(name="send")(send)
        settings.DJANGO_JOBS = {
            "SCHEDULES": {
                "nightly": {
                    "job": "send", "cron": "0 2 * * *", "timezone": "Europe/Berlin", "args": ("x",),
                    "kwargs": {"subject": "y"}, "missed": "none", "queue_name": "mail", "priority": None,
                }
            }
        }  # fmt: skip

        assert declared() == (
            "nightly", "send", "0 2 * * *", "Europe/Berlin", "none", '["x"]', '{"subject":"y"}', '{"queue_name":"mail"}'
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("entry", "code", "message", "hint"),
        [
            (5, "E020", "It is 5.", "It must be a dict"),
            ({"job": "send", "crn": HOURLY}, "E020", "A schedule has no 'crn'.", "Did you mean 'cron'?"),
            ({"job": "send", "cron": HOURLY, "missed": 5}, "E020", "missed is 5.", "latest, all, none"),
            ({"job": "send", "cron": "* *"}, "E021", "The cron expression '* *' has 2 fields.", "It has five fields"),
            ({"job": "send"}, "E021", "It has neither", "Give one"),
            ({"job": "send", "every": "5"}, "E021", "every is '5'.", "It must be a timedelta"),
            ({"job": "send", "cron": HOURLY, "timezone": "X"}, "E022", "There is no time zone 'X'", "IANA"),
            ({"job": "sned", "cron": HOURLY}, "E023", "No job is registered as 'sned'.", "Did you mean 'send'?"),
            ({"job": "xyz.abc", "cron": HOURLY}, "E023", "No job is registered", "Define it with @job"),
            ({"cron": HOURLY}, "E023", "Its 'job' is None.", "Give the name of a job"),
            ({"job": "send", "cron": HOURLY, "args": [1, 2]}, "E025", "send can't be called so", "Correct its args"),
            ({"job": "send", "cron": HOURLY, "priority": 101}, "E025", "priority of send is 101", "Correct"),
            ({"job": "nobody", "cron": HOURLY, "args": [{1}]}, "E025", "is of type set", "Correct"),
        ],
    )  # fmt: skip
    def test_each_finding(self, check, entry, code, message, hint):
        job(name="send")(send)

        (found,) = check(nightly=entry)

        assert found.id == f"django_jobs.{code}"
        assert found.msg.startswith("Schedule 'nightly': ")
        assert message in found.msg
        assert hint in found.hint

    def test_a_key_of_the_code(self, check):
        periodic(HOURLY, key="nightly")(job(name="send")(send))

        (found,) = check(nightly={"job": "send", "every": 60})

        assert found.id == "django_jobs.E024"
        assert (
            found.msg == "Schedule 'nightly': Its key is that of a schedule of send, which the code declares."
        )
        assert schedules.collect()[0]["nightly"].row.expression == HOURLY

    def test_every_finding_is_reported(self, check):
        assert len(check(a=1, b=2, c={"job": "send", "cron": HOURLY})) == 3

    @pytest.mark.parametrize("value", [[], 5, "x"])
    def test_no_dict_is_left_to_the_check_of_settings(self, settings, value):
        settings.DJANGO_JOBS = {"SCHEDULES": value}

        assert check_schedules() == []
        assert [message.id for message in check_settings()] == ["django_jobs.E003"]

    @pytest.mark.parametrize("key", [5, "", "x" * 256, None])
    def test_a_key_that_is_none(self, settings, key):
        settings.DJANGO_JOBS = {"SCHEDULES": {key: {"job": "send", "cron": HOURLY}}}

        (found,) = check_schedules()
        assert (found.id, "can't name a schedule" in found.msg) == ("django_jobs.E020", True)

    def test_one_whose_job_nobody_knows_is_declared_all_the_same(self, settings):
        settings.DJANGO_JOBS = {"SCHEDULES": {"nightly": {"job": "later", "cron": HOURLY, "args": [1]}}}

        found, problems = schedules.collect()
        assert (found["nightly"].row.name, found["nightly"].row.args) == ("later", "[1]")
        assert list(problems) == ["nightly"]
