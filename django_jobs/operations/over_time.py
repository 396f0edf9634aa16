"""What became of jobs, over time: from the statistics, which outlive the jobs."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import Any, NamedTuple

from django.utils import timezone

from django_jobs import limits
from django_jobs.databases import jobs_database
from django_jobs.operations.counting import MOST, Count
from django_jobs.operations.filters import InvalidFilter, checked_moment, checked_text
from django_jobs.serialization import shown
from django_jobs.states import Counted
from django_jobs.store import django_store
from django_jobs.store.statistics import FOLDS, HistoryRow

MOST_POINTS = 2000
MOST_GROUPS = 500
# The outcomes of attempts that ran to an end of their own; of the others it says little how long they took.
_TIMED = (Counted.COMPLETED, Counted.FAILED, Counted.RETRIED)


class Point(NamedTuple):
    """What became of attempts within one step of time.

    ``failed`` counts dead letters, ``retried`` attempts that failed and are repeated. The times are seconds, over
    attempts that completed or failed: how long they ran, and how long they had been due when they were claimed; None
    where there were none.
    """

    start: dt.datetime
    completed: int = 0
    failed: int = 0
    retried: int = 0
    snoozed: int = 0
    cancelled: int = 0
    run_mean: float | None = None
    run_max: float | None = None
    wait_mean: float | None = None
    wait_max: float | None = None


class Failures(NamedTuple):
    """The dead letters of one job name and one error class.

    :param hour: how many within the last hour; ``day`` and ``week`` likewise.
    :param first_seen: the minute of the first that is known, retention of jobs or not; ``last_seen`` of the last.
    :param there: how many are among the 10,000 newest dead letters in the table of jobs, to be retried or purged.
    """

    name: str
    error_class: str
    hour: int
    day: int
    week: int
    first_seen: dt.datetime
    last_seen: dt.datetime
    there: Count


def history(
    since: dt.datetime | dt.timedelta,
    until: dt.datetime | None = None,
    step: dt.timedelta | int = 60,
    *,
    queue_name: str | None = None,
    name: str | None = None,
    using: str | None = None,
) -> list[Point]:
    """What became of attempts over time: a point for each step, also where nothing happened, the oldest first.

    It counts what workers have written down, at most a heartbeat ago, and does not look at jobs; so it goes back as far
    as ``DJANGO_JOBS["STATISTICS_RETENTION"]``. After three hours statistics are kept by ten minutes, after two days by
    the hour: for what is older take such steps, or multiples.

    :param since: a moment, or a timedelta before ``until``. Points begin at multiples of the step (counted from 1970 in
        UTC): the first one is that in which ``since`` lies.
    :param until: a moment; now by default.
    :param step: seconds, or a timedelta; whole minutes.
    :param queue_name: of this queue alone.
    :param name: of this job function alone.
    :raises InvalidFilter: for a value that can't be meant, and for more than 2000 points.
    """
    now = timezone.now()
    end = checked_moment(until, "until") or now
    begin = end - since if isinstance(since, dt.timedelta) else checked_moment(since, "since")
    if begin is None:
        raise InvalidFilter("since is None; it must be a datetime, or a timedelta.")
    seconds = _checked_step(step)
    checked_text(queue_name, "queue_name", limits.QUEUE_LENGTH)
    checked_text(name, "name", limits.NAME_LENGTH)
    first = int(begin.timestamp() // seconds)
    last = int(-(-end.timestamp() // seconds))
    if last <= first:
        raise InvalidFilter(f"since is {begin!r}; it must lie before until, which is {end!r}.")
    if last - first > MOST_POINTS:
        raise InvalidFilter(
            f"From {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} there are {last - first} steps of {seconds} s; "
            f"at most {MOST_POINTS} are allowed. Take a longer step."
        )
    for fold in FOLDS:
        if seconds % fold.step and (now - begin).total_seconds() > fold.age + 60:
            raise InvalidFilter(
                f"step is {shown(step)}, and since is {begin:%Y-%m-%d %H:%M}: after {fold.age / 3600:.0f} hours "
                f"statistics are kept by {fold.step} seconds. Take a step of that or a multiple, or a later since."
            )
    by_step: dict[int, list[HistoryRow]] = defaultdict(list)
    store = django_store(jobs_database(using))
    for row in store.history(_at(first * seconds), _at(last * seconds), seconds, queue_name, name):
        by_step[row.step].append(row)
    return [_point(_at(number * seconds), by_step.get(number, [])) for number in range(first, last)]


def _checked_step(step: Any) -> int:
    seconds = step.total_seconds() if isinstance(step, dt.timedelta) else step
    if not isinstance(seconds, int | float) or seconds < 60 or seconds % 60:
        raise InvalidFilter(f"step is {shown(step)}; it must be whole minutes, in seconds or as a timedelta.")
    return int(seconds)


def _at(seconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def _point(start: dt.datetime, rows: list[HistoryRow]) -> Point:
    counts = {row.outcome: row.number for row in rows}
    timed = [row for row in rows if row.outcome in _TIMED]
    number = sum(row.number for row in timed)
    point = Point(start, *(counts.get(str(outcome), 0) for outcome in Counted))
    if not number:
        return point
    return point._replace(
        run_mean=sum(row.run_total for row in timed) / number,
        run_max=max(row.run_max for row in timed),
        wait_mean=sum(row.wait_total for row in timed) / number,
        wait_max=max(row.wait_max for row in timed),
    )


def failures(
    *, limit: int = MOST_GROUPS, using: str | None = None, now: dt.datetime | None = None
) -> list[Failures]:
    """Dead letters by job name and error class, those with the latest first.

    :param limit: how many groups, 500 at most.
    :param now: the moment to count back from, for tests; the database's time by default.
    """
    if not 1 <= limit <= MOST_GROUPS:
        raise InvalidFilter(f"limit is {shown(limit)}; it must be a whole number from 1 to {MOST_GROUPS}.")
    store = django_store(jobs_database(using))
    dead = {(row.name, row.error_class): row for row in store.count_dead(MOST)}
    capped = sum(row.number for row in dead.values()) == MOST
    known = store.failures(MOST_GROUPS, now)
    groups = []
    for row in known:
        there = dead.pop((row.name, row.error_class), None)
        if there is None:
            groups.append(Failures(*row, there=Count(0, capped)))
        else:
            first, last = min(row.first, there.first), max(row.last, there.last)
            groups.append(Failures(*row[:5], first, last, Count(there.number, capped)))
    if len(known) < MOST_GROUPS:
        # Of those nothing was counted: they were written by a site's own SQL, or before there were statistics.
        groups += [
            Failures(row.name, row.error_class, 0, 0, 0, row.first, row.last, Count(row.number, capped))
            for row in dead.values()
        ]
    groups.sort(key=lambda group: group.last_seen, reverse=True)
    return groups[:limit]
