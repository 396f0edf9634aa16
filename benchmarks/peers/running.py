"""One run of one peer."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.core.meters import PostgreSQLMeter
from benchmarks.core.output import Row, percentile
from benchmarks.core.processes import cpu_of, peak_memory
from benchmarks.peers.installing import SCRIPTS, Installed
from benchmarks.peers.redis import Redis
from benchmarks.peers.registry import Watch

WAIT_SECONDS = 300
PAUSE = 0.005


class PeerFailed(RuntimeError):
    """What a peer said when it failed."""


class Run:
    """A peer, on a database that is its own.

    :param url: the database; for celery, that of a site.
    :param redis: where celery's jobs are.
    """

    def __init__(self, installed: Installed, url: str, redis: Redis | None, folder: Path) -> None:
        self.installed = installed
        self.peer = installed.peer
        self.log = folder / "worker.log"
        self.redis = redis
        self.url = url
        self.environment = {
            **os.environ,
            "DATABASE_URL": url,
            "REDIS_URL": redis.url if redis else "",
            "PEER": self.peer.name,
            "PEER_VERSION": installed.version,
            "PYTHONPATH": f"{SCRIPTS}{os.pathsep}{SCRIPTS.parents[2]}"
            if not self.peer.requirements
            else str(SCRIPTS),
            "DJANGO_SETTINGS_MODULE": "django_site",
        }

    def call(self, *arguments: Any) -> Any:
        """One of the commands of the peer's script; what it prints."""
        done = subprocess.run(
            [*self.installed.command, *map(str, arguments)],
            env=self.environment,
            cwd=self.log.parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_SECONDS,
        )
        if done.returncode:
            raise PeerFailed(f"{arguments[0]}: {done.stderr.strip()[-1500:]}")
        lines = done.stdout.strip().splitlines()
        return json.loads(lines[-1]) if lines and arguments[0] != "setup" else None

    def measure(self, jobs: int, singles: int, tells: int) -> Row:
        """Enqueue, drain, and enqueue for an idle worker."""
        self.call("setup")
        one = self.call("one", singles)
        many = self.call("many", jobs)
        meter = PostgreSQLMeter(self.url)
        meter.run("SET enable_seqscan = on")  # whose indexes these are, who knows
        meter.settle()
        before = meter.counters()
        with self.worker() as worker:
            pending: Any = (
                Table(meter, self.peer.watch) if self.peer.watch else List(self.redis, singles + jobs)
            )
            row = self.drain(worker, pending, meter, jobs + singles)
            after = meter.counters()
            meter.settle()
            waits = self.call("latency", tells, 0.05) if tells else []
        meter.close()
        if self.peer.watch and after.statements is not None and before.statements is not None:
            row["statements"] = (after.statements - before.statements) / (jobs + singles)
        if waits:
            row |= {"p50_ms": percentile(waits, 0.5), "p99_ms": percentile(waits, 0.99)}
        return {
            "peer": self.peer.name,
            "version": self.installed.version,
            "jobs": jobs + singles,
            **row,
            "many_per_second": jobs / many,
            "one_per_second": singles / one,
            "how": self.peer.how,
        }

    def drain(self, worker: subprocess.Popen[bytes], pending: Any, meter: PostgreSQLMeter, jobs: int) -> Row:
        """From the first job done to the last: what it takes to start is not counted, of nobody."""
        server = self.redis.pid if self.redis and not self.peer.watch else meter.server
        self.wait(worker, pending.has_begun)
        began, client = time.monotonic(), cpu_of(worker.pid, descendants=True)
        served = cpu_of(server, descendants=True) if server else None
        done = pending.left()
        if not done:
            raise PeerFailed(f"its {jobs:,} jobs were done before they could be timed; use a larger --scale")
        self.wait(worker, pending.has_ended)
        seconds = time.monotonic() - began
        row: Row = {
            "jobs_per_second": done / seconds,
            "client_us": 1e6 * (cpu_of(worker.pid, descendants=True) - client) / done,
            "memory_mb": peak_memory(worker.pid),
        }
        if served is not None and server:
            row["server_us"] = 1e6 * (cpu_of(server, descendants=True) - served) / done
        return row

    def wait(self, worker: subprocess.Popen[bytes], condition: Any) -> None:
        """Wait until it is so."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            if worker.poll() is not None or time.monotonic() > deadline:
                raise PeerFailed(f"the worker ended or hung:\n{self.log.read_text()[-1500:]}")
            time.sleep(PAUSE)

    @contextlib.contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        """The worker, as long as it is needed."""
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [*self.installed.command, "worker"],
                env=self.environment,
                cwd=self.log.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Table:
    """The jobs of a peer in a table; looked at by the key of the first and of the last, which costs next to nothing."""

    def __init__(self, meter: PostgreSQLMeter, watch: Watch) -> None:
        self.meter, self.watch = meter, watch
        ids = f"SELECT /* benchmarks */ id FROM {watch.table} WHERE {watch.live} ORDER BY {watch.order} {{}} LIMIT 1"
        [(self.first,)] = meter.run(ids.format(""))
        [(self.last,)] = meter.run(ids.format("DESC"))

    def is_live(self, id_: Any) -> bool:
        """Whether that job is still to be done."""
        sql = f"SELECT /* benchmarks */ 1 FROM {self.watch.table} WHERE id = %s AND {self.watch.live}"
        return bool(self.meter.run(sql, id_))

    def has_begun(self) -> bool:
        """Whether the first job is done."""
        return not self.is_live(self.first)

    def left(self) -> int:
        """How many jobs are to be done."""
        rows = self.meter.run(
            f"SELECT /* benchmarks */ count(*) FROM {self.watch.table} WHERE {self.watch.live}"
        )
        return int(rows[0][0])

    def has_ended(self) -> bool:
        """Whether all jobs are done."""
        return not self.is_live(self.last) and not self.left()


class List:
    """The jobs of celery in Redis."""

    def __init__(self, redis: Redis | None, jobs: int) -> None:
        assert redis is not None
        self.redis, self.jobs = redis, jobs

    def left(self) -> int:
        """How many jobs are to be done."""
        with contextlib.suppress(socket.timeout):
            return int(self.redis.ask("LLEN", "celery")) + int(self.redis.ask("HLEN", "unacked"))
        return self.jobs

    def has_begun(self) -> bool:
        """Whether a job is done."""
        return self.left() < self.jobs

    def has_ended(self) -> bool:
        """Whether all are."""
        return not self.left()
