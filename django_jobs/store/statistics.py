"""The part of a store's contract that is about numbers: counts over history, and counts of what is there now.

Counts over history come from the table of statistics; those of what is there are read off an index, up to a bound.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db import DatabaseError

from django_jobs import conf
from django_jobs.serialization import clamped_timestamp, encode
from django_jobs.states import FINISHED
from django_jobs.store.part import StorePart
from django_jobs.store.rows import JobRow
from django_jobs.stored_values import real, text, whole

logger = logging.getLogger("django_jobs.worker")


class Fold(NamedTuple):
    """Statistics of more than ``age`` seconds ago are kept by spans of ``step`` seconds."""

    age: float
    step: int


# A chart of a day, or of a week, then has as many rows to add up as one of an hour.
FOLDS = (Fold(3 * 3600.0, 600), Fold(48 * 3600.0, 3600))


class StatRow(NamedTuple):
    """What became of some jobs of one kind. ``run`` is the time an attempt took, ``wait`` from when it was due until it
    was claimed; in seconds."""

    queue_name: str
    name: str
    outcome: str  # a word of states.Counted
    error_class: str = ""
    number: int = 0
    run_total: float = 0.0
    run_max: float = 0.0
    wait_total: float = 0.0
    wait_max: float = 0.0


class HistoryRow(NamedTuple):
    """What became of jobs in one step of time; ``step`` counts from 1970."""

    step: int
    outcome: str
    number: int
    run_total: float
    run_max: float
    wait_total: float
    wait_max: float


class FailureRow(NamedTuple):
    """Dead letters of one name and error class; ``first`` and ``last`` are the minutes of the first and the last."""

    name: str
    error_class: str
    hour: int
    day: int
    week: int
    first: dt.datetime
    last: dt.datetime


class DeadRow(NamedTuple):
    """Dead letters of one name and error class that are in the table of jobs."""

    name: str
    error_class: str
    number: int
    first: dt.datetime
    last: dt.datetime


class StateCount(NamedTuple):
    """How many jobs are in a state, as far as they were looked at."""

    state: str
    number: int


class QueueStateCount(NamedTuple):
    """How many jobs of a queue are in a state, as far as they were looked at."""

    queue_name: str
    state: str
    number: int


class Waiting(NamedTuple):
    """The available jobs of one queue and priority: when the longest due of them was due, and the time now."""

    queue_name: str
    priority: int
    due: dt.datetime
    now: dt.datetime


class LiveWorker(NamedTuple):
    """A worker that has neither stopped nor been lost; ``now`` is the database's time."""

    now: dt.datetime
    id: int
    host: str
    pid: int
    queues: str
    concurrency: int
    running: int
    version: str
    skew: float
    started_at: dt.datetime
    heartbeat_at: dt.datetime
    expires_at: dt.datetime
    quiet_requested_at: dt.datetime | None
    stop_requested_at: dt.datetime | None


class StatisticsStatements(StorePart):
    """What a store does with statistics, each method one statement (on SQLite, :meth:`fold_stats` is two)."""

    # -- over history ----------------------------------------------------------------------------------------------

    def record_stats(self, rows: Sequence[StatRow], now: dt.datetime | None = None) -> None:
        """Add to the statistics of this minute. The rows are of different kinds."""
        if rows:
            self._run("record_stats", now, rows=encode([row._asdict() for row in rows]))

    def history(
        self,
        since: dt.datetime,
        until: dt.datetime,
        step: int,
        queue_name: str | None = None,
        name: str | None = None,
    ) -> list[HistoryRow]:
        """What became of jobs between two moments, by steps of ``step`` seconds and by outcome."""
        rows = self._run(
            "history",
            None,
            since=self._time(since),
            until=self._time(until),
            step=step,
            queue_name=queue_name,
            name=name,
        )
        return [HistoryRow(whole(row[0]), text(row[1]), whole(row[2]), *map(real, row[3:])) for row in rows]

    def queue_history(self, seconds: float, now: dt.datetime | None = None) -> list[tuple[str, str, int]]:
        """What became of the jobs of each queue within the last ``seconds``: queue, outcome, how many."""
        rows = self._run("queue_history", now, since=self._before(now, seconds))
        return [(text(queue_name), text(outcome), whole(number)) for queue_name, outcome, number in rows]

    def failures(self, most: int, now: dt.datetime | None = None) -> list[FailureRow]:
        """Dead letters since the statistics begin, by name and error class, those of the latest first."""
        rows = self._run(
            "failures",
            now,
            hour=self._before(now, 3600.0),
            day=self._before(now, 86_400.0),
            week=self._before(now, 7 * 86_400.0),
            most=most,
        )
        return [
            FailureRow(
                text(name),
                text(error_class),
                whole(hour),
                whole(day),
                whole(week),
                _moment(first),
                _moment(last),
            )
            for name, error_class, hour, day, week, first, last in rows
        ]

    def purge_stats(self, older_than: float, limit: int = 1000, now: dt.datetime | None = None) -> int:
        """Delete statistics of more than ``older_than`` seconds ago; how many rows."""
        parameters = {
            "after": self._time(_FIRST),
            "older_than": self._before(now, older_than),
            "limit": limit,
        }
        return len(self._run("purge_stats", now, **parameters))

    def unfolded_stats(
        self, fold: Fold, after: dt.datetime | None = None, now: dt.datetime | None = None
    ) -> list[dt.datetime]:
        """The beginnings of the spans that are old enough for a fold, and are still kept by less.

        :param after: spans before this moment are known to be folded.
        """
        rows = self._run(
            "unfolded_stats",
            now,
            step=fold.step,
            older_than=self._before(now, fold.age),
            after=self._time(after or _FIRST),
        )
        return [_moment(row[0]) for row in rows]

    def fold_stats(self, start: dt.datetime, step: int) -> int:
        """Add up a span of ``step`` seconds, in one row for each kind; how many rows were folded into others."""
        until = start + dt.timedelta(seconds=step)
        return int(self._run("fold_stats", None, start=self._time(start), until=self._time(until))[0][0])

    # -- now -------------------------------------------------------------------------------------------------------

    def count_states(self, most: int) -> list[StateCount]:
        """How many jobs are in each state, ``most`` at most."""
        return [StateCount(*row) for row in self._run("count_states", None, most=most)]

    def count_queues(self, most: int, ended: bool = True) -> list[QueueStateCount]:
        """How many jobs of each queue there are among the first ``most`` of each state but available: of finished ones
        those that ended last, of scheduled ones those due first.

        :param ended: whether completed and cancelled ones are counted, too.
        """
        rows = self._run("count_queues", None, most=most, most_ended=most if ended else 0)
        return [QueueStateCount(*row) for row in rows]

    def count_available(self, queue_names: Iterable[str], most: int) -> dict[str, int]:
        """How many available jobs each of the queues has, ``most`` at most."""
        names = self._texts(sorted(set(queue_names)))
        return dict(self._run("count_available", None, queue_names=names, most=most))

    def waiting(self, most: int, now: dt.datetime | None = None) -> list[Waiting]:
        """The queues and priorities that have available jobs, and since when: one index descent each."""
        rows = self._run("waiting", now, most=most)
        return [Waiting(*row[:2], *map(_moment, row[2:])) for row in rows]

    def count_dead(self, most: int) -> list[DeadRow]:
        """The dead letters in the table of jobs, the ``most`` that ended last, by name and error class."""
        rows = self._run("count_dead", None, most=most)
        return [DeadRow(*row[:3], *map(_moment, row[3:])) for row in rows]

    def live_workers(self, now: dt.datetime | None = None) -> tuple[dt.datetime, list[LiveWorker]]:
        """The database's time, and the workers that have neither stopped nor been lost."""
        rows = self._run("live_workers", now)
        return _moment(rows[0][0]), [_live_worker(*row) for row in rows if row[1] is not None]


def _live_worker(
    now: Any, id_: int, host: Any, pid: Any, queues: Any, concurrency: Any, running: Any, version: Any, skew: Any,
    started: Any, heartbeat: Any, expires: Any, quiet: Any, stop: Any,
) -> LiveWorker:  # fmt: skip
    return LiveWorker(
        _moment(now), id_, text(host), whole(pid), queues, whole(concurrency), whole(running), text(version),
        real(skew), _moment(started), _moment(heartbeat), _moment(expires), clamped_timestamp(quiet),
        clamped_timestamp(stop),
    )  # fmt: skip


_FIRST = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _moment(value: Any) -> dt.datetime:
    return clamped_timestamp(value) or _FIRST


def record_ended(store: StatisticsStatements, jobs: Iterable[JobRow], outcome: str | None = None) -> None:
    """Count jobs that ended without a worker to tell of it: cancelled while they waited, or rescued. How long they ran,
    nobody knows.

    :param outcome: what became of them; by default what their state says.

    What fails is logged: what has happened stands, counted or not.
    """
    if conf.statistics_retention() == 0:
        return
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for job in jobs:
        word = outcome or (job.state if job.state in FINISHED else "retried")
        error_class = job.error_class if word in ("failed", "retried") else None
        counts[job.queue_name, job.name, word, error_class or ""] += 1
    try:
        store.record_stats([StatRow(*key, count) for key, count in counts.items()])
    except (DatabaseError, OSError) as error:
        logger.warning("The statistics can't be written: %s", error)
