"""A soak as a picture: memory, sizes and waits over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.core.output import percentile
from benchmarks.report.plots import figure, save
from benchmarks.soaking.watching import Sample

SIZES = {
    "table_mb": "table",
    "indexes_mb": "indexes",
    "others_mb": "other tables",
    "file_mb": "file",
    "free_mb": "free in it",
    "wal_mb": "WAL",
}


def draw(samples: Sequence[Sample], database: str, file: Path) -> None:
    """Write the picture, as PNG."""
    drawn, (memory, sizes, waits) = figure(3)
    minutes = [sample.minute for sample in samples]
    for name in samples[-1].uses:
        if name != "server":
            points = [(each.minute, each.uses[name].memory) for each in samples if name in each.uses]
            memory.plot(*zip(*points, strict=True), label=name, linewidth=1)
    memory.set_title(f"{database}: memory, MB")
    for key, name in SIZES.items():
        if key in samples[0].sizes:
            sizes.plot(minutes, [sample.sizes[key] for sample in samples], label=name, linewidth=1)
    sizes.set_title("size, MB")
    heard = [sample for sample in samples if sample.waits]
    for part in (50, 95):
        values = [percentile(sample.waits, part / 100) for sample in heard]
        waits.plot([sample.minute for sample in heard], values, label=f"p{part}", linewidth=1)
    waits.set_title("commit to start, ms")
    waits.set_yscale("log")
    for axes in (memory, sizes, waits):
        axes.set_xlabel("minutes")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize=7)
    for axes in (memory, sizes):
        axes.set_ylim(bottom=0)
    save(drawn, file)
