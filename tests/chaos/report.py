"""What a run came to, in words and figures."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from statistics import median

from tests.chaos.faults import Happened
from tests.chaos.reckoning import Row, Story
from tests.chaos.run import Outcome

MOST = 30  # findings in full


def recoveries(happened: list[Happened], rows: list[Row]) -> dict[str, list[float]]:
    """Seconds from each fault's end to the first job that ended after it, by fault."""
    ends = sorted(
        row.finalized_at for row in rows if row.finalized_at is not None and row.state != "cancelled"
    )
    found: dict[str, list[float]] = defaultdict(list)
    for fault in happened:
        position = bisect_right(ends, fault.ended)
        if position < len(ends):
            found[fault.kind].append(ends[position] - fault.ended)
    return dict(found)


def taken_up(story: Story, killed: dict[int, float]) -> list[float]:
    """Seconds from the death of each process that was killed to the next run of each job that it ran then."""
    cut: dict[int, float] = {}
    seconds: list[float] = []
    for (id_, claims), (pid, began) in sorted(story.runs.items()):
        if id_ in cut:
            seconds.append(began - cut.pop(id_))
        over = story.ended[id_, claims] or (id_, claims) in story.raised
        if not over and began <= killed.get(pid, 0.0):
            cut[id_] = killed[pid]
    return seconds


def _seconds(values: list[float], of: Callable[[list[float]], float]) -> str:
    return f"{of(values):.2f} s" if values else "-"


def report(outcome: Outcome) -> Iterator[str]:
    """Lines to print."""
    rows = outcome.rows
    states = Counter(row.state for row in rows)
    story = outcome.story
    yield (
        f"{len(rows)} jobs: {', '.join(f'{count} {state}' for state, count in states.most_common())}; "
        f"{sum(story.began.values())} runs, {sum(row.claims for row in rows)} claims"
    )
    unsure = len(story.intended) - len(story.committed) - len(story.rolled_back) - len(story.duplicates)
    yield (
        f"enqueued: {len(story.committed)} committed, {len(story.duplicates)} duplicates, {len(story.rolled_back)} "
        f"rolled back, {unsure} of unknown outcome; {len(story.failures)} errors met by callers"
    )
    yield (
        f"{outcome.deaths} processes ended and were replaced; drained {outcome.drained_in:.1f} s after the last fault; "
        f"the slowest stop took {outcome.slowest_stop:.1f} s"
    )
    yield f"{'fault':<32} {'times':>5} {'recovered after: median':>24} {'longest':>8}"
    counts = Counter(fault.kind for fault in outcome.happened)
    by_kind = recoveries(outcome.happened, rows)
    for kind in sorted(counts):
        seconds = by_kind.get(kind, [])
        yield f"{kind:<32} {counts[kind]:>5} {_seconds(seconds, median):>24} {_seconds(seconds, max):>8}"
    seconds = taken_up(story, outcome.killed)
    yield (
        f"{len(seconds)} jobs that ran in a process as it was killed ran again: median {_seconds(seconds, median)}, "
        f"longest {_seconds(seconds, max)} after that"
    )
    for message, count in outcome.errors_logged.most_common(15):
        yield f"logged as errors: {count} x {message}"
    for finding in outcome.findings[:MOST]:
        yield f"FOUND: {finding}"
    if len(outcome.findings) > MOST:
        yield f"FOUND: and {len(outcome.findings) - MOST} more"
    yield "nothing lost, nothing stuck, effects exact" if not outcome.findings else "NOT as it must be"
