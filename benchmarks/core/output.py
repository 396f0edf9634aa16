"""What a benchmark prints: one table, or JSON with the machine, the versions and the date."""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib.metadata
import os
import platform
import sqlite3
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]


class Column(NamedTuple):
    """A column of the table: the key in a row, the heading, and how a number is written."""

    key: str
    heading: str
    form: str = ",.0f"


def table(columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> str:
    """A table in Markdown, aligned; columns in which no row has anything are left out."""
    rows = list(rows)
    shown = [column for column in columns if any(row.get(column.key) is not None for row in rows)]
    lines = [[column.heading for column in shown]]
    lines += [[_cell(row.get(column.key), column.form) for column in shown] for row in rows]
    widths = [max(len(line[number]) for line in lines) for number in range(len(shown))]
    texts = [any(isinstance(row.get(column.key), str) for row in rows) for column in shown]
    drawn = [_line(line, widths, texts) for line in lines]
    rule = "|" + "|".join(
        "-" * (width + 1) + ("-" if text else ":") for width, text in zip(widths, texts, strict=True)
    )
    return "\n".join([drawn[0], f"{rule}|", *drawn[1:]])


def _cell(value: Any, form: str) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else format(float(value), form)


def _line(cells: Sequence[str], widths: Sequence[int], texts: Sequence[bool]) -> str:
    placed = [
        cell.ljust(width) if text else cell.rjust(width)
        for cell, width, text in zip(cells, widths, texts, strict=True)
    ]
    return f"| {' | '.join(placed)} |"


def median(values: Iterable[float | None]) -> float | None:
    """The median of those that there are."""
    there = [value for value in values if value is not None]
    return statistics.median(there) if there else None


def medians(rows: Sequence[Mapping[str, Any]]) -> Row:
    """One row of the medians of many; what is no number is taken from the first."""
    return {
        key: value if value is None or isinstance(value, str | bool) else median(row[key] for row in rows)
        for key, value in rows[0].items()
    }


def percentile(values: Sequence[float], part: float) -> float:
    """The value that ``part`` (0 to 1) of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-part * len(ordered) // 1) - 1))]


def conditions() -> dict[str, Any]:
    """The date, the machine and the versions."""
    return {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": {
            "cpu": _cpu_name(),
            "cores": os.cpu_count(),
            "memory_gb": _memory(),
            # Not what a host calls its own build of the kernel: that says which machine it was, and nothing about it.
            "system": f"{platform.system()} {platform.release().partition('-')[0]}",
            "load": round(os.getloadavg()[0], 2),
        },
        "versions": {
            "commit": _commit(),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            **{
                name: version
                for name in ("django", "psycopg", "psycopg-binary")
                if (version := _version(name))
            },
        },
    }


def describe(conditions: Mapping[str, Any]) -> str:
    """The conditions in one line."""
    machine, versions = conditions["machine"], conditions["versions"]
    parts = [f"{name} {version}" for name, version in versions.items()]
    return (
        f"{conditions['date']}; {machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"{machine['system']}, load {machine['load']} before; {', '.join(parts)}"
    )


def _version(distribution: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(distribution)
    return None


def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    with contextlib.suppress(ValueError, OSError):
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    return None


def _commit() -> str:
    result = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return result.stdout.strip() or "?"
