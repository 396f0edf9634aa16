"""Filling the job table with what has been: by the database itself, a million rows in seconds."""

from __future__ import annotations

from typing import Any

from benchmarks.core.meters import Meter, PostgreSQLMeter

_SERIES = {
    "postgresql": "generate_series(1, {count}) AS series (n)",
    "sqlite": "(WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < {count}) "
    "SELECT n FROM series) AS series",
}
# A moment so many seconds ago, spread over a week.
_AGO = {
    "postgresql": "now() - make_interval(secs => (n * 7919) % 604800)",
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f000', 'now', '-' || ((n * 7919) % 604800) || ' seconds')",
}


def fill(meter: Meter, count: int, state: str = "completed", **columns: Any) -> None:
    """Insert ``count`` jobs in a state, as if they had come there within the last week.

    :param columns: SQL of columns that are to be otherwise.
    """
    vendor = "postgresql" if isinstance(meter, PostgreSQLMeter) else "sqlite"
    ago = _AGO[vendor]
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
            f"SELECT {', '.join(values.values())} FROM {_SERIES[vendor].format(count=count)}"
        )
