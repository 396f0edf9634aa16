"""The marks past which a slow claim begins: what they cover, and when they stand."""

import pytest

from django_jobs.store import low_water as module
from django_jobs.store.low_water import LowWater, Part
from tests.worker.fakes import row


class Seconds:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Seconds()


@pytest.fixture
def water(clock):
    water = LowWater(clock)
    water.began("mail", SLOW, [at(1)])  # the first slow claim
    return water


SLOW, QUICK = 2.0, 0.0003


def at(id_, priority=0, second=0):
    return row(id_, priority=priority, run_after=f"2031-05-06 07:08:{second:02}.000000+00")


def covered(parts):
    """All priorities that the parts cover, and those of them with a mark."""
    every = [priority for part in parts for priority in range(part.highest, part.lowest - 1, -1)]
    assert every == sorted(every, reverse=True), "the highest come first, none twice"
    return every, [part.highest for part in parts if part.moment is not None]


def test_a_queue_has_no_marks_at_first(water):
    assert water.parts("mail") == []


def test_one_slow_claim_may_be_chance(water):
    water.began("mail", QUICK, [at(1)])
    water.began("mail", SLOW, [at(1)])
    assert water.parts("mail") == []

    water.began("mail", SLOW, [at(2)])
    assert water.parts("mail")


def test_a_quick_claim_sets_none(water):
    water.began("mail", QUICK, [at(1)])

    assert water.parts("mail") == []


def test_a_slow_claim_sets_the_last_job_of_each_priority(water):
    water.began("mail", SLOW, [at(1, 10), at(2, 10, 1), at(3, 0), at(4, 0, 2), at(5, 0, 2), at(6, -100)])

    assert water.parts("mail") == [
        Part(100, 11, None, None),
        Part(10, 10, "2031-05-06 07:08:01.000000+00", 2),
        Part(9, 1, None, None),
        Part(0, 0, "2031-05-06 07:08:02.000000+00", 5),
        Part(-1, -99, None, None),
        Part(-100, -100, "2031-05-06 07:08:00.000000+00", 6),
    ]
    assert water.parts("other") == []


@pytest.mark.parametrize("marked", [[], [100], [-100], [100, 99, 0], list(range(100, -101, -1)), [50, -50]])
def test_the_parts_are_the_whole_range(water, marked):
    water.began("mail", SLOW, [at(1), *(at(priority + 200, priority) for priority in marked)])

    every, with_marks = covered(water.parts("mail"))
    assert every == list(range(100, -101, -1))
    assert with_marks == sorted({0, *marked}, reverse=True)[: module.MOST_MARKS]


def test_the_marks_rise_with_the_claims_from_them_on(water):
    water.began("mail", SLOW, [at(1)])
    water.went_on("mail", QUICK, [at(7, 5), at(8, 0, 3)], True)

    assert [part[2:] for part in water.parts("mail") if part.moment] == [
        ("2031-05-06 07:08:00.000000+00", 7),
        ("2031-05-06 07:08:03.000000+00", 8),
    ]


def test_the_beginning_is_looked_at_in_a_twentieth_of_the_time(water, clock):
    water.began("mail", SLOW, [at(1)])
    clock.now += SLOW * 20 - 0.1
    assert water.parts("mail")
    clock.now += 0.2
    assert water.parts("mail") == []


def test_and_once_a_minute_however_slow_it_is(water, clock):
    water.began("mail", 100.0, [at(1)])
    water.began("mail", 100.0, [at(1)])
    clock.now += module.BEGINNINGS_SECONDS - 0.1
    assert water.parts("mail")
    clock.now += 0.2
    assert water.parts("mail") == []


def test_of_two_slow_claims_the_quicker_one_counts(water, clock):
    """The machine stood still."""
    water.began("mail", 50 * SLOW, [at(1)])
    clock.now += SLOW * 20 + 0.1
    assert water.parts("mail") == []


def test_a_claim_that_did_not_get_all_may_have_passed_over_jobs_until_one_from_the_beginning(water, clock):
    water.began("mail", SLOW, [at(1)])
    assert water.seconds_until_beginning("mail") is None
    water.went_on("mail", QUICK, [at(2)], False)
    assert water.seconds_until_beginning("mail") == pytest.approx(SLOW * 20)
    assert water.seconds_until_beginning("other") is None

    water.went_on("mail", QUICK, [at(3)], True)
    assert water.seconds_until_beginning("mail") is None, "there may be more, so it is claimed again at once"
    water.went_on("mail", QUICK, [], False)
    clock.now += SLOW * 20 + 1
    assert water.seconds_until_beginning("mail") == 0
    water.began("mail", SLOW, [])
    assert water.seconds_until_beginning("mail") is None


def test_claims_that_are_quick_again_have_no_marks(water):
    water.began("mail", SLOW, [at(1)])
    water.began("mail", QUICK, [at(2)])

    assert water.parts("mail") == []


def test_a_slow_claim_of_nothing_sets_none(water):
    water.began("mail", SLOW, [])

    assert water.parts("mail") == []


def test_many_jobs_may_take_longer(water):
    water.began("mail", QUICK, [])
    water.began("mail", 0.05, [at(number) for number in range(1, 1001)])
    assert water.parts("mail") == []

    water.began("mail", 0.05, [at(1)])
    water.began("mail", 0.05, [at(1)])
    assert water.parts("mail")


def test_where_the_database_is_far_away_marks_are_tried_once(water):
    water.began("mail", 0.1, [at(1)])
    water.went_on("mail", 0.1, [at(2)], True)
    water.began("mail", 0.1, [at(3)])
    assert water.parts("mail") == []

    water.began("mail", 0.1, [at(4)])
    assert water.parts("mail") == []
    water.began("mail", 0.3, [at(5)])
    water.began("mail", 0.3, [at(6)])
    assert water.parts("mail")
