"""The job table on PostgreSQL."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, ClassVar

import psycopg

from django_jobs import conf, limits
from django_jobs.serialization import array_literal, text_array_literal
from django_jobs.store.answers import Ended, Merged, Ticked
from django_jobs.store.base import Store
from django_jobs.store.claims import alike_after, by_claim, claimed, started_before
from django_jobs.store.guarantees import Guarantees
from django_jobs.store.inserting import inserted_row, is_usual, usual_parameters, usual_row
from django_jobs.store.low_water import LowWater
from django_jobs.store.outcomes import plainly_completed
from django_jobs.store.rows import (
    ID,
    JOB_COLUMNS,
    SCHEDULE_COLUMNS,
    UNIQUE_KEY,
    Duplicate,
    JobRow,
    NewJob,
    Outcome,
    ScheduleRow,
)
from django_jobs.store.schedules import Tick
from django_jobs.store.sessions import OwnSession, Session
from django_jobs.store.unique import Found, asked_for

# Three thousand years in seconds. PostgreSQL refuses to subtract what leads out of its calendar.
_LONGEST_AGE = 1e11

_WIDTH = len(JOB_COLUMNS)


class PostgreSQLStore(Store):
    """The statements on PostgreSQL: many hosts, NOTIFY, two completion writers."""

    vendor = "postgresql"

    def __init__(self, session: Session, notify: bool = True) -> None:
        super().__init__(session, notify)
        self.low_water = LowWater()

    def guarantees(self) -> Guarantees:
        return Guarantees(
            database="PostgreSQL",
            exclusive_across_processes=True,
            exclusive_across_hosts=True,
            wakes_by="NOTIFY" if self.notify else "polling",
            wakes_within=float(conf.get("POLL_INTERVAL")),
            concurrent_completion_writes=self.completion_concurrency,
            clock="the database",
        )

    @property
    def completion_concurrency(self) -> int:
        """Two on connections of their own; one in a transaction, which runs one statement at a time."""
        return 2 if isinstance(self.session, OwnSession) else 1

    @property
    def waits_for_keys(self) -> bool:
        return True

    @property
    def outlives_client(self) -> bool:
        """A server does not look whether its client is there until it has an answer for it."""
        return True

    def _time(self, now: dt.datetime | None) -> str | None:
        # In UTC: PostgreSQL has no offsets of sixteen hours or more, nor of parts of a second, and Python has.
        return None if now is None else now.astimezone(dt.UTC).isoformat()

    def _after(self, now: dt.datetime | None, seconds: float) -> float:
        return float(seconds)

    def _before(self, now: dt.datetime | None, seconds: float) -> float:
        return min(float(seconds), _LONGEST_AGE)

    def _ids(self, ids: Iterable[int]) -> str:
        return array_literal(ids)

    _limits: ClassVar = {"first": "-infinity", "last": "infinity", "before all": "-infinity"}

    def _given(self, moment: dt.datetime | None) -> str | None:
        return self._time(moment)

    def _texts(self, texts: Sequence[str]) -> str:
        return text_array_literal(texts)

    def insert(self, new: NewJob, now: dt.datetime | None = None) -> JobRow:
        if new.unique_key is not None:
            return self.insert_unique([new], now)[0]
        if now is None and is_usual(new):
            rows = self._run_with("insert_now", usual_parameters(new, notify=self.notify))
            return usual_row(rows[0][0], rows[0][1], new)
        return JobRow(self._run("insert", now, **self._one(new))[0][:_WIDTH])

    def claim(
        self, worker_id: int, queue_name: str, limit: int, now: dt.datetime | None = None, epoch: int = 0
    ) -> list[JobRow]:
        water = self.low_water
        began = time.monotonic()
        if parts := water.parts(queue_name):
            highest, lowest, moments, ids = zip(*parts, strict=True)
            rows = self._run(
                "claim_on",
                now,
                worker_id=worker_id,
                queue_name=queue_name,
                limit=limit,
                epoch=epoch,
                highest=array_literal(highest),
                lowest=array_literal(lowest),
                moments=text_array_literal(moments),
                ids=array_literal(ids),
            )
            jobs = claimed(rows, alike_after(worker_id, queue_name))
            water.went_on(queue_name, time.monotonic() - began, jobs, len(jobs) == limit)
            if jobs or self.claims_again:
                return jobs
            # What made somebody look may lie before the marks.
            began = time.monotonic()
        rows = self._run("claim", now, worker_id=worker_id, queue_name=queue_name, limit=limit, epoch=epoch)
        jobs = claimed(rows, alike_after(worker_id, queue_name))
        water.began(queue_name, time.monotonic() - began, jobs)
        return jobs

    def seconds_until_claim(self, queue_name: str) -> float | None:
        return self.low_water.seconds_until_beginning(queue_name)

    def insert_many(self, new: Sequence[NewJob], now: dt.datetime | None = None) -> list[JobRow]:
        if not new:
            return []
        if not all(job[11] is None for job in new):  # a unique key
            return self.insert_unique(new, now)
        rows = self._run("insert_many", now, **self._many(new))
        rows.sort()
        return [inserted_row(row, job) for row, job in zip(rows, new, strict=True)]

    def _insert_unique(self, new: Sequence[NewJob], now: dt.datetime | None) -> Sequence[Found | None]:
        if len(new) == 1 and new[0].unique_key is not None:
            only = new[0]
            keys: dict[str, Any] = {"unique_key": only.unique_key, "unique_for": only.unique_for}
            rows = self._run("insert_unique", now, **self._one(only), **keys)
            return [_found(rows[0])] if rows else [None]
        rows = self._run(
            "insert_many_unique",
            now,
            **self._many(new),
            unique_keys=text_array_literal([job.unique_key for job in new]),
            unique_for=_sparse([job.unique_for for job in new], array_literal),
        )
        inserted = sorted(row[:5] for row in rows if row[0] is not None)
        plain = (row for row in inserted if row[3] is None)
        taken = {row[3]: row for row in inserted if row[3] is not None}
        held = {row[5 + UNIQUE_KEY]: row[5:] for row in rows if row[0] is None}
        periods = {asked_for(key): key for key in (*held, *taken)}
        found: list[Found | None] = []
        for job in new:
            if job.unique_key is None:
                found.append(Found(inserted_row(next(plain), job)))
                continue
            key = job.unique_key if job.unique_for is None else periods.get((job.unique_key, job.unique_for))
            if key in taken:
                found.append(Found(inserted_row(taken[key], job, key, taken[key][4])))
            else:
                found.append(_found(held[key]) if key in held else None)
        return found

    def replace(self, new: Mapping[int, NewJob], now: dt.datetime | None = None) -> list[JobRow]:
        ids = sorted(new)
        jobs = [new[id_] for id_ in ids]
        rows = self._run(
            "replace",
            now,
            ids=array_literal(ids),
            args=text_array_literal([job.args for job in jobs]),
            kwargs=text_array_literal([job.kwargs for job in jobs]),
            run_after=text_array_literal([self._time(job.run_after) for job in jobs]),
            delays=array_literal([job.delay for job in jobs]),
        )
        return self._jobs(rows)

    def _one(self, new: NewJob) -> dict[str, Any]:
        return {
            "name": new.name,
            "queue_name": new.queue_name,
            "priority": new.priority,
            "max_attempts": new.max_attempts,
            "args": new.args,
            "kwargs": new.kwargs,
            "run_after": self._time(new.run_after),
            "delay": new.delay,
            "pending": new.pending,
            "timeout": new.timeout,
            "tags": new.tags,
            "metadata": new.metadata,
        }

    def _many(self, new: Sequence[NewJob]) -> dict[str, Any]:
        shapes: dict[tuple[Any, ...], int] = {}
        numbers = [shapes.setdefault(job.shape, len(shapes) + 1) for job in new]
        names, queues, priorities, attempts, times, delays, pending, timeouts, tags, metadata = zip(
            *shapes, strict=True
        )
        return {
            "names": text_array_literal(names),
            "queue_names": text_array_literal(queues),
            "priorities": array_literal(priorities),
            "max_attempts": array_literal(attempts),
            "run_after": text_array_literal([self._time(time) for time in times]),
            "delays": array_literal(delays),
            "pending": array_literal(pending),
            "timeouts": array_literal(timeouts),
            "tags": text_array_literal(tags),
            "metadata": _sparse(metadata, text_array_literal),
            "hints": text_array_literal(self._hints(shapes)),
            "args": text_array_literal([job.args for job in new]),
            "kwargs": "{}"
            if all(job.kwargs == "{}" for job in new)
            else text_array_literal([job.kwargs for job in new]),
            "shape": "{}" if len(shapes) == 1 else array_literal(numbers),
        }

    def _hints(self, shapes: Iterable[tuple[Any, ...]]) -> set[str]:
        if not self.notify:
            return set()
        hints = set()
        for _, queue, _, _, run_after, delay, pending, *_ in shapes:
            if pending:
                continue
            # Whether a given moment has come, only the database's clock knows: both who waits for jobs and who waits
            # for time are told.
            if run_after is not None or delay is None or delay <= 0:
                hints.add(f"+{queue}")
            if run_after is not None or (delay is not None and delay > 0):
                hints.add("@")
        return hints

    def finish(
        self, outcomes: Sequence[Outcome], now: dt.datetime | None = None, whole_rows: bool = False
    ) -> list[Ended]:
        if not outcomes:
            return []
        if not whole_rows and plainly_completed(outcomes):
            ids, claims, *_ = zip(*sorted(outcomes, key=_by_id), strict=True)
            rows = self._run("complete", now, ids=array_literal(ids), claims=array_literal(claims))
            return self._ended(outcomes, rows, whole_rows)
        rows = self._run_with("finish", self._outcomes(sorted(outcomes, key=_by_id), now), whole_rows)
        return self._ended(outcomes, rows, whole_rows)

    def finish_and_delete(
        self,
        outcomes: Sequence[Outcome],
        unkept: Mapping[int, Iterable[str]],
        now: dt.datetime | None = None,
        whole_rows: bool = False,
    ) -> list[Ended]:
        if not outcomes:
            return []
        ordered = sorted(outcomes, key=_by_id)
        states = text_array_literal([",".join(unkept.get(outcome.id, ())) for outcome in ordered])
        parameters = {**self._outcomes(ordered, now), "unkept": states}
        return self._ended(outcomes, self._run_with("finish_and_delete", parameters, whole_rows), whole_rows)

    def _outcomes(self, ordered: Sequence[Outcome], now: dt.datetime | None) -> dict[str, Any]:
        ids, claims, kinds, delays, classes, errors, results = zip(*ordered, strict=True)
        return {
            "now": self._time(now),
            "notify": self.notify,
            "ids": array_literal(ids),
            "claims": array_literal(claims),
            "kinds": array_literal(kinds),
            "delays": _sparse(delays, array_literal),
            "error_classes": _sparse(classes, text_array_literal),
            "errors": _sparse(errors, text_array_literal),
            "results": _sparse(results, text_array_literal),
        }

    def is_deadlock(self, error: Exception) -> bool:
        return isinstance(error.__cause__, psycopg.errors.DeadlockDetected)

    def is_lock_timeout(self, error: Exception) -> bool:
        return isinstance(error.__cause__, psycopg.errors.LockNotAvailable)

    def locked(self, ids: Sequence[int]) -> frozenset[int]:
        return frozenset(row[0] for row in self._run_with("locked", {"ids": array_literal(sorted(ids))}))

    def merge_metadata(
        self,
        patches: Sequence[tuple[int, int, str]],
        most: int = limits.METADATA_BYTES,
        now: dt.datetime | None = None,
    ) -> list[Merged]:
        if not patches:
            return []
        ids, claims, texts = zip(*sorted(patches), strict=True)
        rows = self._run(
            "merge_metadata",
            now,
            ids=array_literal(ids),
            claims=array_literal(claims),
            patches=text_array_literal(texts),
            most=most,
        )
        return [Merged(JobRow(row[:_WIDTH]), row[_WIDTH]) for row in sorted(rows, key=itemgetter(ID))]

    def release(self, jobs: Sequence[JobRow], now: dt.datetime | None = None) -> list[JobRow]:
        jobs = by_claim(jobs)
        rows = self._run(
            "release",
            now,
            ids=array_literal([job.id for job in jobs]),
            claims=array_literal([job.claims for job in jobs]),
            attempted_at=text_array_literal(
                [None if (text := started_before(job)) is None else f"{text}+00" for job in jobs]
            ),
        )
        return self._jobs(rows)

    def _when(
        self, run_after: dt.datetime | None, delay: float | None, now: dt.datetime | None
    ) -> dict[str, Any]:
        return {"run_after": self._time(run_after), "delay": delay}

    def next_due(self, now: dt.datetime | None = None) -> float | None:
        rows = self._run("next_due", now)
        return float(rows[0][0]) if rows and rows[0][0] is not None else None

    def tick_schedule(self, tick: Tick, now: dt.datetime | None = None) -> Ticked | None:
        rows = self._run(
            "tick_schedule",
            now,
            **self._fence(tick.schedule),
            **self._new(tick.new, tick.at),
            metadata=tick.metadata,
            tick=self._time(tick.at),
            following=self._time(tick.following),
        )
        if not rows:
            return None
        width = len(SCHEDULE_COLUMNS)
        job = JobRow(rows[0][width : width + _WIDTH])
        return Ticked(ScheduleRow(*rows[0][:width]), None if job.values[ID] is None else job)


def _found(row: tuple[Any, ...]) -> Found:
    touched = row[_WIDTH]
    if touched is None:
        return Found(JobRow(row[:_WIDTH]))
    return Found(Duplicate(row[:_WIDTH]), None if touched == "0" else touched)


def _by_id(outcome: Outcome) -> int:
    return outcome[0]


def _sparse(values: Sequence[Any], literal: Any) -> str:
    """An array, or an empty one where all are null: unnest fills it up, and nothing is sent or parsed."""
    return literal(values) if any(value is not None for value in values) else "{}"
