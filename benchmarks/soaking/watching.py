"""What is looked at every few seconds: memory, CPU and open files of each process, and the sizes of the database."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.core.databases import Database
from benchmarks.core.meters import MARK, Meter, PostgreSQLMeter

MB = 2**20


class Use(NamedTuple):
    """What a process, or several, use now. ``memory`` in MB: what is theirs alone; ``cpu`` in seconds so far."""

    memory: float
    cpu: float
    files: int
    threads: int


def use_of(*processes: psutil.Process) -> Use:
    """Their sum. Raises psutil.NoSuchProcess when the only one has ended."""
    found = []
    for process in processes:
        try:
            with process.oneshot():
                times = process.cpu_times()
                found.append(
                    Use(
                        own_memory(process),
                        float(times.user + times.system),
                        process.num_fds(),
                        process.num_threads(),
                    )
                )
        except psutil.NoSuchProcess:
            if len(processes) == 1:
                raise
    return Use(
        sum(each.memory for each in found),
        sum(each.cpu for each in found),
        sum(each.files for each in found),
        sum(each.threads for each in found),
    )


def own_memory(process: psutil.Process) -> float:
    """Memory of a process that it shares with no other, in MB; where that is not told, all that it holds."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Private_Dirty:"):
                return int(line.split()[1]) / 1024
    return float(process.memory_info().rss) / MB


class Sizes(ABC):
    """Of the database's files, in MB."""

    #: Of the sizes, those that must be bounded.
    bounded: tuple[str, ...]

    @abstractmethod
    def now(self) -> dict[str, float]:
        """By name."""

    def processes(self) -> list[psutil.Process]:
        """The processes of the server, if it is on this host."""
        return []


class PostgreSQLSizes(Sizes):
    """By PostgreSQL's own functions and statistics."""

    bounded = ("table_mb", "indexes_mb", "others_mb")

    def __init__(self, meter: PostgreSQLMeter) -> None:
        self.meter = meter

    def now(self) -> dict[str, float]:
        row = self.meter.run(
            f"SELECT {MARK} pg_table_size('django_jobs_job'), pg_indexes_size('django_jobs_job'), "
            "(SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
            "WHERE relkind = 'r' AND relname LIKE 'django_jobs_%' AND relname <> 'django_jobs_job'), "
            "n_dead_tup, n_live_tup, autovacuum_count "
            "FROM pg_stat_user_tables WHERE relname = 'django_jobs_job'"
        )[0]
        table, indexes, others, dead, rows, vacuums = map(float, row)
        return {
            "table_mb": table / MB,
            "indexes_mb": indexes / MB,
            "others_mb": others / MB,
            "dead": dead,
            "rows": rows,
            "vacuums": vacuums,
        }

    def processes(self) -> list[psutil.Process]:
        if self.meter.server is None:
            return []
        server = psutil.Process(self.meter.server)
        return [server, *server.children(recursive=True)]


class SQLiteSizes(Sizes):
    """Of the file and of its write-ahead log."""

    bounded = ("file_mb", "wal_mb")

    def __init__(self, meter: Meter, database: Database) -> None:
        self.meter = meter
        self.file = database.file

    def now(self) -> dict[str, float]:
        log = self.file.with_name(f"{self.file.name}-wal")
        pages, free, size = (
            self.meter.run(f"PRAGMA {name}")[0][0] for name in ("page_count", "freelist_count", "page_size")
        )
        rows = self.meter.run(f"SELECT {MARK} count(*) FROM django_jobs_job")[0][0]
        return {
            "file_mb": pages * size / MB,
            "free_mb": free * size / MB,
            "wal_mb": log.stat().st_size / MB if log.exists() else 0.0,
            "rows": float(rows),
        }


def sizes_of(meter: Meter, database: Database) -> Sizes:
    """What tells the sizes of that database."""
    return PostgreSQLSizes(meter) if isinstance(meter, PostgreSQLMeter) else SQLiteSizes(meter, database)


class Sample(NamedTuple):
    """One look.

    :param minute: since the load began.
    :param waits: milliseconds from commit to start, of the probes that started since the last look; ``echoes``, of a
        process that only answers.
    """

    minute: float
    uses: Mapping[str, Use]
    sizes: Mapping[str, float]
    waits: list[float]
    echoes: list[float]
    enqueued: int
    ended: int
