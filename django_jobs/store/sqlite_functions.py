"""The functions of ours that statements on SQLite call."""

from __future__ import annotations

import sqlite3
from typing import Any

from django_jobs.serialization import decode, encode


def add_functions(connection: sqlite3.Connection) -> None:
    """Give a connection the functions of ours that statements call. Again and again does no harm."""
    connection.create_function("django_jobs_merge", 3, _merged, deterministic=True)


def _merged(metadata: str | bytes | None, patch: str, most: int) -> str | bytes | None:
    """A JSON object with each key of ``patch`` in the place of its own; as it was, if that is over ``most`` bytes.

    What is no object counts as an empty one. It raises nothing: SQLite tells an error in here as one that is worth
    trying again.
    """
    before = _object(metadata)
    try:
        changes = decode(patch)
        kept = {key: value for key, value in before.items() if key not in changes}
        merged = encode({**kept, **changes})
    except (ValueError, TypeError):
        return encode(before)
    return merged if len(merged.encode()) <= most else metadata


def _object(text: Any) -> dict[str, Any]:
    try:
        value = decode(text) if isinstance(text, str) else {}
    except ValueError:
        value = {}
    return value if isinstance(value, dict) else {}


def holds(metadata: Any, patch: str) -> bool:
    """Whether a patch was merged into what is there now: whether it has each key of it with just that value."""
    values = _object(metadata)
    return all(key in values and encode(values[key]) == encode(value) for key, value in decode(patch).items())
