"""Charts as SVG, drawn here: no script, no style, each value in a table beside it.

A plot is stretched to the width that there is; its labels are HTML around it, so that they stay readable at any width.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.utils import formats, timezone
from django.utils.translation import gettext, pgettext

# The plot's own coordinates. It is stretched, so they are no pixels.
WIDTH, HEIGHT = 1000.0, 100.0
# Of a step's width, what its bar takes.
BAR = 0.8
# The parts of the horizontal axis, with a label at each end of each; of a week they are its days.
MARKS, MARKS_OF_WEEK = 4, 7
WEEK = dt.timedelta(days=7)


@dataclass(frozen=True)
class Series:
    """What one colour stands for: its name, its class, and its values, one for each step (None: nothing known).

    :param total: of all steps, in words; empty where that says nothing.
    """

    title: Any
    kind: str
    values: Sequence[float | None]
    total: str = ""


@dataclass(frozen=True)
class Bar:
    """A rectangle."""

    kind: str
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True)
class Step:
    """One step of time: what is drawn of it, and what is said."""

    x: str
    width: str
    text: str
    bars: list[Bar]


@dataclass
class Chart:
    """A chart, worked out for its template.

    :param starts: when each step begins.
    :param write: a value in words.
    :param stacked: bars on top of each other; else lines.
    """

    key: str
    title: Any
    starts: Sequence[dt.datetime]
    step: dt.timedelta
    series: Sequence[Series]
    write: Callable[[float], str]
    stacked: bool = True
    top: float = field(init=False)

    def __post_init__(self) -> None:
        if self.stacked:
            sums = [sum(value or 0 for value in values) for values in zip(*self._all, strict=True)]
        else:
            sums = [value for values in self._all for value in values if value is not None]
        self.top = nice(max(sums, default=0), whole=self.stacked)

    @property
    def _all(self) -> list[Sequence[float | None]]:
        return [series.values for series in self.series]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(value for values in self._all for value in values)

    @property
    def view_box(self) -> str:
        """The plot's coordinates."""
        return f"0 0 {WIDTH:g} {HEIGHT:g}"

    @property
    def labels_y(self) -> list[str]:
        """The labels of the vertical axis, from the top."""
        return [self.write(self.top), self.write(self.top / 2), "0"]

    @property
    def labels_x(self) -> list[str]:
        """The labels of the horizontal axis: equal distances from the first step to the end of the last."""
        if not self.starts:
            return []
        first, length = self.starts[0], self.step * len(self.starts)
        parts, words = (MARKS_OF_WEEK, "D") if length == WEEK else (MARKS, "H:i")
        moments = (first + length * number / parts for number in range(parts + 1))
        return [formats.date_format(timezone.localtime(moment), words) for moment in moments]

    @cached_property
    def _times(self) -> list[str]:
        """When each step is, in words; they are told in the plot and in the table."""
        return [self._when(start) for start in self.starts]

    def _when(self, start: dt.datetime) -> str:
        start, end = timezone.localtime(start), timezone.localtime(start + self.step)
        day = ""
        if self.step * len(self.starts) > dt.timedelta(days=1):
            words = pgettext("a day in a chart, as Django's date filter formats it", "D j M")
            day = f"{formats.date_format(start, words)}, "
        return f"{day}{formats.date_format(start, 'H:i')}\N{EN DASH}{formats.date_format(end, 'H:i')}"

    @property
    def steps(self) -> list[Step]:
        """The steps of a chart of bars."""
        width = WIDTH / max(1, len(self.starts))
        found = []
        for number in range(len(self.starts)):
            bars, below = [], 0.0
            for series in self.series if self.stacked else ():
                value = series.values[number] or 0
                if value:
                    # Few among many are seen all the same.
                    height = max(HEIGHT * value / self.top, 1.0)
                    x = number * width + width * (1 - BAR) / 2
                    y = max(HEIGHT - below - height, 0.0)
                    bars.append(Bar(series.kind, _n(x), _n(y), _n(width * BAR), _n(height)))
                    below += height
            found.append(Step(_n(number * width), _n(width), self._text(number), bars))
        return found

    def _text(self, number: int) -> str:
        parts = [
            f"{series.title}: {self.write(value)}"
            for series in self.series
            if (value := series.values[number]) is not None and (value or not self.stacked)
        ]
        # Not within the f-string, where xgettext does not look.
        told = ", ".join(parts) or gettext("nothing")
        return f"{self._times[number]}  {told}"

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The lines of a chart of lines, as (kind, path), broken where nothing is known."""
        width = WIDTH / max(1, len(self.starts))
        return (
            [(series.kind, self._path(series.values, width)) for series in self.series]
            if not self.stacked
            else []
        )

    def _path(self, values: Sequence[float | None], width: float) -> str:
        parts: list[str] = []
        before = None
        for number, value in enumerate(values):
            if value is not None:
                x, y = (number + 0.5) * width, HEIGHT - HEIGHT * value / self.top
                if before is None:  # a point alone is a short line
                    parts.append(f"M{_n(x - width * BAR / 2)} {_n(y)}")
                    x += 0 if number + 1 < len(values) and values[number + 1] is not None else width * BAR / 2
                parts.append(f"L{_n(x)} {_n(y)}")
            before = value
        return "".join(parts)

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """The table: of each step in which there was anything, when, and the values in words; the latest first."""
        found = []
        for number in range(len(self.starts)):
            values = [series.values[number] for series in self.series]
            if any(values):
                words = ["\N{EN DASH}" if value is None else self.write(value) for value in values]
                found.append((self._times[number], words))
        return found[::-1]


def nice(most: float, whole: bool = True) -> float:
    """The top of an axis: a round number that holds all; where it counts, an even one, so that its half is one too."""
    if most <= 0:
        return 2.0 if whole else 1.0
    power = 10.0 ** math.floor(math.log10(most))
    tops = (factor * power for factor in (1, 1.2, 1.4, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10, 20))
    return next(top for top in tops if top >= most and (not whole or top % 2 == 0))


def _n(value: float) -> str:
    """A number as SVG has it, whatever the language of the page."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
