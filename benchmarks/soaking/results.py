"""What the looks come to: a row for each tenth of the run, and the verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.core.output import percentile
from benchmarks.soaking import verdicts
from benchmarks.soaking.ledger import lost
from benchmarks.soaking.verdicts import Series, Verdict
from benchmarks.soaking.watching import Sample

Row = dict[str, Any]
WINDOWS = 10
WORKERS = ("threads", "child 1", "child 2", "supervisor")


def windows(samples: Sequence[Sample], minutes: float) -> list[Row]:
    """A row for each tenth."""
    parts: list[list[Sample]] = [[] for _ in range(WINDOWS)]
    for sample in samples:
        parts[min(WINDOWS - 1, int(sample.minute * WINDOWS / minutes))].append(sample)
    rows = []
    before = samples[0]
    for part in parts:
        if part and part[-1].minute > before.minute:
            rows.append(window(before, part))
            before = part[-1]
    return rows


def window(before: Sample, part: Sequence[Sample]) -> Row:
    """From the last sample of the window before to the last one of this."""
    after = part[-1]
    seconds = 60 * (after.minute - before.minute)
    waits = [wait for sample in part for wait in sample.waits]
    echoes = [echo for sample in part for echo in sample.echoes]

    def cpu(*names: str) -> float | None:
        there = [name for name in names if name in after.uses and name in before.uses]
        used = sum(after.uses[name].cpu - before.uses[name].cpu for name in there)
        return used / seconds if there else None

    return {
        "minutes": f"{before.minute:.1f} to {after.minute:.1f}",
        "enqueued": (after.enqueued - before.enqueued) / seconds,
        "ended": (after.ended - before.ended) / seconds,
        **({f"p{part}_ms": percentile(waits, part / 100) for part in (50, 95, 99)} if waits else {}),
        "echo_ms": percentile(echoes, 0.95) if echoes else None,
        **after.sizes,
        **{f"memory_{name}": use.memory for name, use in after.uses.items()},
        "cpu_workers": cpu(*WORKERS),
        "cpu_enqueuer": cpu("enqueuer"),
        "cpu_server": cpu("server"),
    }


def judge(
    samples: Sequence[Sample], tally: Iterable[Mapping[str, Any]], bounded: Sequence[str], minutes: float
) -> list[Row]:
    """A row for each thing that there is a rule for."""
    wrong = lost(tally)
    rows = [row("jobs lost or ended otherwise", Verdict("none" if not wrong else f"{wrong} LOST", not wrong))]
    for name in samples[0].uses:
        if name == "server":
            continue  # its memory is its cache, and connections that come and go
        memory = series(samples, name, "memory")
        rows.append(row(f"memory of {name}, MB", verdicts.memory(memory, minutes)))
    for name in WORKERS:
        files = series(samples, name, "files")
        rows.append(row(f"open files of {name}", verdicts.bounded(files, minutes)))
    for name in bounded:
        sizes = [(sample.minute, sample.sizes[name]) for sample in samples]
        rows.append(row(f"size: {name.removesuffix('_mb')}, MB", verdicts.bounded(sizes, minutes)))
    for part in (0.5, 0.95):
        echo = verdicts.flat(half_minutes(samples, "echoes", part), minutes)
        verdict = verdicts.beside(verdicts.flat(half_minutes(samples, "waits", part), minutes), echo)
        rows.append(row(f"commit to start, p{part * 100:.0f}, ms", verdict))
        rows.append(row(f"echo, p{part * 100:.0f}, ms", echo._replace(word="to compare with", good=None)))
    return rows


def row(what: str, verdict: Verdict) -> Row:
    """Of the table."""
    slope = None if verdict.slope is None else verdict.slope * 1024
    return {
        "what": what,
        "first": verdict.first,
        "last": verdict.last,
        "slope_kb": slope,
        "word": verdict.word,
        "good": verdict.good,
    }


def series(samples: Iterable[Sample], name: str, what: str) -> Series:
    """What a process used over time."""
    return [(each.minute, float(getattr(each.uses[name], what))) for each in samples if name in each.uses]


def half_minutes(samples: Sequence[Sample], what: str, part: float) -> Series:
    """A percentile of each half minute, so that one slow moment is one value."""
    parts: dict[int, list[float]] = {}
    for sample in samples:
        parts.setdefault(int(2 * sample.minute), []).extend(getattr(sample, what))
    return [(number / 2 + 0.25, percentile(values, part)) for number, values in parts.items() if values]


def is_good(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether no verdict is a bad one."""
    return all(row.get("good") is not False for row in rows if row["part"] == "verdict")
