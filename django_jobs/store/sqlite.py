"""The job table on SQLite."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, ClassVar

from django_jobs import conf, limits
from django_jobs.serialization import decode, stored_timestamp, timestamp_text
from django_jobs.store.answers import Ended, Merged, Retried, Ticked, retried
from django_jobs.store.base import Store
from django_jobs.store.claims import alike_after, by_claim, claimed, started_before
from django_jobs.store.guarantees import Guarantees
from django_jobs.store.inserting import inserted_alike, inserted_row, is_usual, usual_parameters, usual_row
from django_jobs.store.outcomes import COMPLETED, RETRY, SNOOZED, completed_as_told, plainly_completed
from django_jobs.store.packing import NOTHING, is_empty, is_packed, unpacked
from django_jobs.store.rows import (
    ID,
    JOB_COLUMNS,
    METADATA,
    UNIQUE_KEY,
    Duplicate,
    JobRow,
    NewJob,
    Outcome,
    ScheduleRow,
)
from django_jobs.store.schedules import FenceLost, Tick
from django_jobs.store.sessions import Session
from django_jobs.store.sqlite_functions import holds
from django_jobs.store.sqlite_session import WATCH_INTERVAL
from django_jobs.store.statements import statement
from django_jobs.store.unique import Found, in_period

_WIDTH = len(JOB_COLUMNS)

# A NewJob without keyword arguments that is not pending and has no timeout and no tags.
_USUAL = ("{}", False, None, None)

# Where one job in so many has what comes packed, a claim brings all columns as they are, which costs less then.
MANY = 10
MOST_QUEUES = 1000

_FIRST_MOMENT = "0001-01-01 00:00:00.000000"
_LAST_MOMENT = "9999-12-31 23:59:59.999999"


class SQLiteStore(Store):
    """The statements on SQLite: one host, one writer at a time, the caller's clock."""

    vendor = "sqlite"

    def __init__(self, session: Session, notify: bool = True) -> None:
        super().__init__(session, notify)
        self._varied: set[str] = (
            set()
        )  # queues of which many jobs had something packed when last claimed from

    def guarantees(self) -> Guarantees:
        return Guarantees(
            database="SQLite",
            exclusive_across_processes=True,
            exclusive_across_hosts=False,
            wakes_by=f"watching the file, every {WATCH_INTERVAL * 1000:g} ms while it is written",
            wakes_within=float(conf.get("POLL_INTERVAL")),
            concurrent_completion_writes=self.completion_concurrency,
            clock="this host",
        )

    @property
    def probe_before_claim(self) -> bool:
        """A claim takes the write lock, and wake-ups come with every commit of the site."""
        return True

    def _time(self, now: dt.datetime | None) -> str:
        return timestamp_text(now or dt.datetime.now(dt.UTC))

    def _after(self, now: dt.datetime | None, seconds: float) -> str:
        return self._shifted(now, seconds)

    def _before(self, now: dt.datetime | None, seconds: float) -> str:
        return self._shifted(now, -seconds)

    def _shifted(self, now: dt.datetime | None, seconds: float) -> str:
        moment = now or dt.datetime.now(dt.UTC)
        try:
            return timestamp_text(moment + dt.timedelta(seconds=seconds))
        except OverflowError:  # longer than the calendar
            return _LAST_MOMENT if seconds > 0 else _FIRST_MOMENT

    def _ids(self, ids: Iterable[int]) -> str:
        return json.dumps(list(ids))

    # Texts of moments begin with a digit. Numbers, as somebody's SQL may have written, come before all texts.
    _limits: ClassVar = {"first": "", "last": "~", "before all": float("-inf")}

    def _given(self, moment: dt.datetime | None) -> str | None:
        return None if moment is None else timestamp_text(moment)

    def _texts(self, texts: Sequence[str]) -> str:
        return json.dumps(list(texts))

    def _names(self, paused: str) -> list[str]:
        return [bytes.fromhex(name).decode(errors="backslashreplace") for name in decode(paused)]

    def insert(self, new: NewJob, now: dt.datetime | None = None) -> JobRow:
        if new.unique_key is not None:
            return self.insert_unique([new], now)[0]
        now = now or dt.datetime.now(dt.UTC)
        if is_usual(new):
            moment = self._time(now)
            ((id_,),) = self._run_with("insert_now", usual_parameters(new, now=moment))
            return usual_row(id_, moment, new)
        return JobRow(self._run("insert", now, **self._one(new, now))[0])

    def _one(self, new: NewJob, now: dt.datetime) -> dict[str, Any]:
        return {
            "name": new.name,
            "queue_name": new.queue_name,
            "priority": new.priority,
            "max_attempts": new.max_attempts,
            "args": new.args,
            "kwargs": new.kwargs,
            "run_after": self._due(new.run_after, new.delay, now),
            "pending": new.pending,
            "timeout": new.timeout,
            "tags": new.tags,
            "metadata": new.metadata,
        }

    def claim(
        self, worker_id: int, queue_name: str, limit: int, now: dt.datetime | None = None, epoch: int = 0
    ) -> list[JobRow]:
        claim = {
            "now": self._time(now),
            "worker_id": worker_id,
            "queue_name": queue_name,
            "limit": limit,
            "epoch": epoch,
        }
        alike = (claim["now"], *alike_after(worker_id, queue_name))
        if queue_name in self._varied:
            rows = self._run_with("claim", claim)
            if rows and is_empty(rows[0]) and is_empty(rows[-1]):
                self._varied.discard(queue_name)
            return claimed(rows, alike)
        rows = self._run_with("claim", claim, whole_rows=False)
        if not any(map(is_packed, rows)):
            return claimed(rows, NOTHING + alike)
        if sum(map(is_packed, rows)) > len(rows) // MANY:
            if len(self._varied) >= MOST_QUEUES:
                self._varied.clear()
            self._varied.add(queue_name)
        return claimed([*map(unpacked, rows)], alike)

    def insert_many(self, new: Sequence[NewJob], now: dt.datetime | None = None) -> list[JobRow]:
        if not new:
            return []
        if not all(job[11] is None for job in new):  # a unique key
            return self.insert_unique(new, now)
        now = now or dt.datetime.now(dt.UTC)
        due = self._all_due(new, now)
        first = new[0]
        metadata = first[14]
        alike = all(job[:6] == first[:6] and job[7:11] == _USUAL and job[14] == metadata for job in new)
        texts: list[Any]
        if alike:
            texts = [job[6] for job in new]
        else:
            texts = [(*job[:4], due[job[4], job[5]], *job[6:11], job[14]) for job in new]
        rows = self._run(
            "insert_many",
            now,
            alike=alike,
            name=first.name,
            queue_name=first.queue_name,
            priority=first.priority,
            max_attempts=first.max_attempts,
            run_after=due[first.run_after, first.delay],
            metadata=metadata,
            rows=json.dumps(texts, ensure_ascii=False),
        )
        rows.sort()
        created_at = self._time(now)
        if alike:
            return inserted_alike(rows, new, (due[first.run_after, first.delay], created_at))
        return [
            inserted_row((row[0], due[job[4], job[5]], created_at), job)
            for row, job in zip(rows, new, strict=True)
        ]

    def _insert_unique(self, new: Sequence[NewJob], now: dt.datetime | None) -> Sequence[Found | None]:
        now = now or dt.datetime.now(dt.UTC)
        keys = [_key(job, now) for job in new]
        if len(new) == 1 and new[0].unique_key is not None:
            key, until = keys[0]
            rows = self._run("insert_unique", now, **self._one(new[0], now), unique_key=key, key_until=until)
            return [_found(rows[0])]
        due = self._all_due(new, now)
        rows = self._run(
            "insert_many_unique",
            now,
            rows=json.dumps(
                [
                    (*job[:4], due[job[4], job[5]], *job[6:11], *key, job[14])
                    for job, key in zip(new, keys, strict=True)
                ],
                ensure_ascii=False,
            ),
        )
        rows.sort(key=itemgetter(ID))
        plain = (row for row in rows if row[UNIQUE_KEY] is None)
        keyed = {row[UNIQUE_KEY]: row for row in rows}
        return [_found(next(plain) if key is None else keyed[key]) for key, _ in keys]

    def replace(self, new: Mapping[int, NewJob], now: dt.datetime | None = None) -> list[JobRow]:
        now = now or dt.datetime.now(dt.UTC)
        rows = [
            (id_, job.args, job.kwargs, self._due(job.run_after, job.delay, now)) for id_, job in new.items()
        ]
        return self._jobs(self._run("replace", now, rows=json.dumps(rows, ensure_ascii=False)))

    def _all_due(self, new: Sequence[NewJob], now: dt.datetime) -> dict[tuple[Any, Any], str]:
        """When they may run, by run_after and delay, of which many jobs of a call have the same."""
        return {when: self._due(*when, now) for when in {(job.run_after, job.delay) for job in new}}

    def _due(self, run_after: dt.datetime | None, delay: float | None, now: dt.datetime) -> str:
        if run_after is not None:
            return timestamp_text(run_after)
        return self._after(now, delay or 0.0)

    def finish(
        self, outcomes: Sequence[Outcome], now: dt.datetime | None = None, whole_rows: bool = False
    ) -> list[Ended]:
        if not outcomes:
            return []
        now = now or dt.datetime.now(dt.UTC)
        if not whole_rows and plainly_completed(outcomes):
            return self._complete(outcomes, now)
        texts = json.dumps([self._outcome(outcome, now) for outcome in outcomes], ensure_ascii=False)
        rows = self._run_with("finish", {"now": self._time(now), "rows": texts}, whole_rows)
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
        now = now or dt.datetime.now(dt.UTC)
        with self.session.transaction():
            ended = self.finish(outcomes, now, whole_rows)
            gone = [item.id for item in ended if item.stored and item.state in unkept.get(item.id, ())]
            if gone:
                self._run("finish_and_delete", now, ids=self._ids(gone))
        return ended

    def _complete(self, outcomes: Sequence[Outcome], now: dt.datetime) -> list[Ended]:
        parameters: dict[str, Any] = {"now": self._time(now)}
        alike = len({outcome[1] for outcome in outcomes}) == 1
        if alike:
            parameters["claims"] = outcomes[0][1]
            parameters["ids"] = self._ids(outcome[0] for outcome in outcomes)
        else:
            claims = ",".join([f'"{outcome[0]}":{outcome[1]}' for outcome in outcomes])
            parameters["claims"] = f"{{{claims}}}"
        ending = "claims_alike" if alike else "claims_apart"
        # Nothing to learn but whether all were stored; rows that come back one by one cost as much as the update.
        counting = statement("sqlite", "complete", returning=False, ending=ending)
        (changed,) = self.session.fetch(counting, parameters)[0]
        if changed == len(outcomes):
            return completed_as_told(outcomes)
        return self._look_again(outcomes, now) if changed else self._ended(outcomes, [], False)

    def _look_again(self, outcomes: Sequence[Outcome], now: dt.datetime) -> list[Ended]:
        """What became of completions of which some were not stored; those that were now have the time ``now``."""
        claims = {outcome[0]: outcome[1] for outcome in outcomes}
        ended = []
        for job in self.get(claims):
            stored = job.state == COMPLETED and job.finalized_at == now and job.claims == claims[job.id]
            ended.append(Ended(job.id, job.state, stored, None if stored else job))
        return ended

    def _outcome(self, outcome: Outcome, now: dt.datetime) -> tuple[Any, ...]:
        id_, claims, kind, delay, error_class, errors, result = outcome
        run_after = self._after(now, delay or 0.0) if kind in (RETRY, SNOOZED) else None
        return (id_, claims, kind, run_after, error_class, errors, result)

    def merge_metadata(
        self,
        patches: Sequence[tuple[int, int, str]],
        most: int = limits.METADATA_BYTES,
        now: dt.datetime | None = None,
    ) -> list[Merged]:
        if not patches:
            return []
        texts = {id_: patch for id_, _, patch in patches}
        rows = json.dumps(patches, ensure_ascii=False)
        # RETURNING sees no other table: that a patch was merged is read off what the job has now.
        return [
            Merged(job, holds(job.values[METADATA], texts[job.id]))
            for job in self._jobs(self._run("merge_metadata", now, rows=rows, most=most))
        ]

    def release(self, jobs: Sequence[JobRow], now: dt.datetime | None = None) -> list[JobRow]:
        claims = [(job.id, job.claims, started_before(job)) for job in by_claim(jobs)]
        return self._jobs(self._run("release", now, rows=json.dumps(claims)))

    def retry(self, ids: Sequence[int], now: dt.datetime | None = None) -> list[Retried]:
        # SQLite's RETURNING sees no other table, so that a row was retried is read off the time that it now has.
        now = now or dt.datetime.now(dt.UTC)
        jobs = self._jobs(self._run("retry", now, ids=self._ids(sorted(ids))))
        return [retried(job, job.state == "available" and job.run_after == now) for job in jobs]

    def _when(
        self, run_after: dt.datetime | None, delay: float | None, now: dt.datetime | None
    ) -> dict[str, Any]:
        if run_after is None and delay is None:
            return {"run_after": None}
        return {"run_after": self._due(run_after, delay, now or dt.datetime.now(dt.UTC))}

    def next_due(self, now: dt.datetime | None = None) -> float | None:
        rows = self._run_with("next_due", {})
        if not rows:
            return None
        due = stored_timestamp(rows[0][0])
        if (
            due is None
        ):  # no time, by somebody's SQL: as a text it may be due all the same, and then it is promoted
            return None
        return (due - (now or dt.datetime.now(dt.UTC))).total_seconds()

    def tick_schedule(self, tick: Tick, now: dt.datetime | None = None) -> Ticked | None:
        # Whoever comes second inserts a job too, finds that the ledger has moved on, and takes the job back.
        now = now or dt.datetime.now(dt.UTC)
        try:
            with self.session.transaction():
                job = self.run_schedule(tick.schedule.id, tick.new, tick.metadata, tick.at, now)
                rows = self._run(
                    "tick_schedule",
                    now,
                    **self._fence(tick.schedule),
                    tick=self._time(tick.at),
                    following=self._time(tick.following),
                    job_id=job.id if job else None,
                )
                if not rows:
                    raise FenceLost
        except FenceLost:
            return None
        return Ticked(ScheduleRow(*rows[0]), job)

    def fold_stats(self, start: dt.datetime, step: int) -> int:
        after, until = self._time(start), self._after(start, step)
        with self.session.transaction():
            self._run("fold_stats", None, start=after, until=until)
            return len(self._run("purge_stats", None, after=after, older_than=until, limit=-1))


def _key(job: NewJob, now: dt.datetime) -> tuple[str | None, str | None]:
    """A job's key, with its period if it has one, and until when it is held."""
    if job.unique_key is None or job.unique_for is None:
        return job.unique_key, None
    key, until = in_period(job.unique_key, job.unique_for, now)
    return key, timestamp_text(until)


def _found(row: tuple[Any, ...]) -> Found:
    values = row[:_WIDTH]
    return Found(JobRow(values) if row[_WIDTH] else Duplicate(values))
