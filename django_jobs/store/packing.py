"""What few jobs have, in one column: of a claim on SQLite, where each column of each row costs as much as to write it.

Exact for whatever a column can hold, also what somebody's SQL has written there: bytes, texts that are none, numbers
where there should be times.
"""

from __future__ import annotations

from typing import Any

from django_jobs.serialization import Undecodable
from django_jobs.store.rows import CANCEL_REQUESTED_AT, JOB_COLUMNS, KEY_UNTIL

# The columns of a job that come packed. All are null but for few jobs; holds_key is 0 then.
_FIRST, _LAST = CANCEL_REQUESTED_AT, KEY_UNTIL
_NAMES = JOB_COLUMNS[_FIRST : _LAST + 1]
#: What a row is to be followed by that has nothing packed: its own last column is null then, as the first of these is.
NOTHING = tuple(0 if name == "holds_key" else None for name in _NAMES[1:])


def packed() -> str:
    """The expression that packs them: null for a job that has nothing of it, else their values as SQLite's literals,
    but texts as t and their bytes in hexadecimal (a literal ends at a NUL)."""
    empty = ", ".join(name for name in _NAMES if name != "holds_key")
    literals = " || ',' || ".join(
        f"CASE typeof({name}) WHEN 'text' THEN 't' || hex({name}) ELSE quote({name}) END" for name in _NAMES
    )
    return f"CASE WHEN holds_key = 0 AND COALESCE({empty}) IS NULL THEN NULL ELSE {literals} END"


def is_packed(row: tuple[Any, ...]) -> bool:
    """Whether a row that ends with that expression has anything packed."""
    return row[_FIRST] is not None


def is_empty(row: tuple[Any, ...]) -> bool:
    """Whether a row with all of the columns has nothing of them."""
    return row[_FIRST : _LAST + 1] == (None, *NOTHING)


def unpacked(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row with the columns in the place of what is packed."""
    if row[_FIRST] is None:
        return row + NOTHING
    return (*row[:_FIRST], *map(_value, row[_FIRST].split(",")))


def _value(literal: str) -> Any:
    if literal == "NULL":
        return None
    if literal.startswith("t"):
        data = bytes.fromhex(literal[1:])
        try:
            return data.decode()
        except UnicodeDecodeError:
            return Undecodable(data.decode(errors="backslashreplace"))
    if literal.startswith("X"):
        return bytes.fromhex(literal[2:-1])
    try:
        return int(literal)
    except ValueError:
        return float(literal)
