"""JSON and time as the job table stores them.

The standard library's ``json`` is used on purpose: it keeps integers of any size, 1e22 as a float and -0.0 as
itself. (Faster encoders stop at 64 bits or write NaN as null.)
"""

from __future__ import annotations

import datetime as dt
import json
import math
import sys
from collections import OrderedDict
from collections.abc import Iterable
from json.encoder import c_make_encoder  # type: ignore[attr-defined] # not in typeshed
from typing import Any

from django_jobs.limits import JSON_DEPTH
from django_jobs.texts import Explained, Text, text as _

encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=True
).encode


def _encoder_of_bounded() -> Any:
    """An encoder for values that are known not to contain themselves, made once.

    ``JSONEncoder.encode`` makes itself such a one at every call, which takes longer than a job's arguments take.
    """
    settings = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if c_make_encoder is None:  # an interpreter without the extension module
        return settings.encode
    chunks_of = c_make_encoder(
        None, settings.default, json.encoder.encode_basestring, None, ":", ",", False, False, False
    )
    return lambda value: "".join(chunks_of(value, 0))


_encode_bounded = _encoder_of_bounded()

_SCALARS = frozenset({str, int, float, bool, type(None)})
_STR = frozenset({str})
_ITEMS = (dict.items, OrderedDict.items)

# How much of a value is shown in a message.
SHOWN = 100


def _refuse_constant(text: str) -> Any:
    raise Explained(_("%(value)s is not JSON", value=text))


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)
_scan = _decoder.scan_once  # type: ignore[attr-defined] # not in typeshed


def decode(text: str) -> Any:
    """The value of a JSON text. Raises ValueError when it is none (too deep a nesting included)."""
    try:
        # The scanner itself, since the decoder around it looks for white space, which our own texts have not.
        try:
            value, end = _scan(text, 0)
        except StopIteration:
            end = -1
        return value if end == len(text) else _decoder.decode(text)
    except RecursionError:
        raise Explained(_("the JSON is nested too deeply")) from None


class Undecodable(str):
    """The text of a JSON column that does not decode: shown as it is, never run."""

    __slots__ = ()


def decoded(text: Any) -> Any:
    """The value of a JSON column that is not null; an Undecodable where it is no JSON."""
    if text.__class__ is not str:  # SQLite holds anything there: bytes, a number, text that is no UTF-8
        if isinstance(text, bytes):
            return Undecodable(text.decode(errors="backslashreplace"))
        return text if isinstance(text, str) else Undecodable(text)
    try:
        return decode(text)
    except ValueError:
        return Undecodable(text)


class NotStorable(Explained):
    """A value that JSON, or one of the databases, can't hold; the message says what and where."""


def encode_storable(value: Any, what: str) -> str:
    """Encode a value that both databases can hold and give back equal.

    ``what`` names the value in the error ("argument 'user_id'"). Raises :class:`NotStorable`, which says what is
    wrong, where in the value, and what to do.
    """
    text = encode_plain(value)
    if text is not None:
        return text
    problem = find_problem(value, what)
    if problem is not None:
        raise NotStorable(problem)
    try:
        return encode(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise NotStorable(f"{what} can't be written as JSON: {error}") from None


def encode_plain(value: Any) -> str | None:
    """The usual case of :func:`encode_storable`, quickly; None when the value needs a closer look."""
    # A list of scalars, the most usual of all, needs no call of its own.
    if not (type(value) is list and _SCALARS.issuperset(map(type, value))) and not _plain(value):
        return None
    try:
        text = _encode_bounded(value)
    except (ValueError, RecursionError):  # NaN, infinity, an integer of over 4,300 digits
        return None
    # The text is looked at once as a whole, rather than each string in it.
    return text if "\\u0000" not in text and (text.isascii() or _is_text(text)) else None


def _plain(value: Any, depth: int = 0) -> bool:
    """Whether the value is made of exactly the types that JSON has, not of subclasses, and not too deeply nested."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if depth >= JSON_DEPTH:
        return False
    if kind is dict:
        if not _STR.issuperset(map(type, value)):
            return False
        value = value.values()
    elif kind is not list:
        return False
    if _SCALARS.issuperset(map(type, value)):
        return True
    return all(type(item) in _SCALARS or _plain(item, depth + 1) for item in value)


def _is_text(value: str) -> bool:
    try:
        str.encode(value)
    except UnicodeEncodeError:
        return False
    return True


def find_problem(value: Any, where: str, depth: int = 0, path: str = "") -> str | None:
    """Say what keeps ``value`` from being stored as JSON, or None when nothing does.

    :param where: what the value is called.
    :param path: the way into it, to where this part of it stands.
    """
    # By the type, never by isinstance: that asks a lazy object what it stands for, which may be a query.
    kind = type(value)
    if issubclass(kind, str):
        return _text_problem(value, where, path)
    if value is None or kind is bool:
        return None
    if issubclass(kind, int):
        return _int_problem(value, where, path)
    if issubclass(kind, float):
        if math.isfinite(value):
            return None
        return _(
            "%(where)s is %(number)s, which JSON can't hold. Pass None, or a string, and convert it where it is read.",
            where=_within(where, path),
            number=float.__repr__(value),
        )
    # A subclass that is read in a way of its own is not what the encoder would see: QueryDict has more than one value
    # for a key, ErrorList nothing at all.
    is_list = issubclass(kind, list) and kind.__iter__ is list.__iter__
    if not is_list and not (issubclass(kind, dict) and kind.items in _ITEMS):
        return _type_problem(value, f"{where}{path}")
    if depth >= JSON_DEPTH:
        return _(
            "%(where)s is nested more than %(most)d levels deep, or contains itself. Pass it flat, or as text.",
            where=where,
            most=JSON_DEPTH,
        )
    items = enumerate(value) if is_list else value.items()
    for key, item in items:
        problem = None if is_list else _key_problem(key, where, path)
        if problem is None:
            problem = find_problem(item, where, depth + 1, f"{path}[{shown(key)}]")
        if problem is not None:
            return problem
    return None


def _within(where: str, path: str) -> str:
    return Text("%(where)s%(path)s", {"where": where, "path": path}) if path else where


def _key_problem(key: Any, where: str, path: str) -> str | None:
    if not issubclass(type(key), str):
        # Not marked: a page has keys from JSON alone.
        return (
            f"{where}{path} has the key {shown(key)} of type {type(key).__name__}; JSON keys are strings, and it would "
            f"come back as one. Use str keys."
        )
    if str.find(key, "\0") < 0 and _is_text(key):
        return None
    return _text_problem(key, _("the key %(key)s of %(where)s", key=shown(key), where=_within(where, path)))


def _text_problem(value: str, where: str, path: str = "") -> str | None:
    position = str.find(value, "\0")
    if position >= 0:
        return _(
            "%(where)s has a NUL character at position %(position)d, which a database's text can't hold. Remove it.",
            where=_within(where, path),
            position=position,
        )
    try:
        str.encode(value)
    except UnicodeEncodeError as error:
        return _(
            "%(where)s has a lone surrogate (%(code)s) at position %(position)d, which is not text. Decode the bytes "
            "it came from with errors='replace'.",
            where=_within(where, path),
            code=f"U+{ord(str.__getitem__(value, error.start)):04X}",
            position=error.start,
        )
    return None


def _int_problem(value: int, where: str, path: str) -> str | None:
    try:
        int.__repr__(value)
    except ValueError:
        # Not marked, nor is what follows: what a page has comes from JSON.
        return (
            f"{where}{path} is an integer of more than {sys.get_int_max_str_digits():,} digits, which Python does not "
            f"write. Pass it in hexadecimal, as text: hex(value)."
        )
    return None


_ADVICE = {
    "tuple": "It would come back as a list: pass a list.",
    "set": "Pass a sorted list.",
    "frozenset": "Pass a sorted list.",
    "bytes": "Pass text, or base64.",
    "bytearray": "Pass text, or base64.",
    "datetime": "Pass .isoformat() and parse it where it is read.",
    "date": "Pass .isoformat() and parse it where it is read.",
    "time": "Pass .isoformat() and parse it where it is read.",
    "timedelta": "Pass .total_seconds().",
    "Decimal": "Pass str(value).",
    "UUID": "Pass str(value).",
    "PurePath": "Pass str(value).",
    "Enum": "Pass .value.",
    "Promise": "It is a lazy string: pass str(value).",
    "LazyObject": "It is evaluated when it is used: pass what it stands for, of a model instance the pk.",
    "JobRow": "It is a job: pass its id, and read it with django_jobs.operations.get().",
    "Model": "It is a model instance: pass its pk and load it where it is used.",
    "QuerySet": "Pass list(queryset.values_list('pk', flat=True)).",
    "MultiValueDict": "It has lists of values: pass .dict(), or dict(value.lists()).",
    "list": "It is read in a way of its own: pass list(value).",
    "dict": "It is read in a way of its own: pass dict(value.items()).",
    "generator": "Pass list(value).",
    "coroutine": "It was never awaited: an async def function was called without await.",
}


def _type_problem(value: Any, where: str) -> str:
    kind = type(value)
    advice = next(
        (_ADVICE[base.__name__] for base in kind.__mro__ if base.__name__ in _ADVICE),
        "Pass what JSON has: text, numbers, booleans, None, lists and dicts with str keys.",
    )
    return f"{where} is of type {kind.__name__}, which is not JSON. {advice}"


def shown(value: Any) -> str:
    """``repr(value)`` for a message: not longer than a line, and never an error of its own."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the error that is being told matters, not this one
        return f"<{type(value).__name__}>"
    text = printable(text)  # a representation of somebody's own may hold what no log and no page can
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def timestamp_text(moment: dt.datetime) -> str:
    """An aware moment as SQLite stores it: UTC, six digits after the second, so that texts sort as times do."""
    # Without its zone first: to write that takes as long as all else.
    return moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def parse_timestamp(value: str | dt.datetime | None) -> dt.datetime | None:
    """The moment a statement returned, aware; a naive one is UTC, as SQLite stores it."""
    if value is None:
        return None
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)


def stored_timestamp(value: Any) -> dt.datetime | None:
    """:func:`parse_timestamp` of a column; None too for what no datetime can be, as somebody's SQL may write there:
    PostgreSQL has an infinity and years that Python has not, and SQLite takes anything."""
    try:
        return parse_timestamp(value)
    except (ValueError, OverflowError, TypeError, AttributeError):
        return None


#: The ends of the calendar as they are shown: with room for any time zone, in which a later moment may not exist.
FIRST_MOMENT = dt.datetime(1, 1, 3, tzinfo=dt.UTC)
LAST_MOMENT = dt.datetime(9999, 12, 29, tzinfo=dt.UTC)


def clamped_timestamp(value: Any) -> dt.datetime | None:
    """:func:`parse_timestamp` of a column; what no datetime can be is the end of the calendar that the database takes
    it for when it compares. So only null is None: a worker that stopped at infinity has stopped."""
    moment = stored_timestamp(value)
    if moment is not None:
        return min(max(moment, FIRST_MOMENT), LAST_MOMENT)
    if value is None:
        return None
    if isinstance(value, str):  # of SQLite anything; of PostgreSQL an infinity, or a year that Python has not
        return FIRST_MOMENT if value < "0001-01-03" or value.endswith("BC") else LAST_MOMENT
    return LAST_MOMENT if isinstance(value, bytes) else FIRST_MOMENT


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
