"""All benchmarks, one after another, and the page of their results."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from benchmarks.core.commands import say
from benchmarks.report.command import RESULTS

ROOT = Path(__file__).resolve().parent.parent


class Part(NamedTuple):
    """A benchmark of the page: its name there, its arguments, and those of a run that only shows that it runs."""

    name: str
    arguments: tuple[str, ...]
    quick: tuple[str, ...]


PARTS = (
    Part("limit", ("limit",), ("--jobs", "500", "--rounds", "1")),
    Part("drain", ("drain", "--rounds", "7"), ("--jobs", "500", "--rounds", "1")),
    Part(
        "processes",
        ("drain", "--processes", "1,2,4"),
        ("--jobs", "500", "--rounds", "1", "--processes", "1,2"),
    ),
    Part(
        "writers",
        ("drain", "--database", "postgresql", "--writers", "1,2", "--latency", "0,1,5"),
        ("--jobs", "500", "--rounds", "1", "--latency", "0,1"),
    ),
    Part(
        "duration",
        ("drain", "--duration", "5", "--rounds", "3", "--processes", "1,2,4"),
        ("--duration", "0.3", "--jobs", "300", "--rounds", "1", "--processes", "1,2"),
    ),
    Part(
        "duration-writers",
        (
            *("drain", "--database", "postgresql", "--duration", "5", "--rounds", "3"),
            *("--writers", "1,2", "--latency", "0,1,5"),
        ),
        ("--duration", "0.3", "--jobs", "300", "--rounds", "1", "--latency", "0,1"),
    ),
    Part("parts", ("parts",), ("--jobs", "300", "--rounds", "1")),
    Part("operations", ("operations",), ("--calls", "3", "--stale", "100")),
    Part("latency", ("latency",), ("--jobs", "5", "--idle", "1")),
    Part(
        "enqueue", ("enqueue",), ("--singles", "5", "--transactions", "1", "--many", "200", "--rounds", "1")
    ),
    Part("steps", ("steps",), ("--calls", "3", "--rounds", "2")),
    Part("scale", ("scale",), ("--rows", "100,200", "--calls", "2", "--pages", "1")),
    Part("pages", ("pages",), ("--rows", "3000", "--calls", "1", "--only", "all")),
    Part(
        "peers",
        ("peers",),
        ("--only", "django_jobs", "--rounds", "1", "--scale", "0.1", "--singles", "3", "--tells", "3"),
    ),
)


class All:
    """Run all benchmarks on both databases, keep their results, and write docs/benchmarks.md.

    An hour or more. The machine should have nothing else to do: the page says what its load was.
    """

    name: ClassVar = "all"

    def run(self, arguments: Sequence[str]) -> int:
        """The command. Returns the exit code: 1 if a benchmark failed; the others are kept."""
        parser = argparse.ArgumentParser(
            prog="python -m benchmarks all",
            description=self.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument(
            "--only", metavar="NAME,...", help=f"of: {', '.join(part.name for part in PARTS)}"
        )
        parser.add_argument(
            "--quick", action="store_true", help="tiny sizes, which tell nothing but that it runs"
        )
        parser.add_argument("--results", type=Path, default=RESULTS, help="default: benchmarks/results")
        parser.add_argument("--no-report", action="store_true", help="write no page")
        options = parser.parse_args(arguments)
        options.results.mkdir(parents=True, exist_ok=True)
        failed = []
        for part in PARTS:
            if options.only and part.name not in options.only.split(","):
                continue
            began = time.monotonic()
            say(f"======== {part.name}")
            if not measure(part, options.quick, options.results):
                failed.append(part.name)
            say(f"-------- {part.name}: {time.monotonic() - began:.0f} s")
        if failed:
            say(f"failed: {', '.join(failed)}")
        if not options.no_report:
            from benchmarks.report.command import BENCHMARK

            BENCHMARK.run(["--results", str(options.results)])
        return int(bool(failed))


def measure(part: Part, quick: bool, folder: Path) -> bool:
    """Run one and keep its result; whether it ended well."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *part.arguments, *(part.quick if quick else ()), "--json"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode:
        return False
    (folder / f"{part.name}.json").write_text(json.dumps(json.loads(done.stdout), indent=1) + "\n")
    return True


BENCHMARK = All()
