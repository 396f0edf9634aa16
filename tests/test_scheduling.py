"""Bringing the declared schedules into the database, and what operators do to them."""

import logging

import pytest

from django_jobs import InvalidJob, InvalidSchedule, job, periodic, registry
from django_jobs.models import Job, Schedule
from django_jobs.schedules import schedules
from django_jobs.scheduling import (
    get_schedule,
    get_schedules,
    pause_schedule,
    resume_schedule,
    run_schedule_now,
    synchronise,
)
from django_jobs.store import django_store

pytestmark = pytest.mark.django_db

HOURLY = "0 * * * *"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    for held in (registry, schedules):
        for name, value in vars(held).items():
            monkeypatch.setattr(held, name, type(value)())


@pytest.fixture
def send():
    def send(to="all"):
        pass

    return job(name="send", queue_name="mail")(send)


def declare():
    """Declare what the code has now, as a worker does that starts."""
    return {row.key for row in synchronise(django_store("default"), "default")}


def rows():
    return {row.key: row.removed_at is not None for row in Schedule.objects.all()}


def test_what_is_declared_is_there(send, settings):
    periodic(HOURLY, args=["x"])(send)
    settings.DJANGO_JOBS = {"SCHEDULES": {"nightly": {"job": "send", "cron": "0 2 * * *"}}}

    assert declare() == {"send", "nightly"}
    assert declare() == set()
    assert rows() == {"send": False, "nightly": False}
    assert get_schedule("send").args == '["x"]'


def test_what_is_declared_no_more_is_marked_until_it_comes_back(send):
    periodic(HOURLY)(send)
    declare()

    schedules.remove("send")
    assert declare() == {"send"}
    assert rows() == {"send": True}

    periodic(HOURLY)(send)
    assert declare() == {"send"}
    assert rows() == {"send": False}


def test_it_is_told(send, caplog):
    periodic(HOURLY, timezone="UTC")(send)
    with caplog.at_level(logging.INFO, "django_jobs.schedules"):
        declare()
        schedules.remove("send")
        declare()

    assert caplog.messages == [
        "Schedule 'send' is declared: 0 * * * * (UTC), send",
        "Schedule 'send' is declared no more, and does not run: 0 * * * * (UTC), send",
    ]


def test_what_the_settings_say_wrongly_is_told_and_stays_as_it_was(send, settings, caplog):
    settings.DJANGO_JOBS = {"SCHEDULES": {key: {"job": "send", "cron": HOURLY} for key in ("wrong", "right")}}
    declare()
    settings.DJANGO_JOBS = {
        "SCHEDULES": {"wrong": {"job": "send", "cron": "x"}, "right": {"job": "send", "every": 60}}
    }

    assert declare() == {"right"}

    assert rows() == {"wrong": False, "right": False}
    assert get_schedule("wrong").expression == HOURLY
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage().startswith("Schedule 'wrong': The cron expression 'x' has 1 field.")


def test_those_of_other_databases_are_not_ours(send, monkeypatch):
    periodic(HOURLY)(send)
    monkeypatch.setattr(
        "django_jobs.schedules.jobs_database", lambda using=None: "other" if using is None else using
    )

    assert declare() == set()
    assert rows() == {}


class TestOperations:
    @pytest.fixture(autouse=True)
    def _declared(self, send):
        periodic(HOURLY, args=["x"], priority=7)(send)
        periodic(every=60, key="other")(send)
        declare()

    def test_all_and_one(self):
        assert [row.key for row in get_schedules()] == ["other", "send"]
        assert get_schedule("send").expression == HOURLY
        assert get_schedule("nothing") is None

    def test_pause_and_resume(self):
        assert pause_schedule("send").paused_at is not None
        assert get_schedule("other").paused_at is None
        assert resume_schedule("send").paused_at is None
        assert pause_schedule("nothing") is resume_schedule("nothing") is None

    @pytest.mark.parametrize("paused", [False, True])
    def test_run_now(self, paused):
        if paused:
            pause_schedule("send")

        row = run_schedule_now("send")

        job = Job.objects.get()
        assert (row.id, job.name, job.queue_name, job.args, job.priority) == (
            job.pk,
            "send",
            "mail",
            ["x"],
            7,
        )
        assert job.metadata == {"schedule": "send", "tick": None}
        assert get_schedule("send").last_tick is None

    def test_run_now_in_a_database_that_was_named(self):
        assert run_schedule_now("send", using="default").using == "default"

    def test_run_now_of_what_is_not_there(self):
        assert run_schedule_now("nothing") is None

        registry.remove(registry.get("send"))
        with pytest.raises(InvalidSchedule, match="No job is registered as 'send' in this process"):
            run_schedule_now("send")

    def test_run_now_of_what_can_be_called_so_no_more(self):
        Schedule.objects.update(args=[1, 2])

        with pytest.raises(InvalidJob, match="too many positional arguments"):
            run_schedule_now("send")
        assert Job.objects.count() == 0

    @pytest.mark.parametrize(
        ("operation", "statements"),
        [(get_schedule, 1), (pause_schedule, 1), (resume_schedule, 1), (run_schedule_now, 2)],
    )
    def test_the_number_of_statements(self, operation, statements, django_assert_num_queries):
        with django_assert_num_queries(statements):
            operation("send")

    def test_declaring_again_is_two_statements(self, django_assert_num_queries):
        with django_assert_num_queries(2):
            assert declare() == set()


@pytest.mark.parametrize("key", ["", "a\0b", "k" * 256, 5, None])
@pytest.mark.parametrize("function", [get_schedule, pause_schedule, resume_schedule, run_schedule_now])
def test_what_can_be_no_key_is_refused_before_any_sql(function, key, django_assert_num_queries):
    with django_assert_num_queries(0), pytest.raises(InvalidSchedule, match="can't name a schedule"):
        function(key)
