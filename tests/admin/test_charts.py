"""Charts: what is drawn, what is said, whatever the numbers and the language."""

import datetime as dt

import pytest
from django.utils import translation

from django_jobs.admin.charts import Chart, Series, nice
from django_jobs.admin.words import duration_text
from django_jobs.texts import number_text

START = dt.datetime(2026, 11, 30, 6, 0, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)


def chart(*values: list[float | None], stacked: bool = True, step: dt.timedelta = MINUTE) -> Chart:
    series = [Series(f"series {number}", "ok", each) for number, each in enumerate(values)]
    starts = [START + number * step for number in range(len(values[0]))]
    return Chart("test", "Test", starts, step, series, number_text if stacked else duration_text, stacked)


@pytest.mark.parametrize(
    ("most", "top"),
    [(0, 2), (1, 2), (2, 2), (3, 4), (5, 6), (9, 10), (11, 12), (13, 14), (17, 20), (45, 50), (1201, 1400)],
)
def test_the_top_of_an_axis_that_counts_is_round_and_even(most: float, top: float) -> None:
    assert nice(most) == top


@pytest.mark.parametrize(("most", "top"), [(0, 1), (0.003, 0.003), (0.11, 0.12), (1.7, 2), (98, 100)])
def test_the_top_of_an_axis_of_times(most: float, top: float) -> None:
    assert nice(most, whole=False) == pytest.approx(top)


def test_bars_stand_on_top_of_each_other_and_reach_the_top_at_most() -> None:
    drawn = chart([5, 0, 10], [5, 2, 0])

    first, second, third = drawn.steps
    assert [(bar.y, bar.height) for bar in first.bars] == [("50", "50"), ("0", "50")]
    assert [(bar.y, bar.height) for bar in second.bars] == [("80", "20")]
    assert [(bar.y, bar.height) for bar in third.bars] == [("0", "100")]
    assert drawn.labels_y == ["10", "5", "0"]


def test_one_among_a_million_is_seen() -> None:
    drawn = chart([1_000_000, 1])

    assert float(drawn.steps[1].bars[0].height) >= 1


def test_each_step_says_when_and_what() -> None:
    drawn = chart([5, 0], [1, 0])

    assert drawn.steps[0].text == "06:00\N{EN DASH}06:01  series 0: 5, series 1: 1"
    assert drawn.steps[1].text == "06:01\N{EN DASH}06:02  nothing"


def test_a_line_is_broken_where_nothing_is_known() -> None:
    drawn = chart([1.0, 2.0, None, 4.0], stacked=False)

    ((_kind, path),) = drawn.lines
    assert path.count("M") == 2
    assert path.startswith("M25 75L125 75L375 50M")


def test_the_table_has_what_happened_the_latest_first() -> None:
    drawn = chart([5, 0, 7], [None, None, 2])

    assert drawn.rows == [
        ("06:02\N{EN DASH}06:03", ["7", "2"]),
        ("06:00\N{EN DASH}06:01", ["5", "\N{EN DASH}"]),
    ]


def test_the_axis_of_time_has_equal_distances() -> None:
    assert chart([1] * 60).labels_x == ["06:00", "06:15", "06:30", "06:45", "07:00"]
    week = chart([1] * 84, step=dt.timedelta(hours=2))
    assert week.labels_x == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Mon"]


def test_nothing_is_nothing() -> None:
    assert chart([0, 0]).is_empty
    assert chart([None, None], stacked=False).is_empty
    assert not chart([0, 1]).is_empty


def test_coordinates_have_points_whatever_the_language() -> None:
    with translation.override("de"):
        drawn = chart([1, 2, 3], [1, 0, 0])
        numbers = [
            number for step in drawn.steps for bar in step.bars for number in (bar.x, bar.y, bar.height)
        ]
        assert not [number for number in numbers if "," in number]
