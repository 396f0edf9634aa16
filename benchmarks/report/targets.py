"""The figures to reach, and whether they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Row = dict[str, Any]
Results = Mapping[str, Mapping[str, Any]]

# So many times as fast as each.
FACTORS = {
    "graphile-worker": 2,
    "pgqueuer": 4,
    "oban": 12,
    "celery, Redis": 60,
    "procrastinate": 90,
    "django-tasks-db": 150,
}
# Of the time with the least history, with the most.
FLAT = 1.5
PAGE = 150  # milliseconds
FLAT_COLUMNS = {
    "claim_ms": "claim",
    "finish_ms": "finish",
    "admin_ms": "the admin's list",
    "failed_ms": "the admin's list of failed jobs",
}


def targets(results: Results) -> list[Row]:
    """A row for each target of which there are results."""
    return [
        *of_drain(results),
        *of_peers(results),
        *of_enqueue(results),
        *of_latency(results),
        *of_scale(results),
        *of_pages(results),
    ]


def rows_of(results: Results, name: str, **wanted: Any) -> Sequence[Row]:
    """The rows of a result that have these values."""
    rows = results.get(name, {}).get("rows", [])
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def least(target: str, wanted: float, reached: float | None, shown: Callable[[float], str]) -> Iterator[Row]:
    """A figure that is to be at least so much."""
    if reached is not None:
        yield _row(target, f"at least {shown(wanted)}", shown(reached), reached >= wanted)


def most(target: str, wanted: float, reached: float | None, shown: Callable[[float], str]) -> Iterator[Row]:
    """A figure that is to be at most so much."""
    if reached is not None:
        yield _row(target, f"at most {shown(wanted)}", shown(reached), reached <= wanted)


def _row(target: str, wanted: str, reached: str, is_reached: bool) -> Row:
    return {
        "target": target,
        "wanted": wanted,
        "reached": reached,
        "verdict": "reached" if is_reached else "NOT REACHED",
    }


def percent(value: float) -> str:
    """0.6 as 60 %."""
    return f"{100 * value:.3g} %"


def of_drain(results: Results) -> Iterator[Row]:
    """The ratio to the limit, and what a job costs."""
    for vendor, wanted, label in (("postgresql", 0.6, "PostgreSQL"), ("sqlite", 0.4, "SQLite")):
        for row in rows_of(results, "drain", database=vendor):
            yield from least(f"drain, of the limit, {label}", wanted, row["ratio"], percent)
            # SQLite works in the client, and has no server beside it.
            if row.get("server_us") is not None or vendor == "sqlite":
                cpu = row["client_us"] + (row.get("server_us") or 0.0)
                yield from most(
                    f"CPU per job, client and server, {label}", 40, cpu, lambda us: f"{us:.1f} µs"
                )
            yield from most(
                f"statements per job, {label}", 0.005, row.get("statements"), lambda number: f"{number:.4f}"
            )
            yield from most(
                f"connection resets in a run, {label}", 0, row.get("resets"), lambda n: f"{n:.0f}"
            )
            yield from most(
                f"jobs read again in a run, {label}", 0, row.get("job_reads"), lambda n: f"{n:.0f}"
            )


def of_peers(results: Results) -> Iterator[Row]:
    """So many times as fast."""
    for name, wanted in FACTORS.items():
        for row in rows_of(results, "peers", peer=name):
            yield from least(
                f"drain, beside {name}", wanted, row.get("factor"), lambda factor: f"{factor:.3g} times"
            )


def of_enqueue(results: Results) -> Iterator[Row]:
    """Beside bare inserts."""
    for row in rows_of(results, "enqueue"):
        where = f"{row['way']}, {'PostgreSQL' if row['database'] == 'postgresql' else 'SQLite'}"
        if row["bare"] == "INSERT":
            yield from most(
                f"{where}: of the time of an INSERT", 1.3, 1 / row["ratio"], lambda n: f"{n:.2f} times"
            )
        elif row["bare"] in ("unnest, ids back", "executemany by thousands"):
            bare = row["bare"].partition(",")[0]
            yield from least(f"{where}: of the rate of {bare}", 0.4, row["ratio"], percent)


def of_latency(results: Results) -> Iterator[Row]:
    """From commit to start, and idle."""

    def milliseconds(value: float) -> str:
        return f"{value:.1f} ms"

    for row in rows_of(results, "latency", database="postgresql", worker="other process"):
        yield from most("commit to start, p50, PostgreSQL", 1.5, row["p50_ms"], milliseconds)
        yield from most("commit to start, p99, PostgreSQL", 5, row["p99_ms"], milliseconds)
    for row in rows_of(results, "latency", database="sqlite", worker="other process"):
        yield from most("commit to start across processes, p99, SQLite", 20, row["p99_ms"], milliseconds)
    for row in rows_of(results, "latency", worker="other process"):
        yield from most(f"an idle worker, of a core, {row['database']}", 0.005, row["idle_cpu"], percent)


def of_scale(results: Results) -> Iterator[Row]:
    """Flat, however long the history."""
    for vendor in ("sqlite", "postgresql"):
        rows = sorted(rows_of(results, "scale", database=vendor), key=lambda row: row["rows"])
        if len(rows) < 2:
            continue
        fewest, longest = rows[0], rows[-1]
        for column, label in FLAT_COLUMNS.items():
            yield from most(
                f"{label}, {longest['rows']:,} rows of history to {fewest['rows']:,}, {vendor}",
                FLAT,
                longest[column] / fewest[column],
                lambda factor: f"{factor:.2f} times",
            )


def of_pages(results: Results) -> Iterator[Row]:
    """The slowest page of all."""
    for vendor in ("sqlite", "postgresql"):
        rows = rows_of(results, "pages", database=vendor)
        if rows:
            slowest = max(rows, key=lambda row: row["slowest_ms"])
            yield from most(
                f"the slowest page, {vendor} ({slowest['kind']}: {slowest['slowest']})",
                PAGE,
                slowest["slowest_ms"],
                lambda ms: f"{ms:.0f} ms",
            )
