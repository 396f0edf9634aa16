"""Durations and numbers in words."""

import pytest
from django.utils import translation

from django_jobs.admin.cron_words import cron_text
from django_jobs.admin.job_lines import Progress
from django_jobs.admin.words import ago_text, duration_text
from django_jobs.operations import Count
from django_jobs.templatetags.django_jobs_admin import duration, number
from django_jobs.texts import number_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0123, "12 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (3.44, "3.4 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (86_400, "1 d"),
        (273_600, "3 d 4 h"),
        (-61, "\N{MINUS SIGN}1 min 1 s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.3, "now"),
        (1, "1 s ago"),
        (9.4, "9 s ago"),
        (75, "1 min 15 s ago"),
        (-75, "in 1 min 15 s"),
        (-0.2, "now"),
    ],
)
def test_ages(seconds: float, text: str) -> None:
    assert ago_text(seconds) == text


def test_numbers_are_written_as_the_language_does() -> None:
    assert (number_text(1234567), number_text(10.8), number_text(0)) == ("1,234,567", "10.8", "0")
    with translation.override("de"):
        assert (number_text(1234567), number_text(10.8)) == ("1.234.567", "10,8")
        assert number_text(Count(1234567, capped=True)) == "1.234.567"


@pytest.mark.parametrize("odd", ["abc", float("inf"), float("nan"), b"x", "", [1]])
def test_what_is_no_number_is_shown_as_it_is(odd) -> None:
    assert number(odd) == str(odd)


@pytest.mark.parametrize(
    ("done", "total", "english", "german"),
    [
        (12_345, 1_234_567, "12,345 / 1,234,567", "12.345 / 1.234.567"),
        (0.5, 2.25, "0.5 / 2.25", "0,5 / 2,25"),
        (1 / 3, None, "0.3333333333", "0,3333333333"),
        (1234567.125, None, "1,234,567.125", "1.234.567,125"),
        (10**30, None, f"1{',000' * 10}", f"1{'.000' * 10}"),
        (0, None, "0", "0"),
    ],
)
def test_progress_is_written_as_the_language_does(done, total, english: str, german: str) -> None:
    progress = Progress.of({"done": done, "total": total})
    assert progress is not None
    assert progress.text == english
    with translation.override("de"):
        assert progress.text == german


def test_durations_are_written_as_the_language_does() -> None:
    with translation.override("de"):
        assert (duration_text(3.44), duration_text(0.9996), duration_text(61)) == (
            "3,4 s",
            "1,0 s",
            "1 min 1 s",
        )
        assert duration(1234.5678) == '<span class="dj-nowrap" title="1234,568 s">20 min 35 s</span>'
    assert duration(1234.5678) == '<span class="dj-nowrap" title="1234.568 s">20 min 35 s</span>'


@pytest.mark.parametrize(
    ("expression", "german", "spanish"),
    [
        ("* * * * *", "jede Minute", "cada minuto"),
        ("*/15 * * * *", "alle 15 Minuten", "cada 15 minutos"),
        ("@hourly", "jede Stunde, zur Minute 0", "cada hora, en el minuto 0"),
        ("0 3 * * *", "täglich um 03:00", "a diario a las 03:00"),
        ("30 2 * * MON-FRI", "um 02:30: Montag\N{EN DASH}Freitag", "a las 02:30: lunes\N{EN DASH}viernes"),
        ("30 2 * * 1,7", "um 02:30: Montag, Sonntag", "a las 02:30: lunes, domingo"),
        ("0 6 1 * *", "um 06:00 am 1. jedes Monats", "a las 06:00 el día 1 de cada mes"),
        # For these there are no words.
        ("*/7 * * * *", None, None),
        ("0 6 1 JAN *", None, None),
        ("0 6 1 * MON", None, None),
        ("0 6 * * MON#1", None, None),
        ("0 9-17 * * *", None, None),
    ],
)
def test_cron_expressions(expression: str, german: str | None, spanish: str | None) -> None:
    with translation.override("de"):
        assert cron_text(expression) == german
    with translation.override("es"):
        words = cron_text(expression)
        assert (words and words.lower()) == spanish
