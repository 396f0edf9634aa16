"""What makes a benchmark a command: its options, one process for each database, and the table at the end."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.core.databases import VENDORS, Database, open_database
from benchmarks.core.meters import Meter, meter_of
from benchmarks.core.output import Column, Row, conditions, describe, table
from benchmarks.core.workers import SETTINGS


class Benchmark(ABC):
    """One benchmark. Its docstring is its ``--help``."""

    name: ClassVar[str]
    columns: ClassVar[Sequence[Column]]
    databases: ClassVar[Sequence[str]] = VENDORS
    notes: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Its own options."""

    @abstractmethod
    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        """The rows of the table for one database, in a process of its own."""

    def run(self, arguments: Sequence[str]) -> int:
        """The command. Returns the exit code."""
        options = self.parser().parse_args(arguments)
        result = self.results(options, arguments)
        print(json.dumps(result) if options.json else self.report(result), flush=True)
        return 0

    def parser(self) -> argparse.ArgumentParser:
        """Of the command line."""
        parser = argparse.ArgumentParser(
            prog=f"python -m benchmarks {self.name}",
            description=self.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if len(self.databases) > 1:
            parser.add_argument(
                "--database",
                choices=self.databases,
                action="append",
                help="measure on this one only. PostgreSQL is the server of DATABASE_URL, if that names one, else one "
                "that is started for the run (PG_BINDIR chooses its version)",
            )
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
        self.add_arguments(parser)
        return parser

    def results(self, options: argparse.Namespace, arguments: Sequence[str]) -> dict[str, Any]:
        """Measure on each of the databases that were asked for."""
        chosen = (getattr(options, "database", None) or list(self.databases)) if self.databases else []
        if len(chosen) == 1:
            before = conditions()
            with open_database(chosen[0]) as database:
                before["versions"][chosen[0]] = database.version
                rows = self.measure(database, options)
            return self.result(before, options, [{"database": database.vendor, **row} for row in rows])
        parts = [self.in_a_process(vendor, arguments) for vendor in chosen]
        result = parts[0]
        for part in parts[1:]:
            result["versions"].update(part["versions"])
            result["rows"] += part["rows"]
        return result

    def result(self, before: dict[str, Any], options: argparse.Namespace, rows: list[Row]) -> dict[str, Any]:
        """What ``--json`` prints."""
        given = {key: value for key, value in vars(options).items() if key not in ("json", "database")}
        return {"benchmark": self.name, **before, "options": given, "rows": rows}

    def in_a_process(self, vendor: str, arguments: Sequence[str]) -> dict[str, Any]:
        """The same command for one database: Django's settings can be read once in a process."""
        others = iter(arguments)
        kept = [
            each
            for each in others
            if each != "--json"
            and not each.startswith("--database=")
            and not (each == "--database" and next(others, None))
        ]
        with tempfile.NamedTemporaryFile() as file:
            command = [sys.executable, "-m", "benchmarks", self.name, "--database", vendor, "--json", *kept]
            with Path(file.name).open("wb") as out:
                process = subprocess.Popen(command, stdout=out, cwd=Path(__file__).resolve().parents[2])
                try:
                    code = process.wait()
                finally:
                    process.terminate()  # it ends what it has started
                    process.wait()
            if (
                code and not Path(file.name).stat().st_size
            ):  # a verdict is an exit code too, and has its table
                raise SystemExit(code)
            result: dict[str, Any] = json.loads(Path(file.name).read_text())
        return result

    def report(self, result: dict[str, Any]) -> str:
        """The table, and under which conditions."""
        return "\n".join([table(self.columns, result["rows"]), "", describe(result), *self.notes])


@contextmanager
def site(database: Database, durable: bool = True, settings: str = SETTINGS) -> Iterator[Meter]:
    """Django, set up in this process on a database, with its tables. Once in a process.

    :param settings: the name of their module.
    :param durable: whether PostgreSQL waits for the disk at each COMMIT, as it does by default.
    """
    if not durable and database.vendor == "postgresql":
        commit_without_waiting(database)
    os.environ["DATABASE_URL"] = database.url
    os.environ["DJANGO_SETTINGS_MODULE"] = settings
    os.environ["DEBUG"] = "0"
    import django
    from django.core.management import call_command
    from django.db import connections

    django.setup()
    call_command("migrate", verbosity=0)
    meter = meter_of(database)
    try:
        yield meter
    finally:
        meter.close()
        connections.close_all()


def commit_without_waiting(database: Database) -> None:
    """Let PostgreSQL not wait for the disk, on all connections that are opened from now on."""
    import psycopg

    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {database.url.rpartition('/')[2]} SET synchronous_commit = off")


def say(text: str) -> None:
    """How far it is: on stderr, where it does not mix with the table."""
    print(text, file=sys.stderr, flush=True)


def numbers(text: str) -> list[int]:
    """``1,2,4``"""
    return [int(part) for part in text.split(",")]


def decimals(text: str) -> list[float]:
    """``0,1,5``"""
    return [float(part) for part in text.split(",")]
