"""The statements, read from ``sql/<vendor>/<name>.sql``.

In the files a parameter is ``:name``, and ``{job columns}`` (or ``{job columns of t}``) stands for all columns of
a job in the order of :data:`~django_jobs.store.rows.JOB_COLUMNS`, ``{claimed columns}`` for those of them that a claim
does not know before. ``{include name}`` stands for what several statements
have in common, in ``sql/<vendor>/parts/<name>.sql``; ``{include ending}`` for the part that the caller chooses.
Comments are for the reader and are not sent.
"""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import NamedTuple

from django_jobs.store.packing import packed
from django_jobs.store.rows import (
    ATTEMPTED_AT,
    CANCEL_REQUESTED_AT,
    JOB_COLUMNS,
    QUEUE_NAME,
    SCHEDULE_COLUMNS,
    WORKER_COLUMNS,
)

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")
_COLUMNS = re.compile(r"\{(job|claimed|worker|schedule|finish|looked) columns(?: of (\w+))?\}")
_INCLUDE = re.compile(r"\{include (\w+)\}")
_TIME = re.compile(r"_(at|after|until|tick)$")
# What ends a statement when the caller chooses nothing; of the searches what they found.
_ENDINGS = {"complete": "claims_apart"}
# What a search looks at: no JSON but the tags, since rows may be looked at by the thousand.
_LOOKED = (
    "id",
    "name",
    "queue_name",
    "state",
    "error_class",
    "worker_id",
    "created_at",
    "finalized_at",
    "priority",
    "unique_key",
    "tags",
)


def _as_it_is(prefix: str, column: str) -> str:
    """A column as SQLite holds it. What Django's connection makes of a time fails, and the statement with it, on a row
    where somebody's SQL has written none; it does that to columns alone, and the sign makes an expression of one."""
    return f"+{prefix}{column} AS {column}" if _TIME.search(column) else prefix + column


class Statement(NamedTuple):
    """One statement, in the two ways of writing parameters that the drivers know."""

    name: str
    pyformat: str  # %(name)s: psycopg, and Django's cursors
    named: str  # :name: sqlite3


@functools.cache
def statement(
    vendor: str, name: str, whole_rows: bool = True, returning: bool = True, ending: str = ""
) -> Statement:
    """The statement called ``name`` for that database.

    For those that can do with less: without ``whole_rows``, ``{finish columns}`` are id and state alone, and of
    ``{claimed columns}`` those that few jobs have come packed (SQLite; :mod:`~django_jobs.store.packing`); without
    ``returning`` only the number of rows is told. Of a search ``ending`` is what it tells: ``found``, or ``searched``
    for a search in arguments; of the completions of SQLite how the claims are given.
    """
    folder = resources.files("django_jobs") / "sql" / vendor
    text = (folder / f"{name}.sql").read_text("utf-8")

    def part(match: re.Match[str]) -> str:
        file = (ending or _ENDINGS.get(name, "found")) if match[1] == "ending" else match[1]
        return (folder / "parts" / f"{file}.sql").read_text("utf-8")

    while _INCLUDE.search(text):
        text = _INCLUDE.sub(part, text)
    text = re.sub(r"--[^\n]*", "", text)
    columns = {
        "job": JOB_COLUMNS,
        # PostgreSQL's clock says when it was.
        "claimed": JOB_COLUMNS[
            : QUEUE_NAME if vendor == "postgresql" else ATTEMPTED_AT if whole_rows else CANCEL_REQUESTED_AT
        ],
        "worker": WORKER_COLUMNS,
        "schedule": SCHEDULE_COLUMNS,
        "finish": JOB_COLUMNS if whole_rows else ("id", "state"),
        "looked": _LOOKED,
    }

    def expand(match: re.Match[str]) -> str:
        prefix = f"{match[2]}." if match[2] else ""
        if (
            vendor == "sqlite" and match[1] != "looked"
        ):  # of those the order is by an index, and none is returned
            found = ", ".join(_as_it_is(prefix, column) for column in columns[match[1]])
            return found if match[1] != "claimed" or whole_rows else f"{found}, {packed()}"
        return ", ".join(prefix + column for column in columns[match[1]])

    if not returning:
        text = text[: text.rindex("RETURNING")]
    text = re.sub(r"\s+", " ", _COLUMNS.sub(expand, text)).strip().rstrip(";")
    return Statement(name, _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")), text)
