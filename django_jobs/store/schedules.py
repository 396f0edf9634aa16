"""The part of a store's contract that is about schedules: their declarations, and the ledger of their ticks."""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django_jobs.serialization import encode, parse_timestamp
from django_jobs.store.answers import Ticked
from django_jobs.store.part import StorePart
from django_jobs.store.rows import JOB_COLUMNS, JobRow, NewJob, NewSchedule, ScheduleRow
from django_jobs.store.unique import in_period


class FenceLost(Exception):
    """The ledger is no longer as it was read."""


class Due(NamedTuple):
    """What there is to do: the schedules that are due, or have no next tick yet, and the first that will be.

    ``now`` is the time by which that was found; None where there is no schedule.
    """

    now: dt.datetime | None
    schedules: list[ScheduleRow]


class Tick(NamedTuple):
    """What a tick at the moment ``at`` is to store: its job, with metadata as JSON, and the tick that comes next."""

    schedule: ScheduleRow
    at: dt.datetime
    following: dt.datetime
    new: NewJob
    metadata: str


class ScheduleStatements(StorePart):
    """What a store does with schedules, each method one statement (on SQLite, :meth:`tick_schedule` is two)."""

    def upsert_schedules(
        self, declared: Sequence[NewSchedule], now: dt.datetime | None = None
    ) -> list[ScheduleRow]:
        """Make and change schedules to be as declared. Returns the new and the changed ones.

        One that is new, comes back, or has other times than before, owes no tick of the time until ``now``.
        """
        rows = self._run("upsert_schedules", now, declared=encode([each._asdict() for each in declared]))
        return [ScheduleRow(*row[: len(ScheduleRow._fields)]) for row in rows]

    def remove_schedules(
        self, declared_keys: Iterable[str], now: dt.datetime | None = None
    ) -> list[ScheduleRow]:
        """Mark schedules that are not declared any more; they don't run. Returns those that were not marked yet."""
        rows = self._run("remove_schedules", now, declared_keys=encode(sorted(declared_keys)))
        return [ScheduleRow(*row) for row in rows]

    def schedules(self, key: str | None = None) -> list[ScheduleRow]:
        """All schedules in the order of their keys, or the one with that key."""
        return [ScheduleRow(*row) for row in self._run("schedules", None, key=key)]

    def due_schedules(self, now: dt.datetime | None = None) -> Due:
        """The schedules to look at now, and the time; paused and removed ones are none."""
        rows = self._run("due_schedules", now)
        moment = parse_timestamp(rows[0][-1]) if rows else None
        return Due(moment, [ScheduleRow(*row[:-1]) for row in rows])

    @abstractmethod
    def tick_schedule(self, tick: Tick, now: dt.datetime | None = None) -> Ticked | None:
        """Run a tick: insert its job and move the ledger on, together.

        None, and no job, when the schedule is no longer as it was read (another keeper was first, it was paused,
        removed or changed) or this tick, or a later one, was run before.
        """

    def advance_schedule(
        self, schedule: ScheduleRow, next_tick: dt.datetime, now: dt.datetime | None = None
    ) -> ScheduleRow | None:
        """Set the next tick without running one. None when the schedule is no longer as it was read."""
        rows = self._run("advance_schedule", now, **self._fence(schedule), following=self._time(next_tick))
        return ScheduleRow(*rows[0]) if rows else None

    def fail_schedule(self, schedule_id: int, error: str, now: dt.datetime | None = None) -> None:
        """Note why a schedule's tick could not be run; the next tick that can be clears it."""
        self._run("fail_schedule", now, id=schedule_id, error=error)

    def pause_schedule(self, key: str, pause: bool, now: dt.datetime | None = None) -> ScheduleRow | None:
        """Pause or resume a schedule. None when there is none.

        Resumed, it owes no tick of the time that it was paused.
        """
        rows = self._run("pause_schedule", now, key=key, pause=pause)
        return ScheduleRow(*rows[0][: len(ScheduleRow._fields)]) if rows else None

    def run_schedule(
        self,
        schedule_id: int,
        new: NewJob,
        metadata: str,
        tick: dt.datetime | None = None,
        now: dt.datetime | None = None,
    ) -> JobRow | None:
        """Insert a job of a schedule, outside its ledger; for a tick, if one is given.

        None when the schedule is gone, or another live job holds the new one's unique key.
        """
        moment = tick or now or dt.datetime.now(dt.UTC)
        rows = self._run("run_schedule", now, id=schedule_id, metadata=metadata, **self._new(new, moment))
        return JobRow(rows[0][: len(JOB_COLUMNS)]) if rows else None

    def _fence(self, schedule: ScheduleRow) -> dict[str, Any]:
        """What must still be as it was read."""
        return {
            "id": schedule.id,
            "read_owed_after": self._as_read(schedule.owed_after),
            "read_next_tick": self._as_read(schedule.next_tick),
        }

    def _new(self, new: NewJob, moment: dt.datetime) -> dict[str, Any]:
        """A job's columns; it is due at once. A key that holds for a period holds for the one that ``moment`` is in."""
        key, until = new.unique_key, None
        if key is not None and new.unique_for is not None:
            key, until = in_period(key, new.unique_for, moment)
        return {
            "name": new.name,
            "queue_name": new.queue_name,
            "args": new.args,
            "kwargs": new.kwargs,
            "priority": new.priority,
            "max_attempts": new.max_attempts,
            "unique_key": key,
            "key_until": self._as_read(until),
            "timeout": new.timeout,
            "tags": new.tags,
        }

    def _as_read(self, value: Any) -> Any:
        # A text as it came: somebody's SQL may have written what is no moment, or one in another form than ours.
        return self._time(value) if isinstance(value, dt.datetime) else value
