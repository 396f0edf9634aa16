"""The plots: one for each benchmark whose table is more than a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

Row = dict[str, Any]
# Distinct to every eye, and in grey.
OURS, OTHER, THIRD, INK, FAINT = "#1f6f8b", "#e0a458", "#8d99ae", "#22303c", "#d7dde3"
LABELS = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}
WIDTH = 8.0


def figure(count: int = 1, height: float = 3.4) -> tuple[Any, Any]:
    """A figure of so many panels side by side."""
    plt.rcParams.update({
        "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK,
        "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left", "text.color": INK,
        "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "legend.frameon": False,
    })  # fmt: skip
    drawn, axes = plt.subplots(1, count, figsize=(WIDTH, height), squeeze=False, layout="constrained")
    return drawn, axes[0]


def save(drawn: Any, file: Path) -> None:
    """As PNG, the same for the same results."""
    drawn.savefig(file, dpi=150, metadata={"Software": None})
    plt.close(drawn)


def bars(
    axes: Any, labels: Sequence[str], series: Mapping[str, Sequence[float]], form: str = "{:,.0f}"
) -> None:
    """Groups of horizontal bars, the first at the top, each with its number."""
    height = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        places = [place + number * height for place in range(len(labels))]
        color = (OURS, OTHER, THIRD)[number % 3]
        drawn = axes.barh(places, values, height * 0.92, color=color, label=name)
        axes.bar_label(drawn, [form.format(value) for value in values], padding=3, fontsize=8)
    axes.set_yticks([place + 0.4 - height / 2 for place in range(len(labels))], labels)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.16)
    if len(series) > 1:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=len(series))


def dots(
    axes: Any, labels: Sequence[str], series: Mapping[str, Sequence[float]], form: str = "{:,.0f}"
) -> None:
    """The same where numbers differ by orders of magnitude: points on a scale of powers, those of a row joined."""
    axes.set_xscale("log")
    axes.set_xlabel("a scale of powers of ten", fontsize=8, color=THIRD)
    rows = list(zip(*series.values(), strict=True))
    places = range(len(labels))
    axes.hlines(
        places, [min(row) for row in rows], [max(row) for row in rows], color=FAINT, linewidth=2, zorder=1
    )
    for number, (name, values) in enumerate(series.items()):
        axes.scatter(values, places, s=28, color=(OURS, OTHER, THIRD)[number % 3], label=name, zorder=2)
        for place, value, row in zip(places, values, rows, strict=True):
            left = value == min(row) and len(row) > 1
            axes.annotate(
                form.format(value), (value, place), (-6 if left else 6, 0), textcoords="offset points",
                ha="right" if left else "left", va="center", fontsize=8,
            )  # fmt: skip
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.3)


def legend(drawn: Any, axes: Any) -> None:
    """One for all panels."""
    handles, labels = axes.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def drain(rows: Sequence[Row], file: Path) -> str:
    """Jobs per second beside the limit."""
    drawn, [axes] = figure(height=2.4)
    bars(
        axes,
        [f"{LABELS[row['database']]}: {row['ratio']:.0%}" for row in rows],
        {
            "django_jobs": [row["jobs_per_second"] for row in rows],
            "the limit": [row["limit_per_second"] for row in rows],
        },
    )
    axes.set_title("Jobs per second, beside claiming and finishing bare rows")
    save(drawn, file)
    return "Jobs per second, beside the limit"


def processes(rows: Sequence[Row], file: Path) -> str:
    """By number of processes."""
    found = vendors(rows)
    drawn, panels = figure(len(found), 2.6)
    for axes, vendor in zip(panels, found, strict=True):
        mine = [row for row in rows if row["database"] == vendor]
        bars(
            axes,
            [f"{row['processes']:.0f}" for row in mine],
            {"jobs/s": [row["jobs_per_second"] for row in mine]},
        )
        axes.set_title(f"{LABELS[vendor]}: jobs/s by worker processes")
    save(drawn, file)
    return "Jobs per second by number of worker processes"


def writers(rows: Sequence[Row], file: Path) -> str:
    """One completion writer and two, by distance."""
    drawn, [axes] = figure(height=2.8)
    distances = sorted({row["latency_ms"] for row in rows})
    series = {
        f"{number} completion writer{'s' if number != '1' else ''}": [
            next(
                row["jobs_per_second"]
                for row in rows
                if (row["writers"], row["latency_ms"]) == (number, distance)
            )
            for distance in distances
        ]
        for number in sorted({row["writers"] for row in rows})
    }
    bars(axes, [f"+{distance:g} ms" for distance in distances], series)
    axes.set_title("PostgreSQL: jobs/s, each answer of the database so much later")
    save(drawn, file)
    return "Jobs per second with one and two completion writers"


def operations(rows: Sequence[Row], file: Path) -> str:
    """ORM and queue."""
    found = vendors(rows)
    drawn, panels = figure(len(found), 8.0)
    for axes, vendor in zip(panels, found, strict=True):
        mine = [row for row in rows if row["database"] == vendor]
        dots(
            axes,
            [row["operation"].replace(" in one UPDATE", "") for row in mine]
            if axes is panels[0]
            else [""] * len(mine),
            {"queue": [row["after_us"] for row in mine], "ORM": [row["before_us"] for row in mine]},
        )
        axes.set_title(f"{LABELS[vendor]}, µs")
    legend(drawn, panels[0])
    save(drawn, file)
    return "Microseconds of each operation, by the queue and by the ORM"


def latency(rows: Sequence[Row], file: Path) -> str:
    """Percentiles."""
    drawn, [axes] = figure(height=3.4)
    bars(
        axes,
        [f"{LABELS[row['database']]}, {row['worker']}" for row in rows],
        {name: [row[f"{name}_ms"] for row in rows] for name in ("p50", "p95", "p99")},
        "{:.1f}",
    )
    axes.set_title("From commit to start, ms")
    save(drawn, file)
    return "Milliseconds from commit to start"


def enqueue(rows: Sequence[Row], file: Path) -> str:
    """Ours and bare."""
    drawn, [axes] = figure(height=4.2)
    dots(
        axes,
        [f"{LABELS[row['database']]}: {row['way']}\nbare: {row['bare']}" for row in rows],
        {
            "django_jobs": [row["jobs_per_second"] for row in rows],
            "bare": [row["bare_per_second"] for row in rows],
        },
    )
    axes.set_title("Jobs inserted per second")
    legend(drawn, axes)
    save(drawn, file)
    return "Jobs inserted per second"


def scale(rows: Sequence[Row], file: Path) -> str:
    """Lines by length of history."""
    found = vendors(rows)
    drawn, panels = figure(len(found), 3.8)
    lines = {
        "claim_ms": ("claim 50", OURS, "o-"),
        "finish_ms": ("finish 50", OTHER, "s-"),
        "enqueue_ms": ("enqueue", THIRD, "^-"),
        "admin_ms": ("admin list", INK, "o--"),
        "failed_ms": ("admin list of failed", OTHER, "s--"),
        "stats_ms": ("stats", THIRD, "^--"),
    }
    for axes, vendor in zip(panels, found, strict=True):
        mine = sorted((row for row in rows if row["database"] == vendor), key=lambda row: row["rows"])
        for column, (label, color, style) in lines.items():
            axes.plot(
                [row["rows"] for row in mine],
                [row[column] for row in mine],
                style,
                color=color,
                label=label,
                markersize=4,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(axis="y", color=FAINT, linewidth=0.6)
        axes.set_xlabel("rows of history")
        axes.set_title(f"{LABELS[vendor]}, ms")
    legend(drawn, panels[0])
    save(drawn, file)
    return "Milliseconds by length of history"


def peers(rows: Sequence[Row], file: Path) -> str:
    """Drained per second."""
    drawn, panels = figure(2, 1.2 + 0.3 * len(rows))
    for axes, column, form, title in (
        (panels[0], "jobs_per_second", "{:,.0f}", "Jobs drained per second"),
        (panels[1], "p50_ms", "{:,.1f}", "Enqueue to start, idle worker, p50 ms"),
    ):
        names = [row["peer"] for row in rows]
        dots(
            axes,
            names if axes is panels[0] else [""] * len(rows),
            {column: [row[column] for row in rows]},
            form,
        )
        axes.collections[-1].set_color([OURS if name == "django_jobs" else THIRD for name in names])
        axes.set_title(title)
    save(drawn, file)
    return "Jobs drained per second, and latency, of each queue"


def vendors(rows: Sequence[Row]) -> list[str]:
    """The databases that there are rows of."""
    return [vendor for vendor in LABELS if any(row["database"] == vendor for row in rows)]


PLOTS: dict[str, Callable[[Sequence[Row], Path], str]] = {
    "drain": drain,
    "processes": processes,
    "writers": writers,
    "operations": operations,
    "latency": latency,
    "enqueue": enqueue,
    "scale": scale,
    "peers": peers,
}
