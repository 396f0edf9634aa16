"""Durations in words, alike in what the server writes and what the script in the page keeps up to date."""

from __future__ import annotations

from django.utils import formats
from django.utils.translation import gettext, ngettext, pgettext

from django_jobs.texts import number_text

MINUS = "\N{MINUS SIGN}"


def duration_units() -> tuple[str, str, str, str, str]:
    """The units: milliseconds, seconds, minutes, hours, days."""
    return (
        pgettext("milliseconds", "ms"),
        pgettext("seconds", "s"),
        pgettext("minutes", "min"),
        pgettext("hours", "h"),
        pgettext("days", "d"),
    )


def duration_text(seconds: float) -> str:
    """A span of time in its two largest units: ``12 ms``, ``3.4 s``, ``3 min 12 s``, ``2 h 5 min``, ``3 d 4 h``."""
    ms, s, minute, hour, day = duration_units()
    sign, seconds = (MINUS, -seconds) if seconds < 0 else ("", seconds)
    if seconds < 0.9995:
        return f"{sign}{seconds * 1000:.0f} {ms}"
    if seconds < 9.95:
        return f"{sign}{formats.number_format(round(seconds, 1), decimal_pos=1, use_l10n=True)} {s}"
    whole = round(seconds)
    if whole < 60:
        return f"{sign}{whole} {s}"
    if whole < 3600:
        return sign + _two(whole // 60, minute, whole % 60, s)
    if whole < 86400:
        return sign + _two(whole // 3600, hour, whole % 3600 // 60, minute)
    return sign + _two(whole // 86400, day, whole % 86400 // 3600, hour)


def ago_text(seconds: float) -> str:
    """How long ago something was, or (negative) in how long it will be: in whole seconds."""
    whole = round(abs(seconds))
    if whole == 0:
        return pgettext("a moment ago", "now")
    text = duration_text(whole) if whole >= 10 else f"{whole} {duration_units()[1]}"
    if seconds < 0:
        return gettext("in %(duration)s") % {"duration": text}
    return gettext("%(duration)s ago") % {"duration": text}


def busy_text(busy: int, slots: int) -> str:
    """How busy workers are: how many of their slots."""
    text = ngettext("%(busy)s of %(slots)s slot busy", "%(busy)s of %(slots)s slots busy", slots)
    return text % {"busy": number_text(busy), "slots": number_text(slots)}


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"
