"""How long a job waits after a failed attempt, and what a broken policy does not do."""

import dataclasses
import datetime as dt
import logging
import math

import pytest
from hypothesis import given, strategies as st

from django_jobs import InvalidJob, job
from django_jobs.backoff import DAY, DEFAULT, Exponential, Fixed, Linear, Polynomial, as_policy, delay_after


@dataclasses.dataclass
class Failed:
    id: int = 7


def after(backoff, attempt=1, exception=None, failed=None):
    return delay_after(as_policy(backoff), attempt, exception, failed)


def without_jitter(policy):
    return dataclasses.replace(policy, jitter=0)


class TestForms:
    @pytest.mark.parametrize("backoff", [30, 30.0, dt.timedelta(seconds=30)])
    def test_one_delay_for_all_attempts(self, backoff):
        assert [after(backoff, attempt) for attempt in (1, 2, 300)] == [30, 30, 30]

    @pytest.mark.parametrize("backoff", [[1, 2.5, dt.timedelta(minutes=1)], (1, 2.5, 60), range(1, 4)])
    def test_a_sequence_whose_last_delay_holds_on(self, backoff):
        expected = [float(delay) if not isinstance(delay, dt.timedelta) else 60.0 for delay in backoff]

        assert [after(backoff, attempt) for attempt in (1, 2, 3)] == expected
        assert after(backoff, 300) == expected[-1]

    def test_a_sequence_of_one(self):
        assert [after([5], attempt) for attempt in (1, 2)] == [5, 5]

    def test_a_callable_is_told_the_attempt_the_exception_and_the_job(self):
        told = []
        error, failed = KeyError("x"), Failed()

        def five(*given):
            told.append(given)
            return 5

        assert after(five, 3, error, failed) == 5
        assert told == [(3, error, failed)]

    @pytest.mark.parametrize("delay", [5, 5.0, dt.timedelta(seconds=5)])
    def test_a_callable_returns_any_kind_of_delay(self, delay):
        assert after(lambda *_: delay) == 5

    def test_zero_is_a_delay(self):
        assert after(0) == after([0]) == after(lambda *_: 0) == 0

    def test_nothing_is_the_default(self):
        assert as_policy(None) is DEFAULT

    @pytest.mark.parametrize("policy", [Polynomial(), Exponential(), Linear(), Fixed()])
    def test_a_policy_is_taken_as_it_is(self, policy):
        assert as_policy(policy) is policy

    @pytest.mark.parametrize(
        ("backoff", "message"),
        [
            (-1, "backoff has the negative delay -1"),
            (dt.timedelta(seconds=-1), "backoff has the negative delay -1"),
            ([5, -1], "backoff has the negative delay -1"),
            (math.nan, "a delay must be finite and at most a hundred years, not nan seconds"),
            (math.inf, "a delay must be finite"),
            ([math.inf], "a delay must be finite"),
            (10**400, "a delay must be finite"),
            (DAY + 1, "backoff has the delay 86401; the longest is a day, 86400 seconds"),
            ([60, dt.timedelta(days=2)], "backoff has the delay 172800; the longest is a day"),
            ([], "backoff is an empty sequence; give at least one delay"),
            (True, "backoff is True; it must be seconds, a timedelta, a sequence of those, or a callable"),
            ("60", "backoff is '60'; it must be seconds"),
            (b"60", "backoff is b'60'; it must be seconds"),
            (["60"], "a delay is a number of seconds or a timedelta, not str"),
            ({1, 2}, "backoff is {1, 2}; it must be seconds"),
            (object(), "backoff is <object object at"),
            (Exponential, "backoff is the class Exponential; make an instance of it: Exponential()"),
        ],
        ids=lambda value: value[:40] if isinstance(value, str) else type(value).__name__,
    )
    def test_what_is_refused_when_the_job_is_defined(self, backoff, message):
        with pytest.raises((TypeError, ValueError)) as refusal:
            as_policy(backoff)
        assert str(refusal.value).startswith(message)
        with pytest.raises(InvalidJob) as refused:
            job(name="tests.backoff", backoff=backoff)(lambda: None)
        assert str(refused.value).startswith(f"backoff of tests.backoff: {message}")

    def test_an_async_function_is_refused(self):
        async def backoff(attempt, exception, job): ...

        with pytest.raises(TypeError, match="backoff is the async function backoff; it must be a plain one"):
            as_policy(backoff)


class TestPolicies:
    def test_the_default_is_the_attempt_to_the_power_of_four(self):
        assert [without_jitter(DEFAULT)(attempt) for attempt in (1, 2, 3, 4, 17)] == [1, 16, 81, 256, 83521]

    @pytest.mark.parametrize(
        ("policy", "delays"),
        [
            (Polynomial(exponent=2), [1, 4, 9, 16]),
            (Exponential(), [1, 2, 4, 8]),
            (Exponential(base=10, factor=3), [10, 30, 90, 270]),
            (Linear(step=20), [20, 40, 60, 80]),
            (Fixed(delay=15), [15, 15, 15, 15]),
        ],
    )
    def test_grow(self, policy, delays):
        assert [without_jitter(policy)(attempt) for attempt in (1, 2, 3, 4)] == delays

    @given(
        st.integers(1, 17),
        st.sampled_from([DEFAULT, Exponential(jitter=0.1), Linear(jitter=0.1), Fixed(jitter=0.1)]),
    )
    def test_jitter_is_a_tenth_at_most(self, attempt, policy):
        middle = without_jitter(policy)(attempt)

        assert middle * 0.9 <= policy(attempt) <= min(middle * 1.1, DAY)

    @pytest.mark.parametrize(("share", "delay"), [(0.0, 14.4), (0.5, 16.0), (1.0, 17.6)])
    def test_jitter_reaches_both_ends(self, share, delay, monkeypatch):
        monkeypatch.setattr("random.uniform", lambda low, high: low + (high - low) * share)

        assert Polynomial()(2) == pytest.approx(delay)

    def test_jitter_spreads(self):
        assert len({Polynomial()(10) for _ in range(100)}) > 90

    @pytest.mark.parametrize(
        "policy",
        [
            DEFAULT,
            Polynomial(100),
            Exponential(),
            Exponential(1, 1e9),
            Linear(1e9),
            Exponential(1, 2, jitter=0),
        ],
    )
    @pytest.mark.parametrize("attempt", [300, 32_767])
    def test_a_day_is_the_cap_and_nothing_overflows(self, policy, attempt):
        assert policy(attempt) == DAY
        assert delay_after(policy, attempt, None, None) == DAY

    @pytest.mark.parametrize("attempt", range(1, 301))
    def test_the_default_at_every_attempt(self, attempt):
        assert 0.9 <= delay_after(DEFAULT, attempt, None, None) <= DAY

    def test_the_cap_can_be_lower(self):
        assert Exponential(cap=60)(300) == Fixed(delay=90, cap=60)(1) == 60

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Fixed(-1), "negative delay -1"),
            (lambda: Fixed(math.nan), "must be finite"),
            (lambda: Exponential(base="1"), "not str"),  # type: ignore[arg-type]
            (lambda: Exponential(factor=math.inf), "must be finite"),
            (lambda: Polynomial(exponent=-2), "negative delay -2"),
            (lambda: Linear(jitter=1.5), "jitter of a backoff is 1.5; it must be at most 1"),
            (lambda: Fixed(cap=DAY * 2), "cap of a backoff is 172800; it must be at most 86400"),
        ],
    )
    def test_their_numbers_are_checked_when_they_are_made(self, make, message):
        with pytest.raises((TypeError, ValueError), match=message):
            make()


def fails(*_):
    raise LookupError("no such table")


def exits(*_):
    raise SystemExit(1)


class TestBrokenPolicies:
    @pytest.mark.parametrize(
        "backoff",
        [
            fails,
            exits,
            lambda: 5,
            lambda *_: None,
            lambda *_: -1,
            lambda *_: math.nan,
            lambda *_: math.inf,
            lambda *_: 10**400,
            lambda *_: "5",
            lambda *_: True,
            lambda *_: dt.timedelta(seconds=-5),
            lambda *_: dt.datetime(2001, 1, 1, tzinfo=dt.UTC),
            lambda *_: [5],
        ],
    )
    def test_the_default_is_used_and_the_log_says_so(self, backoff, caplog, monkeypatch):
        monkeypatch.setattr(logging.getLogger("django_jobs"), "propagate", True)
        caplog.set_level(logging.INFO, "django_jobs")

        delay = after(backoff, 3, KeyError("x"), Failed())

        assert 81 * 0.9 <= delay <= 81 * 1.1
        (record,) = [record for record in caplog.records if record.name == "django_jobs.backoff"]
        assert record.getMessage() == "The backoff of job 7 failed; the default is used"
        assert record.levelno == logging.ERROR
        assert record.exc_info is not None

    def test_a_delay_over_a_day_is_cut(self):
        assert after(lambda *_: DAY * 3) == after(lambda *_: dt.timedelta(days=3)) == DAY
