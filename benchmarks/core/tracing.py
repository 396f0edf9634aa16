"""Counting the statements of a process on SQLite, which has no statistics of its own.

The count slows the process, since SQLite hands over the text of each statement: it is made in a run of its own, in
which no time is taken.
"""

from __future__ import annotations

import atexit
import json
import os
import sqlite3
import sqlite3.dbapi2
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.core.statements import is_job_read, is_reset

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class Counts(Counter[str]):
    """``statements``, ``commits``, ``resets``, ``job_reads`` and ``connections`` so far, and statements by second."""

    def watch(self, connection: sqlite3.Connection) -> None:
        """Count what runs on a connection from now on."""
        self["connections"] += 1
        connection.set_trace_callback(self.tracer())

    def tracer(self) -> Callable[[str], None]:
        """What SQLite calls with the text of each statement of one connection."""
        in_transaction = False

        def trace(sql: str) -> None:
            nonlocal in_transaction
            word = sql.split(None, 1)[0].upper() if sql.strip() else ""
            self["statements"] += 1
            self[f"at {int(time.time())}"] += 1
            self["resets"] += is_reset(sql)
            if word == "BEGIN":
                in_transaction = True
            elif word in ("COMMIT", "ROLLBACK", "END"):
                in_transaction = False
                self["commits"] += word != "ROLLBACK"
            elif word in WRITES or word == "WITH":
                self["commits"] += not in_transaction
            elif is_job_read(sql):
                self["job_reads"] += 1

        return trace


def count_statements(folder: str) -> None:
    """Count the statements of all connections that this process opens; written to ``folder`` when it ends."""
    counts = Counts()
    process = os.getpid()

    connect = sqlite3.connect

    def connect_and_count(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        counts.watch(connection)
        return connection

    def write() -> None:
        if os.getpid() == process:
            (Path(folder) / f"{process}.json").write_text(json.dumps(counts))

    # Under both names: ours and Django's.
    sqlite3.connect = sqlite3.dbapi2.connect = connect_and_count  # type: ignore[assignment]
    atexit.register(write)


def counted_between(counts: Mapping[str, int], first: float, last: float) -> int:
    """The statements of the whole seconds from ``first`` to ``last``, times of this host."""
    return sum(counts.get(f"at {second}", 0) for second in range(int(first) + 1, int(last)))


def counted(folder: Path) -> Mapping[str, int]:
    """The sum of what all processes have written."""
    total: Counter[str] = Counter()
    for file in folder.glob("*.json"):
        total.update(json.loads(file.read_text()))
    return total
