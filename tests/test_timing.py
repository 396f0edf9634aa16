"""When schedules tick: cron expressions around daylight saving, intervals, and what of missed ticks is owed."""

import datetime as dt
import itertools
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from django_jobs import InvalidSchedule
from django_jobs.timing import EPOCH, MOST_CAUGHT_UP, Cron, Interval, parse, zone_name

BERLIN = "Europe/Berlin"


def utc(text):
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def on(day, expression, zone=BERLIN):
    """The ticks of a day on that zone's clock, as it shows them, with the offset from UTC in hours."""
    start = dt.datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    end = start.replace(tzinfo=None) + dt.timedelta(days=1)
    found, timing = [], Cron(expression, zone)
    moment = start.astimezone(dt.UTC) - dt.timedelta(seconds=1)
    while True:
        moment = timing.after(moment)
        local = moment.astimezone(ZoneInfo(zone))
        if local.replace(tzinfo=None) >= end:
            return found
        found.append(f"{local:%H:%M}{local.utcoffset() / dt.timedelta(hours=1):+g}")


def between(timing, first, last):
    """All ticks from ``first`` (a moment) to ``last``, by going from each to the next."""
    ticks = []
    moment = first - dt.timedelta(microseconds=1)
    while (moment := timing.after(moment)) <= last:
        ticks.append(moment)
    return ticks


# In Berlin 02:00 to 03:00 does not exist on 2026-03-29, and comes twice on 2026-10-25.
class TestTheHourThatDoesNotExist:
    @pytest.mark.parametrize(
        ("expression", "ticks"),
        [
            ("0 2 * * *", ["03:00+2"]),
            ("30 2 * * *", ["03:00+2"]),
            ("30 1 * * *", ["01:30+1"]),
            ("0 3 * * *", ["03:00+2"]),
            ("0,30 2 * * *", ["03:00+2"]),
            ("0 2,3 * * *", ["03:00+2"]),
            ("30 1-3 * * *", ["01:30+1", "03:00+2", "03:30+2"]),
            ("0-59/15 2 * * *", ["03:00+2"]),
            ("@daily", ["00:00+1"]),
        ],
    )
    def test_what_has_its_time_comes_at_the_first_moment_after_it_once(self, expression, ticks):
        assert on("2026-03-29", expression) == ticks

    def test_what_goes_on_goes_on(self):
        ticks = on("2026-03-29", "*/15 * * * *")

        assert len(ticks) == 23 * 4
        assert ticks[7:9] == ["01:45+1", "03:00+2"]
        assert on("2026-03-29", "*/15 2 * * *") == []
        assert len(on("2026-03-29", "@hourly")) == 23

    def test_at_midnight(self):
        assert on("2026-09-06", "0 0 * * *", "America/Santiago") == ["01:00-3"]

    def test_a_day_that_does_not_exist(self):
        ticks = between(Cron("0 12 * * *", "Pacific/Apia"), utc("2011-12-29T00:00"), utc("2011-12-31T12:00"))

        # The clock went from the end of the 29th to the 31st: the 30th's tick comes at its first moment.
        assert [f"{tick.astimezone(ZoneInfo('Pacific/Apia')):%d %H:%M}" for tick in ticks] == [
            "29 12:00",
            "31 00:00",
            "31 12:00",
        ]


class TestTheHourThatComesTwice:
    @pytest.mark.parametrize(
        ("expression", "ticks"),
        [
            ("0 2 * * *", ["02:00+2"]),
            ("30 2 * * *", ["02:30+2"]),
            ("30 1 * * *", ["01:30+2"]),
            ("0 3 * * *", ["03:00+1"]),
            ("0-59/15 2 * * *", ["02:00+2", "02:15+2", "02:30+2", "02:45+2"]),
            ("30 1-3 * * *", ["01:30+2", "02:30+2", "03:30+1"]),
        ],
    )
    def test_what_has_its_time_comes_once_the_first_time(self, expression, ticks):
        assert on("2026-10-25", expression) == ticks

    def test_half_past_one_where_that_comes_twice(self):
        assert on("2026-10-25", "30 1 * * *", "Europe/London") == ["01:30+1"]
        assert on("2026-11-01", "30 1 * * *", "America/New_York") == ["01:30-4"]

    def test_what_goes_on_goes_on(self):
        ticks = on("2026-10-25", "*/15 * * * *")

        assert len(ticks) == 25 * 4
        assert ticks[11:17] == ["02:45+2", "02:00+1", "02:15+1", "02:30+1", "02:45+1", "03:00+1"]
        assert len(on("2026-10-25", "*/15 2 * * *")) == 8

    @pytest.mark.parametrize("minute", range(0, 120, 7))
    def test_whoever_looks_in_between_finds_no_tick_of_the_past(self, minute):
        moment = utc("2026-10-25T00:00") + dt.timedelta(minutes=minute)  # 02:00 to 03:53, the hour twice

        for expression in ("30 2 * * *", "0,30 2,3 * * *"):
            assert Cron(expression, BERLIN).after(moment) > moment


ZONES = ["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kathmandu"]
EXPRESSIONS = [
    "0 2 * * *",
    "30 1 * * *",
    "*/15 * * * *",
    "7 */3 * * *",
    "5,50 1-3 * * MON-FRI",
    "0 9 1 * *",
    "@hourly",
]
TIMINGS = [Cron(expression, zone) for zone in ZONES for expression in EXPRESSIONS]
TIMINGS += [Interval(7), Interval(dt.timedelta(minutes=5)), Interval(86_400 * 3), Interval(1.5)]
# Around the changes of the clocks in the six zones, and elsewhere.
MOMENTS = st.one_of(
    *(
        st.datetimes(utc(day).replace(tzinfo=None), (utc(day) + dt.timedelta(days=3)).replace(tzinfo=None))
        for day in (
            "2026-03-28", "2026-10-24", "2026-03-07", "2026-10-31",
            "2026-04-03", "2026-10-02", "2026-09-05", "2026-06-01",
        )
    )
).map(lambda moment: moment.replace(tzinfo=dt.UTC))  # fmt: skip


class TestArithmetic:
    @given(st.sampled_from(TIMINGS), MOMENTS)
    def test_the_next_tick_is_later_and_nothing_lies_between(self, timing, moment):
        tick = timing.after(moment)

        assert tick > moment
        assert tick.tzinfo is dt.UTC
        middle = moment + (tick - moment) / 2
        assert timing.after(middle) == tick
        assert timing.after(tick - dt.timedelta(microseconds=1)) == tick

    @given(st.sampled_from(TIMINGS), MOMENTS, st.integers(0, 3 * 86_400))
    def test_the_latest_tick_is_what_going_from_one_to_the_next_ends_at(self, timing, moment, seconds):
        first = timing.after(moment)
        last = first + dt.timedelta(seconds=seconds)
        if isinstance(timing, Interval) and timing.every < dt.timedelta(minutes=1):
            last = min(last, first + dt.timedelta(hours=1))

        assert timing.latest(first, last) == between(timing, first, last)[-1]

    @given(st.sampled_from(TIMINGS), MOMENTS, st.integers(0, 86_400))
    def test_all_that_is_owed_are_the_newest(self, timing, moment, seconds):
        first = timing.after(moment)
        now = first + dt.timedelta(seconds=seconds)
        if isinstance(timing, Interval) and timing.every < dt.timedelta(minutes=1):
            now = min(now, first + dt.timedelta(hours=1))

        assert timing.owed(first, now, "all") == between(timing, first, now)[-MOST_CAUGHT_UP:]

    def test_the_latest_after_years_is_found_in_a_few_steps(self, monkeypatch):
        timing = Cron("* * * * *")
        steps = itertools.count()
        after = timing.after
        monkeypatch.setattr(timing, "after", lambda moment: (next(steps), after(moment))[1])

        assert timing.latest(utc("2016-01-01T00:00"), utc("2031-05-06T07:08:09")) == utc("2031-05-06T07:08")
        assert next(steps) < 100


class TestOwed:
    timing = Cron("*/5 * * * *")
    first, now = utc("2031-05-06T07:00"), utc("2031-05-06T10:03")

    def test_latest_is_one(self):
        assert self.timing.owed(self.first, self.now, "latest") == [utc("2031-05-06T10:00")]

    def test_all_are_all(self):
        owed = self.timing.owed(self.first, self.now, "all")

        assert (len(owed), owed[0], owed[-1]) == (37, self.first, utc("2031-05-06T10:00"))

    def test_all_are_a_hundred_at_most_the_newest(self):
        owed = self.timing.owed(self.first - dt.timedelta(days=30), self.now, "all")

        assert (len(owed), owed[-1]) == (MOST_CAUGHT_UP, utc("2031-05-06T10:00"))
        assert owed == sorted(set(owed))

    def test_none_is_none_that_is_over_a_minute_late(self):
        assert self.timing.owed(self.first, self.now, "none") == []
        assert self.timing.owed(self.first, self.first + dt.timedelta(seconds=60), "none") == [self.first]
        assert self.timing.owed(self.first, self.first + dt.timedelta(seconds=60.1), "none") == []

    @pytest.mark.parametrize("missed", ["latest", "all", "none"])
    def test_one_in_time_is_run_whatever_is_done_about_missed_ones(self, missed):
        assert self.timing.owed(self.first, self.first, missed) == [self.first]


class TestInterval:
    def test_ticks_are_the_multiples_since_1970_whoever_asks_and_when(self):
        timing = Interval(dt.timedelta(minutes=5))

        assert timing.after(utc("2031-05-06T07:08:09")) == utc("2031-05-06T07:10")
        assert timing.after(utc("2031-05-06T07:10")) == utc("2031-05-06T07:15")
        assert timing.after(EPOCH - dt.timedelta(seconds=1)) == EPOCH

    @pytest.mark.parametrize(
        ("every", "expression"),
        [
            (300, "every 300 s"),
            (dt.timedelta(days=400), "every 34560000 s"),
            (1.5, "every 1.5 s"),
            (dt.timedelta(seconds=86_401, microseconds=1), "every 86401.000001 s"),
        ],
    )
    def test_comes_back_from_its_text(self, every, expression):
        timing = Interval(every)

        assert (timing.expression, timing.timezone) == (expression, "UTC")
        assert parse(expression, "UTC").every == timing.every

    @pytest.mark.parametrize(
        "every", [0, -5, 0.5, dt.timedelta(), dt.timedelta(seconds=-1), "300", True, None, float("nan"), 1e12]
    )
    def test_what_is_none(self, every):
        with pytest.raises(
            InvalidSchedule, match=r"^every is .*\. It must be a timedelta, or a number of seconds"
        ):
            Interval(every)


class TestCron:
    @pytest.mark.parametrize(
        ("expression", "problem"),
        [
            ("61 * * * *", "can't be read: bad minute"),
            ("* 24 * * *", "can't be read: bad hour"),
            ("* * 32 * *", "can't be read: bad day-of-month"),
            ("* * * 13 *", "can't be read: bad month"),
            ("* * * * 8", "can't be read: bad day-of-week"),
            ("* * * * MOO", "can't be read: bad day-of-week"),
            ("*/0 * * * *", "can't be read: bad minute"),
            ("5-1 * * * *", "can't be read: bad minute"),
            ("\u0661 * * * *", "can't be read: bad minute"),
            ("0 0 30 2 *", "can't be read: bad day-of-month"),
            ("* * * * 1-5#2", "can't be read: bad day-of-week"),
            ("* * * *", "has 4 fields"),
            ("0 * * * * *", "has 6 fields"),
            ("hourly", "has 1 field"),
            ("@reboot", "is no nickname that is known"),
            (",".join(["1"] * 200) + " * * * *", "has more than 200 characters"),
        ],
    )
    def test_what_is_none_says_why_and_what_to_write(self, expression, problem):
        with pytest.raises(InvalidSchedule, match=problem) as caught:
            Cron(expression)

        assert caught.value.code == "django_jobs.E021"
        assert "It has five fields" in caught.value.hint

    @pytest.mark.parametrize("expression", ["", "  ", None, 5, ["*"]])
    def test_no_text(self, expression):
        with pytest.raises(InvalidSchedule, match=r"^The cron expression is "):
            Cron(expression)

    @pytest.mark.parametrize(
        "zone", ["Europe/Berln", "", "../etc/passwd", "/etc/localtime", "Africa", "x" * 65, 5, "\0"]
    )
    def test_an_unknown_zone(self, zone):
        with pytest.raises(InvalidSchedule, match=r"^There is no time zone ") as caught:
            Cron("* * * * *", zone)

        assert caught.value.code == "django_jobs.E022"

    def test_is_stored_as_it_was_written_but_for_spaces(self):
        timing = Cron("  */5  *  * * mon ", BERLIN)

        assert (timing.expression, timing.timezone) == ("*/5 * * * mon", BERLIN)
        assert parse(timing.expression, timing.timezone).after(EPOCH) == timing.after(EPOCH)

    def test_leap_day(self):
        assert Cron("0 0 29 2 *").after(utc("2096-03-01T00:00")) == utc("2104-02-29T00:00")

    def test_zones_by_name_and_as_such(self):
        assert zone_name(ZoneInfo(BERLIN)) == zone_name(BERLIN) == BERLIN
        assert zone_name(dt.UTC) == "UTC"
        with pytest.raises(InvalidSchedule):
            zone_name(dt.timezone(dt.timedelta(hours=1)))
