"""The comparison."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from benchmarks.core.commands import Benchmark, say
from benchmarks.core.databases import Database, open_database, open_server
from benchmarks.core.output import Column, Row, medians
from benchmarks.peers.installing import Installed, NotInstalled, install
from benchmarks.peers.redis import Redis, run_redis
from benchmarks.peers.registry import PEERS, Peer
from benchmarks.peers.running import PeerFailed, Run


class Peers(Benchmark):
    """Other queues for PostgreSQL, and celery with Redis, beside django_jobs: on the same server in the same run, in
    turn, one worker each (how many processes that starts is up to it), jobs that do nothing, each used as its
    documentation advises for many small jobs.

    Each has an environment of its own below var/peers, made when it is first run; those for Python with the Python that
    runs this. What can't be installed is named, with the reason. A drain is timed from the first job that is done to
    the last. Latency is from the call that enqueues to the start of the job, with an idle worker. Shown are
    medians. None writes a line of log for each job.
    """

    name = "peers"
    databases: ClassVar = ("postgresql",)
    columns: ClassVar = (
        Column("peer", "queue"),
        Column("version", "version"),
        Column("jobs", "jobs"),
        Column("jobs_per_second", "drained/s"),
        Column("factor", "django_jobs is", ".1f"),
        Column("client_us", "client CPU µs/job", ".0f"),
        Column("server_us", "server CPU µs/job", ".0f"),
        Column("statements", "statements/job", ".3f"),
        Column("memory_mb", "peak MB"),
        Column("many_per_second", "bulk insert/s"),
        Column("one_per_second", "one by one/s"),
        Column("p50_ms", "p50 ms", ".1f"),
        Column("p99_ms", "p99 ms", ".1f"),
        Column("how", "used how"),
    )
    notes: ClassVar = (
        "django_jobs is: so many times as fast at draining. Bulk insert: in the fastest way that it has. Server: of "
        "PostgreSQL, of Redis for celery. Client CPU is that of all processes of the worker; peak MB of its first one.",
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        names = ", ".join(peer.name for peer in PEERS)
        parser.add_argument("--only", metavar="NAME,...", help=f"of: {names}")
        parser.add_argument("--rounds", type=int, default=3, help="default: 3")
        parser.add_argument("--scale", type=float, default=1.0, help="so many times the jobs; default: 1")
        parser.add_argument("--singles", type=int, default=300, help="jobs one by one; default: 300")
        parser.add_argument("--tells", type=int, default=100, help="jobs for the latency; default: 100")
        parser.add_argument(
            "--install", action="store_true", help="install all again, in their newest versions"
        )

    def results(self, options: argparse.Namespace, arguments: Sequence[str]) -> dict[str, Any]:
        self.skipped: list[dict[str, str]] = []
        result = super().results(options, arguments)
        return {**result, "skipped": self.skipped}

    def report(self, result: dict[str, Any]) -> str:
        skipped = [f"Skipped: {each['peer']}: {each['reason']}" for each in result["skipped"]]
        return "\n".join([super().report(result), *skipped])

    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        wanted = options.only.split(",") if options.only else None
        if wanted:
            # The name of one has a comma in it.
            chosen = [peer for peer in PEERS if peer.name.partition(",")[0] in wanted]
        else:
            chosen = list(PEERS)
        with ExitStack() as resources:
            redis = resources.enter_context(run_redis())
            os.environ["BENCHMARKS_SERVER"] = resources.enter_context(open_server())
            installed = self.installed(chosen, redis, options.install)
            found: dict[str, list[Row]] = {}
            for number in range(options.rounds):
                for each in list(installed):
                    if row := self.one(each, redis, options):
                        found.setdefault(each.peer.name, []).append(row)
                        say(f"round {number + 1}, {each.peer.name}: {row['jobs_per_second']:,.0f} jobs/s")
                    else:
                        installed.remove(each)
        rows = [medians(rounds) for rounds in found.values()]
        ours = next((row["jobs_per_second"] for row in rows if row["peer"] == "django_jobs"), None)
        for row in rows:
            row["factor"] = None if ours is None else ours / row["jobs_per_second"]
        return sorted(rows, key=lambda row: -row["jobs_per_second"])

    def installed(self, chosen: Sequence[Peer], redis: Redis | None, again: bool) -> list[Installed]:
        """Those that can be run; the others are skipped."""
        found = []
        for peer in chosen:
            say(f"installing {peer.name}")
            try:
                if peer.watch is None and redis is None:
                    raise NotInstalled("there is no redis-server here")
                found.append(install(peer, again))
            except NotInstalled as error:
                self.skip(peer, str(error))
        return found

    def one(self, installed: Installed, redis: Redis | None, options: argparse.Namespace) -> Row | None:
        """One run, on a new database; None if it failed."""
        jobs = max(50, round(installed.peer.jobs * options.scale))
        with open_database("postgresql") as database:
            if redis is not None:
                redis.ask("FLUSHALL")
            try:
                run = Run(installed, database.url, redis, database.folder)
                return run.measure(jobs, options.singles, options.tells)
            except PeerFailed as error:
                self.skip(installed.peer, str(error))
                return None

    def skip(self, peer: Peer, reason: str) -> None:
        """Say why a peer is not in the table."""
        say(f"skipped: {peer.name}: {reason}")
        self.skipped.append({"peer": peer.name, "reason": reason})


BENCHMARK = Peers()
