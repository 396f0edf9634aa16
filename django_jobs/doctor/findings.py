"""What an examination finds."""

from __future__ import annotations

from typing import NamedTuple

OK = "ok"
WARNING = "warning"
ERROR = "error"


class Finding(NamedTuple):
    """One thing that was looked at.

    :param level: ``ok``, ``warning`` or ``error``.
    :param name: what was looked at.
    :param message: what was found.
    :param hint: what to do about it.
    """

    level: str
    name: str
    message: str
    hint: str = ""
