"""A job's result as it is stored."""

from __future__ import annotations

from typing import Any

from django_jobs import conf
from django_jobs.serialization import NotStorable, encode_storable


class ResultNotStorable(NotStorable):
    """What a job returned can't be stored; the message says what, where, and what to do.

    The job is a dead letter at once, whatever attempts are left and whatever its ``retry_on`` says: its work is done,
    and would do all of it again, to fail at the same end. (With ``atomic=True`` what it wrote is rolled back.)
    """


def encode_result(result: Any) -> str | None:
    """The text of a result; None for None.

    :raises ResultNotStorable: for what JSON or one of the databases can't hold, and for what is too large.
    """
    if result is None:
        return None
    try:
        text = encode_storable(result, "the result")
        size = len(text.encode())
        most = conf.get("MAX_RESULT_BYTES")
    except BaseException as error:  # NotStorable, or what a strange object raises when it is looked at
        raise ResultNotStorable(message_of(error)) from error
    if size > most:
        raise ResultNotStorable(
            f"the result is {size:,} bytes as JSON, over the limit of {most:,}; store the data and return its key, or "
            f"raise DJANGO_JOBS['MAX_RESULT_BYTES']"
        )
    return text


def message_of(error: BaseException) -> str:
    """The text of an error of an object that fails at anything."""
    try:
        return str(error)
    except BaseException as second:  # noqa: BLE001 - a __str__ may raise anything
        return f"(its message can't be read: {type(second).__name__})"
