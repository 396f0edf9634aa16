"""The limit: a bare table, claimed and finished in batches, with nothing run in between and no promise kept.

    python -m benchmarks.core.limits URL JOBS BATCH

prints one JSON line. A process of its own, with the driver and nothing else in it.
"""

from __future__ import annotations

import json
import queue
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any, LiteralString

# Jobs inserted by one statement, before the clock starts.
INSERTED_AT_ONCE = 1000

SCHEMA: LiteralString = "benchmarks_limit"
POSTGRESQL_CREATE: LiteralString = f"""
    CREATE TABLE {SCHEMA}.job (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL,
        queue text NOT NULL DEFAULT 'default',
        args jsonb NOT NULL,
        priority smallint NOT NULL DEFAULT 0,
        state text NOT NULL DEFAULT 'available',
        attempt smallint NOT NULL DEFAULT 0,
        max_attempts smallint NOT NULL DEFAULT 5,
        run_after timestamptz NOT NULL DEFAULT now(),
        created_at timestamptz NOT NULL DEFAULT now(),
        attempted_at timestamptz,
        finalized_at timestamptz,
        worker bigint
    );
    CREATE INDEX ON {SCHEMA}.job (queue, priority DESC, run_after, id) WHERE state = 'available';
"""
POSTGRESQL_INSERT: LiteralString = f"""
    INSERT INTO {SCHEMA}.job (name, args)
    SELECT 'app.jobs.noop', args FROM unnest(%s::jsonb[]) AS args
    RETURNING id
"""
POSTGRESQL_CLAIM: LiteralString = f"""
    UPDATE {SCHEMA}.job
    SET state = 'running', attempt = attempt + 1, attempted_at = now(), worker = 1
    WHERE id = ANY (ARRAY (
        SELECT id FROM {SCHEMA}.job
        WHERE state = 'available' AND queue = 'default' AND run_after <= now()
        ORDER BY priority DESC, run_after, id
        LIMIT %s
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, name, args, attempt
"""
POSTGRESQL_FINISH: LiteralString = f"""
    UPDATE {SCHEMA}.job
    SET state = 'completed', finalized_at = now()
    WHERE id = ANY (%s::bigint[]) AND (state || '') = 'running'
"""

SQLITE_CREATE = """
    CREATE TABLE job (
        id integer PRIMARY KEY AUTOINCREMENT,
        name text NOT NULL DEFAULT 'app.jobs.noop',
        queue text NOT NULL DEFAULT 'default',
        args text NOT NULL,
        priority integer NOT NULL DEFAULT 0,
        state text NOT NULL DEFAULT 'available',
        attempt integer NOT NULL DEFAULT 0,
        max_attempts integer NOT NULL DEFAULT 5,
        run_after text NOT NULL DEFAULT '2026-01-01 00:00:00',
        created_at text NOT NULL DEFAULT '2026-01-01 00:00:00',
        attempted_at text,
        finalized_at text,
        worker integer
    );
    CREATE INDEX job_claim ON job (queue, priority DESC, run_after, id) WHERE state = 'available';
"""
SQLITE_NOW = "2026-06-01 00:00:00.000000"
SQLITE_CLAIM = """
    UPDATE job
    SET state = 'running', attempt = attempt + 1, attempted_at = ?1, worker = 1
    WHERE id IN (
        SELECT id FROM job
        WHERE state = 'available' AND queue = 'default' AND run_after <= ?1
        ORDER BY priority DESC, run_after, id
        LIMIT ?2
    )
    RETURNING id, name, args, attempt
"""
SQLITE_FINISH = """
    UPDATE job
    SET state = 'completed', finalized_at = ?1
    WHERE id IN (SELECT value FROM json_each(?2)) AND state = 'running'
"""


def limit(url: str, jobs: int, batch: int) -> dict[str, Any]:
    """Measure the limit of a database, in a process of its own.

    :returns: ``insert_per_second``, ``jobs_per_second``, ``client_us`` (microseconds of client CPU per job).
    """
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.core.limits", url, str(jobs), str(batch)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    measured: dict[str, Any] = json.loads(result.stdout)
    return measured


def on_postgresql(url: str, jobs: int, batch: int) -> dict[str, Any]:
    """Claim on one connection and finish on another, at the same time."""
    setup = connect(url)
    setup.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    setup.execute(f"CREATE SCHEMA {SCHEMA}")
    setup.execute(POSTGRESQL_CREATE)
    encoded = [f'{{"n": {n}}}' for n in range(jobs)]
    began = time.monotonic()
    for first in range(0, jobs, INSERTED_AT_ONCE):
        setup.execute(POSTGRESQL_INSERT, (encoded[first : first + INSERTED_AT_ONCE],)).fetchall()
    inserted = time.monotonic() - began
    setup.execute(f"VACUUM ANALYZE {SCHEMA}.job")
    setup.execute("CHECKPOINT")

    claimed: queue.Queue[list[tuple[Any, ...]]] = queue.Queue(2)
    to_finish: queue.Queue[list[int]] = queue.Queue(4)

    def claim() -> None:
        with connect(url) as connection:
            rows: list[tuple[Any, ...]] | None = None
            while rows is None or rows:
                rows = connection.execute(POSTGRESQL_CLAIM, (batch,)).fetchall()
                claimed.put(rows)

    def finish() -> None:
        with connect(url) as connection:
            while ids := to_finish.get():
                connection.execute(POSTGRESQL_FINISH, (ids,))

    began, cpu = time.monotonic(), time.process_time()
    threads = [threading.Thread(target=claim), threading.Thread(target=finish)]
    for thread in threads:
        thread.start()
    done = 0
    while rows := claimed.get():
        to_finish.put([row[0] for row in rows])
        done += len(rows)
    to_finish.put([])
    for thread in threads:
        thread.join()
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu

    left = setup.execute(f"SELECT count(*) FROM {SCHEMA}.job WHERE state <> 'completed'").fetchone()
    setup.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
    setup.close()
    assert (done, left) == (jobs, (0,)), (done, left)
    return _measured(jobs, inserted, seconds, cpu)


def connect(url: str) -> Any:
    import psycopg

    connection = psycopg.connect(url, autocommit=True)
    connection.prepare_threshold = 1
    return connection


def on_sqlite(url: str, jobs: int, batch: int) -> dict[str, Any]:
    """Claim and finish on one connection: SQLite has one writer at a time."""
    file = Path(url.removeprefix("sqlite:///")).with_name("limit.sqlite3")
    with closing(sqlite3.connect(file, isolation_level=None, timeout=5)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(SQLITE_CREATE)
        encoded = [(f'{{"n": {n}}}',) for n in range(jobs)]
        began = time.monotonic()
        for first in range(0, jobs, INSERTED_AT_ONCE):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT INTO job (args) VALUES (?)", encoded[first : first + INSERTED_AT_ONCE]
            )
            connection.execute("COMMIT")
        inserted = time.monotonic() - began

        done = 0
        began, cpu = time.monotonic(), time.process_time()
        while rows := connection.execute(SQLITE_CLAIM, (SQLITE_NOW, batch)).fetchall():
            for row in rows:
                json.loads(row[2])
            connection.execute(SQLITE_FINISH, (SQLITE_NOW, json.dumps([row[0] for row in rows])))
            done += len(rows)
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
        left = connection.execute("SELECT count(*) FROM job WHERE state <> 'completed'").fetchone()
    for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
        file.with_name(name).unlink(missing_ok=True)
    assert (done, left) == (jobs, (0,)), (done, left)
    return _measured(jobs, inserted, seconds, cpu)


def _measured(jobs: int, inserted: float, seconds: float, cpu: float) -> dict[str, Any]:
    return {
        "jobs": jobs,
        "insert_per_second": jobs / inserted,
        "jobs_per_second": jobs / seconds,
        "client_us": 1e6 * cpu / jobs,
    }


def main() -> None:
    url, jobs, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps((on_sqlite if url.startswith("sqlite:") else on_postgresql)(url, jobs, batch)))


if __name__ == "__main__":
    main()
