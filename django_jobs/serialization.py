"""JSON and time as the job table stores them.

The standard library's ``json`` is used on purpose: it keeps integers of any size, 1e22 as a float and -0.0 as
itself. (Faster encoders stop at 64 bits or write NaN as null.)
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable
from typing import Any

from django_jobs.limits import JSON_DEPTH

encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=True).encode
_scanner = json.JSONDecoder(parse_constant=lambda text: _refuse_constant(text)).decode

_SCALARS = frozenset({str, int, float, bool, type(None)})


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def decode(text: str) -> Any:
    """The value of a JSON text. Raises ValueError when it is none (too deep a nesting included)."""
    try:
        return _scanner(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


class Undecodable(str):
    """The text of a JSON column that does not decode: shown as it is, never run."""

    __slots__ = ()


class NotStorable(ValueError):
    """A value that JSON, or one of the databases, can't hold; the message says what and where."""


def encode_storable(value: Any, what: str) -> str:
    """Encode a value that both databases can hold and give back equal.

    ``what`` names the value in the error ("argument 'user_id'"). Raises :class:`NotStorable`, which says what is
    wrong, where in the value, and what to do.
    """
    problem = find_problem(value, what)
    if problem is not None:
        raise NotStorable(problem)
    try:
        return encode(value)
    except (ValueError, TypeError, RecursionError) as error:  # such as an integer of over 4,300 digits
        raise NotStorable(f"{what}: {error}") from None


def find_problem(value: Any, where: str, depth: int = 0) -> str | None:
    """Say what keeps ``value`` from being stored as JSON, or None when nothing does."""
    kind = type(value)
    if kind is str:
        return None if value.isascii() and "\0" not in value else _text_problem(value, where)
    if kind is int or kind is bool or value is None:
        return None
    if depth > JSON_DEPTH:
        return f"{where.split('[', 1)[0]} is nested more than {JSON_DEPTH} levels deep."
    if isinstance(value, float):
        if math.isfinite(value):
            return None
        return f"{where} is {value}, which JSON can't hold. Pass None, or a string, and convert it in the job."
    if isinstance(value, list):
        for index, item in enumerate(value):
            if type(item) not in _SCALARS or type(item) is str or type(item) is float:
                problem = find_problem(item, f"{where}[{index}]", depth + 1)
                if problem is not None:
                    return problem
        return None
    if isinstance(value, dict):
        for key, item in value.items():
            problem = _key_problem(key, where) or find_problem(item, f"{where}[{key!r}]", depth + 1)
            if problem is not None:
                return problem
        return None
    if isinstance(value, str):
        return _text_problem(value, where)
    if isinstance(value, int):
        return None
    return _type_problem(value, where)


def _key_problem(key: Any, where: str) -> str | None:
    if not isinstance(key, str):
        return (
            f"{where} has the key {key!r} of type {type(key).__name__}; JSON keys are strings, and it would come "
            f"back as one. Use str keys."
        )
    return _text_problem(key, f"the key {key!r} of {where}")


def _text_problem(value: str, where: str) -> str | None:
    position = value.find("\0")
    if position >= 0:
        return f"{where} has a NUL character at position {position}, which a database's text can't hold. Remove it."
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return (
            f"{where} has a lone surrogate (U+{ord(value[error.start]):04X}) at position {error.start}, which is not "
            f"text. Decode the bytes it came from with errors='replace'."
        )
    return None


_ADVICE = {
    "tuple": "It would come back as a list: pass a list.",
    "set": "Pass a sorted list.",
    "frozenset": "Pass a sorted list.",
    "bytes": "Pass text, or base64.",
    "datetime": "Pass .isoformat() and parse it in the job.",
    "date": "Pass .isoformat() and parse it in the job.",
    "time": "Pass .isoformat() and parse it in the job.",
    "timedelta": "Pass .total_seconds().",
    "Decimal": "Pass str(value).",
    "UUID": "Pass str(value).",
    "__proxy__": "It is a lazy string: pass str(value).",
}


def _type_problem(value: Any, where: str) -> str:
    kind = type(value).__name__
    advice = _ADVICE.get(kind, "Pass what JSON has: text, numbers, booleans, None, lists and dicts with str keys.")
    if hasattr(value, "_meta") and hasattr(value, "pk"):
        advice = "It is a model instance: pass its pk and load it in the job."
    return f"{where} is of type {kind}, which is not JSON. {advice}"


def timestamp_text(moment: dt.datetime) -> str:
    """An aware moment as SQLite stores it: UTC, six digits after the second, so that texts sort as times do."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def parse_timestamp(value: str | dt.datetime | None) -> dt.datetime | None:
    """The moment a statement returned, aware; a naive one is UTC, as SQLite stores it."""
    if value is None:
        return None
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)


def printable(text: str) -> str:
    """Text that both databases can hold: NUL and lone surrogates are shown as escapes."""
    if "\0" in text:
        text = text.replace("\0", "\\x00")
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text


def array_literal(values: Iterable[Any]) -> str:
    """A PostgreSQL array of numbers, as text; None is NULL.

    Written here because psycopg dumps an array element by element, which costs more than the rest of a claim.
    """
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def text_array_literal(values: Iterable[str | None]) -> str:
    """A PostgreSQL array of texts, as text; None is NULL."""
    return (
        "{"
        + ",".join(
            [
                "NULL" if value is None else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
                for value in values
            ]
        )
        + "}"
    )
