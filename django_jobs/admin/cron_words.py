"""Cron expressions in plain words of the active language: those that most sites write."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext

from django_jobs.timing import NICKNAMES

_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_STEP = re.compile(r"\*/(\d{1,2})", re.ASCII)
_NUMBER = re.compile(r"\d{1,2}", re.ASCII)


def cron_text(expression: str) -> str | None:
    """In words; None for what there are no words for, and which then speaks for itself.

    :param expression: one that can be read, or a nickname.
    """
    fields = NICKNAMES.get(expression.lower(), expression).upper().split()
    if len(fields) != 5 or fields[3] != "*":
        return None
    minute, hour, day, _month, weekday = fields
    if (hour, day, weekday) == ("*", "*", "*"):
        return _within_the_hour(minute)
    if not (_NUMBER.fullmatch(minute) and _NUMBER.fullmatch(hour)):
        return None
    time = f"{int(hour):02d}:{int(minute):02d}"
    if (day, weekday) == ("*", "*"):
        return gettext("daily at %(time)s") % {"time": time}
    if day == "*":
        days = list(_named(weekday))
        words = gettext("at %(time)s: %(days)s") % {"time": time, "days": ", ".join(days)}
        return words if all(days) else None
    if weekday == "*" and _NUMBER.fullmatch(day):
        return gettext("at %(time)s on day %(day)s of each month") % {"time": time, "day": int(day)}
    return None


def _within_the_hour(minute: str) -> str | None:
    if minute in ("*", "*/1"):
        return gettext("every minute")
    step = _STEP.fullmatch(minute)
    if step and 60 % int(step[1]) == 0:
        return gettext("every %(count)s minutes") % {"count": int(step[1])}
    if _NUMBER.fullmatch(minute):
        return gettext("every hour, at minute %(minute)s") % {"minute": int(minute)}
    return None


def _named(weekday: str) -> Iterator[str]:
    """The days of the week, each range as one; an empty text for what is neither."""
    for part in weekday.split(","):
        names = [_day(each) for each in part.split("-")]
        yield "\N{EN DASH}".join(names) if len(names) <= 2 and all(names) else ""


def _day(text: str) -> str:
    if text in _DAYS:
        number = _DAYS.index(text)
    elif len(text) == 1 and text in "01234567":
        number = int(text) % 7
    else:
        return ""
    return str(WEEKDAYS[(number - 1) % 7])
