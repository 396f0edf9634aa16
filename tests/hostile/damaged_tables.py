"""What somebody's SQL can have written into the tables beside the jobs: every kind of column, in every table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection, models

from django_jobs.fields import ExactJSONField
from tests.hostile.damage import DEEP, HUGE, LONG, NO_JSON, quoted, written

_LATEST = "9223372036854775807"
_TEXTS = ["", " ", "\x1b[31m", "a\nb", "<script>alert(1)</script>", "\u202e", "%s{0}"]
_JSON = [
    "null", "5", '"x"', "[]", "{}", "[null]", '[{"a":1}]', '{"a":"<script>"}', r'["\u0000"]', r'{"\ud800":"\ud800"}',
    DEEP, LONG, f"[{HUGE}]", "[1e999]",
]  # fmt: skip

#: What is written into a column of each kind, as SQL: on both databases, on PostgreSQL, on SQLite.
_KINDS: dict[type[models.Field[Any, Any]], tuple[list[str], list[str], list[str]]] = {
    models.DateTimeField: (
        ["'0001-01-01'", "'9999-12-31 23:59:59'"],
        ["'infinity'", "'-infinity'", "'20000-01-01'", "'0044-03-15 BC'", "'294000-01-01'"],
        ["'soon'", "''", "'2031-13-01 00:00:00'", "'2031-02-30 00:00:00.5'", "5", "-1.5", "x'ff'", "'2031-01-01'",
         "'0001-01-01 00:00:00+14:00'", "'9999-12-31 23:59:59-14:00'", "CAST(x'ff' AS TEXT)", "'20000-01-01 00:00:00'",
         "'0000-00-00 00:00:00'", "'2031-01-01T00:00:00Z'", "CAST(x'3230333100' AS TEXT)"],
    ),
    ExactJSONField: (
        [quoted(text) for text in _JSON],
        [],
        [*map(quoted, NO_JSON), "5", "1.5", "x'ff'", "CAST(x'5b22ff225d' AS TEXT)", "9e999"],
    ),
    models.CharField: (
        [quoted(text[:9]) for text in _TEXTS], [], ["5", "x'ff'", "CAST(x'61ff' AS TEXT)", "CAST(x'6100' AS TEXT)"],
    ),
    models.BooleanField: (["true", "false"], [], ["5", "'x'", "x'00'"]),
    models.IntegerField: (
        ["2147483647", "-1", "-2147483648", "0"], [_LATEST], [_LATEST, "'x'", "1.5", "9e999", "x'00'"],
    ),
    models.FloatField: (
        ["0", "-1", "1e308", "-1e308"], ["'NaN'", "'Infinity'", "'-Infinity'"], ["'x'", "9e999", "-9e999", "x'ff'"],
    ),
}  # fmt: skip
_KINDS[models.TextField] = _KINDS[models.CharField]


def damages(model: type[models.Model]) -> dict[str, list[str]]:
    """What is written into each column but the id, as SQL."""
    found = {}
    for field in model._meta.concrete_fields:
        kind = next((kind for kind in _KINDS if isinstance(field, kind)), None)
        if kind is None or field.name == "id":
            continue
        both, postgresql, sqlite = _KINDS[kind]
        found[field.column] = [*both, *(sqlite if connection.vendor == "sqlite" else postgresql)]
        if field.null:
            found[field.column].append("NULL")
    return found


def most(model: type[models.Model]) -> int:
    """How many rows it takes for all of that to be written."""
    return 2 * max(map(len, damages(model).values()))


def damage(model: type[models.Model], keys: Iterable[Any], shift: int = 0) -> None:
    """Damage the rows with these keys, each in half of its columns: all that is written anywhere is in one of them."""
    columns = damages(model)
    refused = tried = 0
    for number, key in enumerate(keys):
        for place, (column, values) in enumerate(columns.items()):
            if (number + place + shift) % 2 == 0:
                tried += 1
                refused += not written(
                    model._meta.db_table, column, values[number // 2 % len(values)], f"id = {key}"
                )
    assert refused < tried / 4, "the tables refuse what they did not refuse before"
