"""Numbers on a command line."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable


def seconds(text: str) -> float:
    """A number of seconds, 0 or more. Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number of seconds, 0 or more")
    return value


def positive_seconds(text: str) -> float:
    """A number of seconds above 0. Raises ArgumentTypeError."""
    value = seconds(text)
    if value == 0:
        raise ArgumentTypeError("it must be more than 0 seconds")
    return value


def whole(highest: int) -> Callable[[str], int]:
    """A reader of whole numbers from 1 to ``highest``; it raises ArgumentTypeError."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 12 and 1 <= int(text) <= highest):
            raise ArgumentTypeError(f"{text!r} is not a whole number from 1 to {highest}")
        return int(text)

    return read
