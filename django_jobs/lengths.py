"""Lengths of time as people write them: ``90s``, ``15m``, ``12h``, ``7d``, ``2w``."""

from __future__ import annotations

import datetime as dt
import re

from django_jobs import limits

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_LENGTH = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([smhdw]?)", re.ASCII)


def parse_length(text: str) -> dt.timedelta | None:
    """The length of time, of seconds where no unit is written; None for what is none, or longer than a century."""
    match = _LENGTH.fullmatch(text.strip())
    seconds = float(match[1]) * UNITS[match[2] or "s"] if match else -1.0
    return dt.timedelta(seconds=seconds) if 0 <= seconds <= limits.LONGEST_DELAY else None


def length_text(seconds: float) -> str:
    """A length of time as :func:`parse_length` reads it."""
    for unit in "wdhm":
        if seconds and seconds % UNITS[unit] == 0:
            return f"{seconds / UNITS[unit]:g}{unit}"
    return f"{seconds:g}s"
