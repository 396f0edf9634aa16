"""PostgreSQL's plans of all statements, for the reference.

The documentation is built where no server is. So they are recorded in ``reference/postgresql_plans.txt``, which a test
compares with what the server says (``tests/docs/test_plans_postgresql.py``, which can write it anew).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent / "reference" / "postgresql_plans.txt"
SQL = Path(__file__).resolve().parent.parent / "django_jobs" / "sql" / "postgresql"
# Nodes, what belongs to which part, and what an index is asked for. Not what is computed from the rows.
_TOLD = re.compile(r"^\s*(->|CTE |InitPlan|SubPlan|Index Cond:)")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")


def plans(connection: Any) -> dict[str, list[str]]:
    """What ``EXPLAIN`` says of each statement in a session of a worker, on tables as the migrations make them.

    :param connection: Django's, to a PostgreSQL, in a transaction: its ``search_path`` is another one afterwards.
    """
    from generated import make_tables  # type: ignore[import-not-found]

    from django_jobs.store.postgresql_session import _SETTINGS

    with connection.cursor() as cursor:
        # Tables of which no statistics are known, whatever was done to the others.
        cursor.execute("CREATE SCHEMA only_for_plans")
        cursor.execute("SET LOCAL search_path = only_for_plans")
        make_tables(connection)
        for name, value in _SETTINGS.items():
            if name != "default_transaction_isolation":
                cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
        return {path.stem: _plan(cursor, path.stem) for path in sorted(SQL.glob("*.sql"))}


def _plan(cursor: Any, name: str) -> list[str]:
    from django_jobs.store.statements import statement

    numbers: dict[str, int] = {}
    text = _PARAMETER.sub(
        lambda match: f"${numbers.setdefault(match[1], len(numbers) + 1)}",
        statement("postgresql", name).named,
    )
    # The plan is a generic one: the values don't matter.
    values = f"({', '.join(['NULL'] * len(numbers))})" if numbers else ""
    cursor.execute(f"PREPARE only_for_its_plan AS {text}")
    try:
        cursor.execute(f"EXPLAIN (COSTS OFF) EXECUTE only_for_its_plan{values}")
        rows = cursor.fetchall()
    finally:
        cursor.execute("DEALLOCATE only_for_its_plan")
    names = {f"${number}": f":{name}" for name, number in numbers.items()}
    lines = [re.sub(r"\$\d+", lambda match: names.get(match[0], match[0]), line) for (line,) in rows]
    return [lines[0], *(line for line in lines[1:] if _TOLD.match(line))]


def indexes(lines: list[str]) -> set[str]:
    """The indexes by which a plan reads jobs: the same whatever a version of PostgreSQL calls and places its nodes."""
    return {match for line in lines for match in re.findall(r" using (\w+) on django_jobs_job\b", line)}


def write(version: str, found: Mapping[str, list[str]]) -> None:
    """Record them.

    :param version: PostgreSQL's, its first part.
    """
    parts = ["\n".join([f"[{name}]", *lines]) for name, lines in found.items()]
    FILE.write_text("\n\n".join([f"PostgreSQL {version}", *parts]) + "\n", "utf-8")


def read() -> tuple[str, dict[str, list[str]]]:
    """The version, and what was recorded."""
    head, *parts = FILE.read_text("utf-8").rstrip("\n").split("\n\n")
    sections = [part.split("\n") for part in parts]
    return head.removeprefix("PostgreSQL "), {lines[0].strip("[]"): lines[1:] for lines in sections}
