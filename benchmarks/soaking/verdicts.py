"""What it takes to say that something grows, or does not.

All look at what comes after the warm-up, and compare the beginning of that with its end.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from typing import NamedTuple

# Below this length of a run, in minutes, nothing is said: of memory, which takes ten to settle, and of all else.
LEAST_OF_MEMORY = 15.0
LEAST = 6.5
# A leak of 16 bytes at each of 50 jobs a second is 48 KB a minute.
LEAK_KB = 32.0
BOUND_FACTOR, BOUND_MORE = 1.25, 1.0
FLAT_FACTOR, FLAT_MORE = 1.5, 1.0
MOST_POINTS = 300

Series = Sequence[tuple[float, float]]  # minutes since the start, and a value


class Verdict(NamedTuple):
    """What is said of a series. ``good`` is None where nothing can be said.

    :param first: the median of the first third after the warm-up, ``last`` of the last one.
    :param slope: per minute.
    """

    word: str
    good: bool | None
    first: float | None = None
    last: float | None = None
    slope: float | None = None


def warm_up(minutes: float) -> float:
    """How many minutes of a run are not looked at: a quarter, and at most five."""
    return min(5.0, minutes / 4)


def memory(series: Series, minutes: float) -> Verdict:
    """Whether a process's memory, in MB, grows.

    It does when it still gains more than 32 KB a minute in the last half (the median slope of all pairs of samples),
    and three quarters of each third lie above three quarters of the third before it: a leak goes on, while caches fill
    up and an allocator takes steps.
    """
    parts = thirds(series, minutes) if minutes >= LEAST_OF_MEMORY else None
    if parts is None:
        return Verdict("too short to tell", None)
    rises = all(quarter(after, 1) > quarter(before, 3) for before, after in itertools.pairwise(parts))
    half = (warm_up(minutes) + minutes) / 2
    slope = median_slope([point for point in series if point[0] >= half])
    grows = rises and slope * 1024 > LEAK_KB
    return _said("grows" if grows else "no growth", not grows, parts, slope)


def bounded(series: Series, minutes: float) -> Verdict:
    """Whether a size is bounded: the most of the last third is at most 1.25 times that of the first, and 1 (MB)."""
    parts = thirds(series, minutes)
    if parts is None:
        return Verdict("too short to tell", None)
    good = max(parts[2]) <= BOUND_FACTOR * max(parts[0]) + BOUND_MORE
    return _said("bounded" if good else "grows", good, parts, None)


def flat(series: Series, minutes: float) -> Verdict:
    """Whether a time, in milliseconds, is flat: the median of the last third is at most 1.5 times that of the first,
    and 1 ms."""
    parts = thirds(series, minutes)
    if parts is None:
        return Verdict("too short to tell", None)
    good = statistics.median(parts[2]) <= FLAT_FACTOR * statistics.median(parts[0]) + FLAT_MORE
    return _said("flat" if good else "rises", good, parts, None)


def beside(verdict: Verdict, machine: Verdict) -> Verdict:
    """Of a time that rises nothing is said when the machine's own does too: others keep it busy."""
    if (
        verdict.good is False
        and machine.first
        and machine.last
        and machine.last > FLAT_FACTOR * machine.first
    ):
        return verdict._replace(word="rises, as the machine's own does", good=None)
    return verdict


def _said(word: str, good: bool, parts: Sequence[Sequence[float]], slope: float | None) -> Verdict:
    return Verdict(word, good, statistics.median(parts[0]), statistics.median(parts[2]), slope)


def thirds(series: Series, minutes: float) -> list[list[float]] | None:
    """The values of the three thirds of the time after the warm-up; None when that is too short."""
    begin = warm_up(minutes)
    length = (minutes - begin) / 3
    parts: list[list[float]] = [[], [], []]
    for at, value in series:
        if begin <= at:
            parts[min(2, int((at - begin) / length))].append(value)
    return parts if minutes >= LEAST and all(parts) else None


def quarter(values: Sequence[float], number: int) -> float:
    """The value below which so many quarters of them lie."""
    return sorted(values)[(len(values) - 1) * number // 4]


def median_slope(series: Series) -> float:
    """The median of the slopes between all pairs of points: single jumps don't move it."""
    step = -(-len(series) // MOST_POINTS)
    points = series[::step]
    slopes = [(b - a) / (y - x) for (x, a), (y, b) in itertools.combinations(points, 2) if y > x]
    return statistics.median(slopes) if slopes else 0.0
