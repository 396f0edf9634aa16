"""What the tests of the store are written with: the clock, the builder of rows, threads."""

import datetime as dt
import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from django.db import connection, connections

from django_jobs.models import Job
from django_jobs.store import Store
from django_jobs.store.outcomes import CANCELLED, COMPLETED, FAILED, RELEASED, RETRY, SNOOZED
from django_jobs.store.rows import JOB_COLUMNS, JobRow, NewJob, NewSchedule, Outcome, ScheduleRow
from django_jobs.store.sessions import Session
from django_jobs.store.statements import Statement

TIMEOUT = 60

KINDS = [COMPLETED, RETRY, FAILED, SNOOZED, CANCELLED, RELEASED]


class Clock:
    """The time that the test passes to the store. It moves when told to."""

    def __init__(self) -> None:
        self.now = dt.datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=dt.UTC)

    def after(self, seconds: float) -> dt.datetime:
        """The moment ``seconds`` from now (before now, if negative)."""
        return self.now + dt.timedelta(seconds=seconds)

    def advance(self, seconds: float) -> dt.datetime:
        self.now = self.after(seconds)
        return self.now


class Builder:
    """Makes rows by the store's own statements, at the clock's time."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock

    def insert(self, count: int = 1, **options: Any) -> list[JobRow]:
        """Jobs, waiting."""
        new = NewJob(**{"name": "tests.job", **options})
        return self.store.insert_many([new] * count, now=self.clock.now)

    def one(self, **options: Any) -> JobRow:
        return self.insert(**options)[0]

    def worker(self, lease: float = 30.0) -> int:
        """The id of a new worker."""
        row = self.store.register_worker("host", 1234, '["*"]', 4, "1.0", lease, now=self.clock.now)
        return row.id

    def claimed(self, worker: int, count: int = 1, **options: Any) -> list[JobRow]:
        """Jobs that ``worker`` has just claimed, in the order of their ids."""
        wanted = {job.id for job in self.insert(count, **options)}
        claimed = self.store.claim(worker, options.get("queue_name", "default"), 10_000, now=self.clock.now)
        assert {job.id for job in claimed} == wanted, "the queue held other jobs"
        return sorted(claimed, key=lambda job: job.id)

    def running(self, worker: int, **options: Any) -> JobRow:
        return self.claimed(worker, **options)[0]

    def finished(self, state: str, count: int = 1, **options: Any) -> list[JobRow]:
        """Jobs that ended in ``state`` at the clock's time."""
        ids = [job.id for job in self.insert(count, **options)]
        update(ids, state=state, finalized_at=self.clock.now)
        return self.store.get(ids)

    def schedule(self, key: str = "tests.schedule", **declared: Any) -> ScheduleRow:
        """A new schedule, or a changed one, every five minutes unless told otherwise."""
        new = NewSchedule(key, **{"name": "tests.job", "expression": "every 300 s", **declared})
        self.store.upsert_schedules([new], now=self.clock.now)
        return self.store.schedules(key)[0]

    def planned(self, next_tick: dt.datetime, key: str = "tests.schedule", **declared: Any) -> ScheduleRow:
        """A schedule whose next tick the keeper has worked out."""
        schedule = self.store.advance_schedule(self.schedule(key, **declared), next_tick, now=self.clock.now)
        assert schedule is not None
        return schedule

    def again(self, job: JobRow) -> JobRow:
        """The job as it now is."""
        return self.store.get([job.id])[0]


def outcome(job: JobRow, kind: str = COMPLETED, **more: Any) -> Outcome:
    """How the claim of ``job`` ended."""
    return Outcome(job.id, job.claims, kind, **more)


def columns(job: JobRow) -> dict[str, Any]:
    """A job's columns, decoded: alike whichever session read them."""
    return {name: getattr(job, name) for name in JOB_COLUMNS}


def update(ids: Sequence[int], **values: Any) -> None:
    """Write columns as somebody with the ORM would."""
    assert Job.objects.filter(pk__in=ids).update(**values) == len(ids)


def write(job: JobRow, column: str, text: str) -> None:
    """Write the text of a column, as somebody with a database console would."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE django_jobs_job SET {column} = %s WHERE id = %s", [text, job.id])


def error(number: int, attempt: int = 1, **more: Any) -> dict[str, Any]:
    """An entry of the column ``errors``."""
    return {
        "number": number,
        "attempt": attempt,
        "class": "ValueError",
        "message": "no",
        "traceback": "",
        **more,
    }


def errors(*numbers: int) -> str:
    return json.dumps([error(number) for number in numbers])


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """Run functions at once, each in a thread, and return what they return. The first exception is raised here."""
    barrier = threading.Barrier(len(functions))
    results: list[Any] = [None] * len(functions)
    raised: list[BaseException] = []

    def run(index: int) -> None:
        try:
            barrier.wait(TIMEOUT)
            results[index] = functions[index]()
        except BaseException as exc:
            raised.append(exc)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    if raised:
        raise raised[0]
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return results


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Look again and again until ``condition`` holds."""
    pause = threading.Event()
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, f"never came: {what}"
        pause.wait(0.005)


class Recorder(Session):
    """A session that notes each statement and its parameters, and runs them on another session."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.seen: list[tuple[Statement, dict[str, Any]]] = []

    def fetch(self, statement: Statement, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        self.seen.append((statement, parameters))
        return self.session.fetch(statement, parameters)

    def transaction(self) -> AbstractContextManager[None]:
        return self.session.transaction()

    def close(self) -> None:
        self.session.close()
