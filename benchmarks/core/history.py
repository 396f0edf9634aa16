"""Filling the job table with what has been: by the database itself, a million rows in seconds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from benchmarks.core.meters import Meter, PostgreSQLMeter


class Dialect(ABC):
    """What the databases write in different ways, in statements that make rows of numbers ``n``."""

    @abstractmethod
    def series(self, count: int, first: int = 1) -> str:
        """A table of the numbers from ``first`` on, as its column ``n``: of 64 bits, so that they can be multiplied."""

    @abstractmethod
    def moment(self, seconds: str) -> str:
        """A moment so many seconds from now."""

    @abstractmethod
    def json(self, text: str) -> str:
        """A text, for a column of JSON."""

    def pick(self, place: str, texts: Sequence[str]) -> str:
        """One of some texts, by a number that may exceed theirs."""
        cases = " ".join(f"WHEN {number} THEN '{text}'" for number, text in enumerate(texts))
        return f"CASE ({place}) % {len(texts)} {cases} END"


class _PostgreSQL(Dialect):
    def series(self, count: int, first: int = 1) -> str:
        return f"generate_series({first}::bigint, {first + count - 1}::bigint) AS series (n)"

    def moment(self, seconds: str) -> str:
        return f"now() + make_interval(secs => {seconds})"

    def json(self, text: str) -> str:
        return f"CAST({text} AS json)"


class _SQLite(Dialect):
    def series(self, count: int, first: int = 1) -> str:
        return (
            f"(WITH RECURSIVE series (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM series "
            f"WHERE n < {first + count - 1}) SELECT n FROM series) AS series"
        )

    def moment(self, seconds: str) -> str:
        return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', ({seconds}) || ' seconds')"

    def json(self, text: str) -> str:
        return text


def dialect_of(meter: Meter) -> Dialect:
    """That of the database which a meter watches."""
    return _PostgreSQL() if isinstance(meter, PostgreSQLMeter) else _SQLite()


def fill(meter: Meter, count: int, state: str = "completed", **columns: Any) -> None:
    """Insert ``count`` jobs in a state, as if they had come there within the last week.

    :param columns: SQL of columns that are to be otherwise.
    """
    dialect = dialect_of(meter)
    ago = dialect.moment("-(n * 7919 % 604800)")
    finished = state in ("completed", "failed", "cancelled")
    begun = finished or state == "running"
    values = {
        "name": "'benchmarks.jobs.noop'",
        "queue_name": "'history'",
        "args": "'[1]'",
        "kwargs": "'{}'",
        "priority": "0",
        "state": f"'{state}'",
        "attempt": "1" if begun else "0",
        "max_attempts": "5",
        "claims": "1" if begun else "0",
        "run_after": ago,
        "created_at": ago,
        "attempted_at": ago if begun else "NULL",
        "finalized_at": ago if finished else "NULL",
        "worker_id": "1" if begun else "NULL",
        "holds_key": "false",
        **{name: str(value) for name, value in columns.items()},
    }
    if count:
        meter.run(
            f"INSERT INTO django_jobs_job ({', '.join(values)}) "
            f"SELECT {', '.join(values.values())} FROM {dialect.series(count)}"
        )
