"""The ticker: what is due is run, once, whatever the clock and other keepers do; what fails harms nothing else."""

import datetime as dt
import logging
import threading
from functools import partial

import pytest
from django.db import OperationalError, connection

from django_jobs.models import Job, Schedule
from django_jobs.store.rows import NewSchedule
from django_jobs.worker import ticker as module
from django_jobs.worker.keeper import Keeper
from django_jobs.worker.ticker import REFRESH_SECONDS, Ticker
from tests.store.builders import in_threads
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT

START = dt.datetime(2031, 5, 6, 7, 8, 9, tzinfo=dt.UTC)
NAME = "tests.ticked"


def at(text):
    """A moment of the day that the tests are on."""
    return dt.datetime.combine(START.date(), dt.time.fromisoformat(text), dt.UTC)


def declare(store, key="tests.schedule", name=NAME, expression="*/5 * * * *", now=START, **declared):
    store.upsert_schedules([NewSchedule(key, name, expression, **declared)], now=now)


def ticks(key="tests.schedule"):
    """The ticks that have a job, in the order in which those were inserted."""
    metadata = Job.objects.order_by("pk").values_list("metadata", flat=True)
    return [dt.datetime.fromisoformat(each["tick"]) for each in metadata if each["schedule"] == key]


@pytest.fixture(autouse=True)
def job(define):
    return define(lambda *args, **kwargs: None, name=NAME, queue_name="ticked")


@pytest.fixture
def woken():
    return []


@pytest.fixture
def ticker(woken):
    return Ticker("default", woken.append)


@pytest.fixture
def run(ticker, store):
    """Run what is due at a moment; what the ticker says of the time until the next."""

    def at_moment(moment):
        return ticker.run(store, now=moment)

    return at_moment


class TestTicks:
    def test_nothing_to_do(self, run):
        assert run(START) == float("inf")

    def test_the_next_tick_is_worked_out_and_then_run(self, run, store, woken):
        declare(store)

        assert run(START) == 111.0
        assert (ticks(), woken) == ([], [])
        assert run(at("07:09:59.999")) == pytest.approx(0.001)  # a timer that fires early
        assert ticks() == []
        assert run(at("07:10")) == 300.0
        assert ticks() == [at("07:10")]
        assert run(at("07:10:01")) == 299.0
        assert ticks() == [at("07:10")]
        assert woken == ["ticked"]

    def test_the_job_is_what_was_declared(self, run, store):
        declare(store, args='["x"]', kwargs='{"y":1}', options='{"priority":7,"queue_name":"other"}')
        run(START)
        run(at("07:10:02"))

        job = Job.objects.get()
        assert (job.name, job.queue_name, job.priority) == (NAME, "other", 7)
        assert (job.args, job.kwargs) == (["x"], {"y": 1})
        assert job.metadata == {"schedule": "tests.schedule", "tick": "2031-05-06T07:10:00+00:00"}
        assert Schedule.objects.get().last_job_id == job.pk

    @pytest.mark.parametrize(
        ("missed", "expected"),
        [
            ("latest", [at("10:10")]),
            ("none", []),
            ("all", [at("07:10") + number * dt.timedelta(minutes=5) for number in range(37)]),
        ],
    )
    def test_a_keeper_that_was_down_for_three_hours(self, run, store, missed, expected):
        declare(store, missed=missed)
        run(START)

        assert run(at("10:13:09")) == 111.0
        assert ticks() == expected
        run(at("10:15"))
        assert ticks()[len(expected) :] == [at("10:15")]

    def test_missed_ticks_are_told(self, run, store, caplog):
        declare(store)
        run(START)
        with caplog.at_level(logging.INFO, "django_jobs.schedules"):
            run(at("07:13"))
            assert caplog.messages == []
            run(at("10:13"))

        first, last = at("07:15"), at("10:10")
        assert caplog.messages == [
            f"Schedule {'tests.schedule'!r}: ticks from {first} on were missed; 1 of them, from {last} on, is run"
        ]

    def test_a_clock_that_steps_back(self, run, store):
        declare(store)
        for moment in ("07:08", "07:10", "07:15", "07:09", "07:10:01", "07:14:59", "07:15:01"):
            run(at(moment))

        assert ticks() == [at("07:10"), at("07:15")]

    def test_a_clock_that_steps_back_as_the_code_changes_and_changes_back(self, run, store):
        declare(store)
        run(at("07:08:30"))
        run(at("07:10"))
        declare(store, expression="* * * * *", now=at("07:09"))
        declare(store, now=at("07:09:01"))
        for moment in ("07:09:02", "07:10", "07:10:30", "07:15"):
            run(at(moment))

        assert ticks() == [at("07:10"), at("07:15")]

    def test_a_paused_one_runs_again_from_its_next_tick_on(self, run, store):
        declare(store)
        run(START)
        store.pause_schedule("tests.schedule", True, now=at("07:09"))
        run(at("09:00"))
        store.pause_schedule("tests.schedule", False, now=at("09:01"))

        assert run(at("09:01")) == 240.0
        assert ticks() == []
        run(at("09:05"))
        assert ticks() == [at("09:05")]

    def test_a_job_that_was_purged_before_a_slow_keeper_looks(self, run, store):
        declare(store)
        run(START)
        run(at("07:10"))
        Job.objects.update(state="completed", finalized_at=at("07:10:01"))
        assert len(store.purge("completed", 0.0, now=at("07:10:01"))) == 1

        run(at("07:10:02"))
        assert Job.objects.count() == 0

    def test_two_keepers_overlap(self, open_store):
        stores = [open_store() for _ in range(3)]
        tickers = [Ticker("default", lambda queue_name: None) for _ in stores]
        for number in range(5):
            declare(stores[0], f"{number}", missed="all")
        everybody_has_read = threading.Barrier(len(stores))

        def run_at_once(one, store, moment):
            due_schedules = store.due_schedules

            def read(now):
                due = due_schedules(now)
                everybody_has_read.wait(TIMEOUT)
                return due

            store.due_schedules = read
            one.run(store, now=moment)
            store.due_schedules = due_schedules

        moments = [START + dt.timedelta(minutes=minute) for minute in (0, 2, 3, 40, 45, 46, 60)]
        for moment in moments:
            in_threads(
                *(partial(run_at_once, *pair, moment) for pair in zip(tickers, stores, strict=True)),
            )
            # Who was overtaken looks again.
            tickers[0].run(stores[0], now=moment)

        expected = [at("07:10") + number * dt.timedelta(minutes=5) for number in range(12)]
        for number in range(5):
            assert ticks(f"{number}") == expected

    def test_daylight_saving(self, run, store):
        """The daily job runs once, in the night whose hour is missing and in that whose hour comes twice."""
        declare(store, "two", expression="0 2 * * *", timezone="Europe/Berlin")
        declare(store, "half past one", expression="30 1 * * *", timezone="Europe/London")
        for night in (
            dt.datetime(2031, 3, 29, 12, tzinfo=dt.UTC),
            dt.datetime(2031, 10, 25, 12, tzinfo=dt.UTC),
        ):
            Job.objects.all().delete()
            for key in ("two", "half past one"):
                store.pause_schedule(key, True, now=night)
                store.pause_schedule(key, False, now=night)
            for minute in range(0, 24 * 60, 10):
                run(night + dt.timedelta(minutes=minute))

            assert (len(ticks("two")), len(ticks("half past one"))) == (1, 1)


class TestFailures:
    @pytest.fixture
    def clock(self, monkeypatch):
        """The monotonic clock, moved by the test."""

        class Clock:
            now = 1000.0

            def monotonic(self):
                return self.now

        clock = Clock()
        monkeypatch.setattr(module, "time", clock)
        return clock

    def test_a_job_that_nobody_has_registered(self, run, store, clock, define, caplog):
        declare(store, "unknown", "tests.unknown")
        declare(store)
        run(START)

        assert run(at("07:10")) == 1.0
        assert ticks() == [at("07:10")], "the other goes on"
        error = Schedule.objects.get(key="unknown").last_error
        assert error.startswith("No job is registered as 'tests.unknown' in this process.")
        assert "its tick can't be run (1 in a row), and is tried again in 1 s: No job is" in caplog.text

        define(lambda: None, name="tests.unknown")
        run(at("07:10"))
        assert ticks("unknown") == [], "not at once again"
        clock.now += 1
        assert run(at("07:10:01")) == 299.0
        assert ticks("unknown") == [at("07:10")]
        assert Schedule.objects.get(key="unknown").last_error == ""

    def test_it_backs_off_and_notes_the_same_error_once(self, run, store, clock):
        declare(store, "unknown", "tests.unknown")
        run(START)
        waits, statements = [], []
        for _ in range(9):
            before = store.session.statements
            waits.append(run(at("07:10")))
            statements.append(store.session.statements - before)
            clock.now += waits[-1]

        assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
        assert statements == [2] + [1] * 8

    def test_an_insert_that_fails(self, run, store, clock, monkeypatch):
        declare(store)
        declare(store, "other")
        run(START)
        tick_schedule = store.tick_schedule

        def fail(tick, *args, **kwargs):
            if tick.schedule.key == "other":
                raise OperationalError("disk full")
            return tick_schedule(tick, *args, **kwargs)

        monkeypatch.setattr(store, "tick_schedule", fail)
        run(at("07:10"))
        assert (ticks(), ticks("other")) == ([at("07:10")], [])
        assert Schedule.objects.get(key="other").last_error == "OperationalError: disk full"

        monkeypatch.undo()
        monkeypatch.setattr(module, "time", clock)
        clock.now += 1
        run(at("07:10:01"))
        assert ticks("other") == [at("07:10")]

    def test_a_tick_that_is_stored_though_the_answer_is_lost_is_one_job(self, run, store, clock, monkeypatch):
        declare(store)
        run(START)
        tick_schedule = store.tick_schedule

        def lose(*args, **kwargs):
            tick_schedule(*args, **kwargs)
            monkeypatch.setattr(store, "tick_schedule", tick_schedule)
            raise OperationalError("the connection was closed")

        monkeypatch.setattr(store, "tick_schedule", lose)
        run(at("07:10"))
        clock.now += 1
        run(at("07:10:01"))
        assert ticks() == [at("07:10")]

        run(at("07:20"))
        assert ticks() == [at("07:10"), at("07:20")]

    def test_a_next_tick_that_is_no_moment_is_worked_out_again(self, run, store):
        """Somebody's SQL has written it. On SQLite a moment in another form than ours is found again, too."""
        odd = {"postgresql": ["-infinity", "0044-03-15 BC"], "sqlite": ["", "1970", "2031-05-06"]}[
            connection.vendor
        ]
        for number, text in enumerate(odd):
            declare(store, f"odd {number}")
            run(START)
            with connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE django_jobs_schedule SET next_tick = %s WHERE key = %s", [text, f"odd {number}"]
                )

        run(at("07:08:30"))
        run(at("07:10:00"))
        run(at("07:10:00"))

        for number in range(len(odd)):
            assert ticks(f"odd {number}")[-1] == at("07:10"), odd[number]
            assert Schedule.objects.get(key=f"odd {number}").last_error == ""

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("expression", "x y"), ("timezone", "No/Where"), ("args", {"a": 1}), ("kwargs", 5), ("options", {"x": 1}),
            ("options", []), ("missed", "whatever"),
        ],
    )  # fmt: skip
    def test_a_row_that_somebody_has_damaged_harms_no_other(self, run, store, clock, column, value):
        declare(store)
        declare(store, "damaged")
        run(START)
        Schedule.objects.filter(key="damaged").update(**{column: value})

        run(at("07:10"))

        assert ticks() == [at("07:10")]
        if column != "missed":  # what is not known is taken for the default
            assert ticks("damaged") == []
            assert Schedule.objects.get(key="damaged").last_error

    def test_a_next_tick_that_was_run_already_is_worked_out_anew(self, run, store):
        declare(store)
        run(START)
        run(at("07:10"))
        Schedule.objects.update(next_tick=at("07:00"))

        assert run(at("07:12")) == 180.0
        assert ticks() == [at("07:10")]

    def test_what_changed_meanwhile_is_looked_at_again_soon(self, run, store, monkeypatch):
        declare(store)
        run(START)
        monkeypatch.setattr(store, "tick_schedule", lambda *args, **kwargs: None)

        assert run(at("07:10")) == module.AGAIN

    def test_a_changed_declaration_is_tried_at_once(self, run, store, clock):
        declare(store, "wrong", "tests.unknown")
        run(START)
        run(at("07:10"))
        declare(store, "wrong", NAME, "* * * * *", now=at("07:10:30"))

        run(at("07:11"))
        assert ticks("wrong") == [at("07:11")]

    def test_the_database_is_away(self, ticker, store, clock, monkeypatch, caplog):
        declare(store)

        def fail(now=None):
            raise OperationalError("the server is away")

        monkeypatch.setattr(store, "due_schedules", fail)
        waits = []
        for _ in range(12):
            waits.append(ticker.maintain(store))
            clock.now += waits[-1]

        assert 0.05 <= waits[0] <= 0.1
        assert 0 < max(waits) <= 10
        assert waits[-1] > 4
        assert (
            "The schedules can't be looked at (12 in a row): OperationalError: the server is away"
            in caplog.text
        )


class TestMaintain:
    def test_it_looks_again_when_it_is_time_or_when_told(self, ticker, store):
        def statements():
            before = store.session.statements
            wait = ticker.maintain(store)
            assert 0 < wait <= REFRESH_SECONDS
            return store.session.statements - before

        assert [statements() for _ in range(3)] == [1, 0, 0]
        ticker.look()
        assert [statements() for _ in range(2)] == [1, 0]

    def test_synchronising_is_done_once(self, ticker, store):
        assert ticker.synchronise(store) is None
        before = store.session.statements

        assert ticker.synchronise(store) is None
        assert store.session.statements == before

    def test_synchronising_that_fails_is_tried_again(self, ticker, store, monkeypatch, caplog):
        def fail(*args, **kwargs):
            raise OperationalError("no such table")

        monkeypatch.setattr(store, "remove_schedules", fail)
        assert 0 < ticker.synchronise(store) <= 0.1
        assert ticker.synchronise(store) <= 0.1
        assert caplog.text.count("The schedules can't be synchronised (1 in a row)") == 1

        monkeypatch.undo()
        eventually(lambda: ticker.synchronise(store) is None)

    def test_a_keeper_that_does_not_lead_declares_and_runs_nothing(self, open_store, store, ticker, started):
        declare(store)
        store.acquire_leadership("keeper", "another", 60.0)
        keeper = started(Keeper(open_store, 30.0, lambda: 0.0, lambda queue_name: None, ticker))

        eventually(lambda: Schedule.objects.get().removed_at is not None)
        assert not keeper.leads
        assert Schedule.objects.get().next_tick is None
