"""The job table on SQLite."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, ClassVar

from django_jobs import conf, limits
from django_jobs.serialization import Undecodable, decode, encode, parse_timestamp, timestamp_text
from django_jobs.store.base import (
    COMPLETED,
    RETRY,
    SNOOZED,
    Guarantees,
    Store,
    by_claim,
    completed_as_told,
    inserted_row,
    is_usual,
    plainly_completed,
    retried,
    started_before,
    usual_parameters,
)
from django_jobs.store.rows import (
    ID,
    JOB_COLUMNS,
    METADATA,
    UNIQUE_KEY,
    Duplicate,
    Ended,
    JobRow,
    Merged,
    NewJob,
    Outcome,
    Retried,
    ScheduleRow,
    Ticked,
    Updated,
)
from django_jobs.store.schedules import FenceLost
from django_jobs.store.sessions import OwnSession
from django_jobs.store.statements import Statement, statement
from django_jobs.store.unique import Found, in_period

_WIDTH = len(JOB_COLUMNS)

# How soon a commit of another connection is noticed (PRAGMA data_version is read this often).
WATCH_INTERVAL = 0.01


# A NewJob without keyword arguments that is not pending and has no timeout and no tags.
_USUAL = ("{}", False, None, None)

_FIRST_MOMENT = "0001-01-01 00:00:00.000000"
_LAST_MOMENT = "9999-12-31 23:59:59.999999"

# Statements that take no write lock.
_READS = frozenset(
    {
        "cancel_requests",
        "count_available",
        "count_dead",
        "count_queues",
        "count_states",
        "due_schedules",
        "failures",
        "get",
        "glance",
        "history",
        "live_workers",
        "next_due",
        "queue_history",
        "running",
        "schedules",
        "select_available",
        "select_expired",
        "select_finished",
        "select_given",
        "select_newest",
        "select_pending",
        "select_queues",
        "select_running",
        "select_scheduled",
        "unfolded_stats",
        "waiting",
        "waiting_queues",
        "with_argument",
    }
)


class _WriteLocks:
    """One lock for each file, for the write statements of this process's own connections.

    SQLite has one writer at a time, and who meets another one sleeps, for longer each time, before it looks again.
    The worker's parts would often sleep beside a free database; a lock wakes the next at once.
    """

    def __init__(self) -> None:
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def of(self, file: str) -> threading.Lock:
        """The lock of that file."""
        with self._guard:
            return self._locks.setdefault(file, threading.Lock())


_write_locks = _WriteLocks()


def rows_of(cursor: sqlite3.Cursor) -> list[tuple[Any, ...]]:
    """All rows of a statement that was executed; text that is not UTF-8 comes as an Undecodable. Of a statement that
    returns none, the number of rows it changed.

    To the end, always: a RETURNING that is not fetched to the end keeps the write lock. And by then the statement is
    carried out: to fail on the text of one row would hide a whole claim, which nobody would ever finish.
    """
    if cursor.description is None:
        return [(cursor.rowcount,)]
    rows: list[tuple[Any, ...]] = []
    try:
        rows.extend(cursor)
    except sqlite3.OperationalError as error:
        if not str(error).startswith("Could not decode"):
            raise
        # The cursor still stands at that row. Decoding in Python is slow, so only such statements pay for it.
        cursor.connection.text_factory = _tolerant
        try:
            rows.extend(cursor)
        finally:
            cursor.connection.text_factory = str
    return rows


def _tolerant(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return Undecodable(data.decode(errors="backslashreplace"))


def add_functions(connection: sqlite3.Connection) -> None:
    """Give a connection the functions of ours that statements call. Again and again does no harm."""
    connection.create_function("django_jobs_merge", 3, _merged, deterministic=True)


def _merged(metadata: str | bytes | None, patch: str, most: int) -> str | bytes | None:
    """A JSON object with each key of ``patch`` in the place of its own; as it was, if that is over ``most`` bytes.

    What is no object counts as an empty one. It raises nothing: SQLite tells an error in here as one that is worth
    trying again.
    """
    before = _object(metadata)
    try:
        changes = decode(patch)
        kept = {key: value for key, value in before.items() if key not in changes}
        merged = encode({**kept, **changes})
    except (ValueError, TypeError):
        return encode(before)
    return merged if len(merged.encode()) <= most else metadata


def _object(text: Any) -> dict[str, Any]:
    try:
        value = decode(text) if isinstance(text, str) else {}
    except ValueError:
        value = {}
    return value if isinstance(value, dict) else {}


def _holds(metadata: Any, patch: str) -> bool:
    """Whether a patch was merged into what is there now: whether it has each key of it with just that value."""
    values = _object(metadata)
    return all(key in values and encode(values[key]) == encode(value) for key, value in decode(patch).items())


class SQLiteSession(OwnSession):
    """A connection of the worker's own, to the same file."""

    def __init__(self, alias: str, timeout: float) -> None:
        super().__init__(alias, timeout)
        self._writing = _write_locks.of(str(self.wrapper.settings_dict["NAME"]))
        self._in_transaction = False

    def _open(self) -> sqlite3.Connection:
        settings = self.wrapper.settings_dict
        options = settings.get("OPTIONS", {})
        connection = sqlite3.connect(
            settings["NAME"],
            timeout=min(float(options.get("timeout", 5.0)), self.timeout),
            isolation_level=None,
            check_same_thread=False,
            uri=bool(options.get("uri", False)) or str(settings["NAME"]).startswith("file:"),
        )
        add_functions(connection)
        for pragma in str(options.get("init_command", "")).split(";"):
            if pragma.strip():
                connection.execute(pragma)
        return connection

    def _execute(
        self, connection: Any, statement: Statement, parameters: dict[str, Any]
    ) -> list[tuple[Any, ...]]:
        if statement.name in _READS or self._in_transaction:
            return rows_of(connection.execute(statement.named, parameters))
        with self._writing:
            return rows_of(connection.execute(statement.named, parameters))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        connection = self.connection
        with self._writing, self._errors:
            connection.execute("BEGIN IMMEDIATE")
            self._in_transaction = True
            try:
                yield
                connection.execute("COMMIT")
            finally:
                self._in_transaction = False
                # A statement that failed has closed the connection, and with it the transaction.
                if connection is self._connection and connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _cut(self, connection: Any) -> None:
        connection.interrupt()

    def _usable(self, connection: Any, error: BaseException) -> bool:
        try:
            return not connection.in_transaction
        except sqlite3.ProgrammingError:  # it is closed
            return False

    def file(self) -> str | None:
        """The file that holds the database, with its whole path; None where there is none."""
        connection = self.connection
        with self._errors:
            for _, name, path in connection.execute("PRAGMA database_list"):
                if name == "main":
                    return path or None
        return None

    def data_version(self) -> int:
        """A number that changes when another connection, of any process, has committed."""
        connection = self.connection
        with self._errors:
            return int(connection.execute("PRAGMA data_version").fetchone()[0])


class SQLiteStore(Store):
    """The statements on SQLite: one host, one writer at a time, the caller's clock."""

    vendor = "sqlite"

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

    # Texts of moments begin with a digit.
    _limits: ClassVar = {"first": "", "last": "~"}

    def _given(self, moment: dt.datetime | None) -> str | None:
        return None if moment is None else timestamp_text(moment)

    def _texts(self, texts: Sequence[str]) -> str:
        return json.dumps(list(texts))

    def insert(self, new: NewJob, now: dt.datetime | None = None) -> JobRow:
        if new.unique_key is not None:
            return self.insert_unique([new], now)[0]
        now = now or dt.datetime.now(dt.UTC)
        if is_usual(new):
            moment = self._time(now)
            ((id_,),) = self._run_with("insert_now", {**usual_parameters(new), "now": moment})
            return inserted_row((id_, moment, moment), new)
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
        claims = ",".join([f'"{outcome[0]}":{outcome[1]}' for outcome in outcomes])
        # Nothing to learn but whether all were stored; rows that come back one by one cost as much as the update.
        counting = statement("sqlite", "complete", returning=False)
        (changed,) = self.session.fetch(counting, {"now": self._time(now), "claims": f"{{{claims}}}"})[0]
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
            Merged(job, _holds(job.values[METADATA], texts[job.id]))
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

    def update(
        self,
        ids: Sequence[int],
        queue_name: str | None = None,
        priority: int | None = None,
        run_after: dt.datetime | None = None,
        delay: float | None = None,
        max_attempts: int | None = None,
        now: dt.datetime | None = None,
    ) -> list[Updated]:
        now = now or dt.datetime.now(dt.UTC)
        rows = self._run(
            "update",
            now,
            ids=self._ids(sorted(ids)),
            queue_name=queue_name,
            priority=priority,
            run_after=None if run_after is None and delay is None else self._due(run_after, delay, now),
            max_attempts=max_attempts,
        )
        return self._updated(rows)

    def next_due(self, now: dt.datetime | None = None) -> float | None:
        rows = self._run_with("next_due", {})
        if not rows:
            return None
        due = parse_timestamp(rows[0][0])
        assert due is not None
        return (due - (now or dt.datetime.now(dt.UTC))).total_seconds()

    def tick_schedule(
        self,
        schedule: ScheduleRow,
        tick: dt.datetime,
        next_tick: dt.datetime,
        new: NewJob,
        metadata: str,
        now: dt.datetime | None = None,
    ) -> Ticked | None:
        # Whoever comes second inserts a job too, finds that the ledger has moved on, and takes the job back.
        now = now or dt.datetime.now(dt.UTC)
        try:
            with self.session.transaction():
                job = self.run_schedule(schedule.id, new, metadata, tick, now)
                rows = self._run(
                    "tick_schedule",
                    now,
                    **self._fence(schedule),
                    tick=self._time(tick),
                    following=self._time(next_tick),
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
