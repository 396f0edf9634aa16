"""Whether the figures that were reached are still reached."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from benchmarks.core.commands import Benchmark, say
from benchmarks.core.databases import VENDORS, Database, open_server
from benchmarks.core.output import Column, Row, conditions, describe, table

RECORDED = Path(__file__).parent / "recorded.json"
# Smaller changes are nobody's concern, however quiet the machine.
LEAST = 0.03
OPERATIONS = ("claim a batch of 50", "complete", "merge metadata", "retry", "acquire leadership")

Samples = dict[str, list[float]]


class Verdict(NamedTuple):
    """What became of a ratio. ``change`` and ``noise`` are parts of the recorded ratio."""

    recorded: float | None
    now: float
    change: float | None
    noise: float
    word: str


class Check(Benchmark):
    """Whether the figures that were reached are still reached: a short run, whose ratios (drain to the limit, enqueue
    to bare inserts, operations to the ORM's) are compared with those in benchmarks/recorded.json.

    The run is made of pairs of the same, A and A, in turn. What differs between the two is this machine's noise now;
    together with the noise when it was recorded, it is what a change must exceed to be spoken of. Ratios, since they
    depend less on the machine than seconds do; still, record on the machine that checks. Exit code 1 if a figure is
    lost.
    """

    name = "check"
    columns: ClassVar = (
        Column("database", "database"),
        Column("figure", "figure"),
        Column("recorded", "recorded", ".2f"),
        Column("now", "now", ".2f"),
        Column("change", "change", "+.0%"),
        Column("noise", "noise", ".0%"),
        Column("verdict", "verdict"),
    )
    databases: ClassVar = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--pairs", type=int, default=3, help="of short runs; default: 3")
        parser.add_argument("--jobs", type=int, default=30_000, help="of a drain; default: 30000")
        parser.add_argument("--calls", type=int, default=60, help="of an operation; default: 60")
        parser.add_argument("--database", choices=VENDORS, action="append", help="check this one only")
        parser.add_argument("--record", action="store_true", help="write the figures to the file instead")
        parser.add_argument("--file", type=Path, default=RECORDED, help="default: benchmarks/recorded.json")

    def measure(self, database: Database, options: argparse.Namespace) -> list[Row]:
        raise NotImplementedError("it runs other benchmarks")

    def run(self, arguments: Sequence[str]) -> int:
        parser = self.parser()
        options = parser.parse_args(arguments)
        if not options.record and not options.file.exists():
            parser.error(f"{options.file} is not there, so nothing could be lost: write it with --record")
        before = conditions()
        recorded = json.loads(options.file.read_text()) if options.file.exists() else {"figures": {}}
        vendors = options.database or VENDORS
        pair = measure_pairs(vendors, options.pairs, options.jobs, options.calls)
        if options.record:
            figures = {name: figure(*samples) for name, samples in pair.items()}
            kept = {**recorded["figures"], **figures}
            options.file.write_text(json.dumps({**before, "figures": kept}, indent=2) + "\n")
            say(f"{len(figures)} figures are recorded in {options.file}")
        verdicts = {
            name: judge({} if options.record else recorded["figures"].get(name, {}), *samples)
            for name, samples in pair.items()
        }
        rows = [
            {**dict(zip(("database", "figure"), name.split(": "), strict=True)), **verdict._asdict()}
            for name, verdict in verdicts.items()
        ]
        for row in rows:
            row["verdict"] = row.pop("word")
        if options.json:
            print(json.dumps({"benchmark": self.name, **before, "rows": rows}))
        else:
            print(table(self.columns, rows), "", describe(before), sep="\n")
        return int(any(verdict.word == "LOST" for verdict in verdicts.values()))


def figure(one: Sequence[float], other: Sequence[float]) -> dict[str, float]:
    """A ratio and its noise, from the two sides of A/A pairs."""
    return {"ratio": statistics.median([*one, *other]), "noise": noise(one, other)}


def noise(one: Sequence[float], other: Sequence[float]) -> float:
    """How far two measurements of the same are apart, as a part of them.

    The difference of the two medians may be small by chance, so that of the middle halves of all counts too.
    """
    everything = sorted([*one, *other])
    middle = statistics.median(everything)
    apart = abs(statistics.median(one) - statistics.median(other))
    quarter = len(everything) // 4
    spread = everything[-1 - quarter] - everything[quarter]
    return max(apart, spread) / middle


def judge(recorded: Mapping[str, float], one: Sequence[float], other: Sequence[float]) -> Verdict:
    """Compare with what was recorded; speak only of what exceeds the noise of both times."""
    now = figure(one, other)
    if not recorded:
        return Verdict(None, now["ratio"], None, now["noise"], "new")
    change = now["ratio"] / recorded["ratio"] - 1
    allowed = max(LEAST, now["noise"] + recorded["noise"])
    word = "as recorded"
    if change < -allowed:
        word = "LOST"
    elif change > allowed:
        word = "better"
    return Verdict(recorded["ratio"], now["ratio"], change, allowed, word)


def measure_pairs(
    vendors: Sequence[str], pairs: int, jobs: int, calls: int
) -> dict[str, tuple[list[float], list[float]]]:
    """The samples of each figure, by ``database: figure``, of the two sides of the pairs."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    with ExitStack() as resources:
        environment = dict(os.environ)
        if "postgresql" in vendors:
            environment["BENCHMARKS_SERVER"] = resources.enter_context(open_server())
        for number in range(2 * pairs):
            for vendor in vendors:
                say(f"{vendor}, pair {number // 2 + 1}, {'AB'[number % 2]}")
                for name, ratio in ratios(vendor, jobs, calls, environment).items():
                    found.setdefault(f"{vendor}: {name}", ([], []))[number % 2].append(ratio)
    return found


def ratios(vendor: str, jobs: int, calls: int, environment: Mapping[str, str]) -> dict[str, float]:
    """One short run of each benchmark."""
    found = {}
    for row in rows_of("drain", vendor, environment, "--jobs", str(jobs), "--rounds", "1"):
        found["drain / limit"] = row["ratio"]
    options = ["--singles", str(2 * calls), "--transactions", "5", "--many", str(80 * calls), "--rounds", "3"]
    for row in rows_of("enqueue", vendor, environment, *options):
        found[f"{row['way']} / {row['bare']}"] = row["ratio"]
    for row in rows_of("operations", vendor, environment, "--calls", str(calls), "--stale", "1000"):
        if row["operation"] in OPERATIONS:
            found[f"{row['operation']}, ORM / queue"] = row["factor"]
    return found


def rows_of(name: str, vendor: str, environment: Mapping[str, str], *options: str) -> list[Row]:
    """The rows of another benchmark."""
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks", name, "--database", vendor, "--json", *options],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parent.parent,
    )
    if result.returncode:
        raise SystemExit(f"benchmarks {name} failed:\n{result.stderr}")
    rows: list[Any] = json.loads(result.stdout)["rows"]
    return rows


BENCHMARK = Check()
