"""A site that has been busy for a month: jobs of many kinds in every state, statistics, workers, schedules.

The jobs are written by the database itself: ten million of them in some minutes.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator
from typing import Any

from benchmarks.core.history import Dialect, dialect_of
from benchmarks.core.meters import Meter

MONTH = 30 * 86_400
CHUNK = 500_000  # rows of one statement
AREAS = ("mail", "orders", "payments", "search", "images", "reports", "stock", "imports")
VERBS = ("send", "sync", "check", "rebuild", "expire")
NAMES = [f"shop.{area}.{verb}" for verb, area in itertools.product(VERBS, AREAS)]
ERRORS = ("builtins.ValueError", "shop.errors.Unreachable", "django.db.utils.OperationalError")
WORKERS, EACH_RUNS, GONE = 40, 10, 60
SCHEDULES = 30
# What each state has of all jobs; all else has completed.
PARTS = {"failed": 100, "cancelled": 200, "available": 60, "scheduled": 200, "pending": 500}
TRACEBACK = r"Traceback (most recent call last):\n" + "".join(
    rf"  File \"/srv/shop/venv/lib/python3.13/site-packages/shop/client.py\", line {line}, in call\n    self.send()\n"
    for line in range(100, 115)
)


def fill_shop(meter: Meter, count: int) -> None:
    """Fill the empty tables with ``count`` jobs and all that belongs to them."""
    shop = _Shop(meter, count)
    shop.add_history()
    shop.add_present()
    add_workers()
    add_statistics(MONTH if count >= 100_000 else 3600)
    add_schedules(count)


class _Shop:
    """The statements that write jobs. ``n`` is a job's number, from 1 on."""

    def __init__(self, meter: Meter, count: int) -> None:
        self.meter = meter
        self.sql: Dialect = dialect_of(meter)
        self.running = min(WORKERS * EACH_RUNS, count // 50)
        self.sizes = {state: count // part for state, part in PARTS.items()}
        self.history = (
            count - self.running - sum(self.sizes[state] for state in ("available", "scheduled", "pending"))
        )

    def add_history(self) -> None:
        """Jobs that have ended, within a month, the oldest first."""
        dead, cancelled = f"n % {PARTS['failed']} = 7", f"n % {PARTS['cancelled']} = 9"
        began = f"{MONTH} * (n - {self.history}.0) / {self.history} - n * 7919 % 60 - 1"
        failed = f"{dead} OR n % 40 = 3"
        for first in range(1, self.history + 1, CHUNK):
            self.insert(
                first,
                min(CHUNK, self.history + 1 - first),
                state=f"CASE WHEN {dead} THEN 'failed' WHEN {cancelled} THEN 'cancelled' ELSE 'completed' END",
                attempt=f"CASE WHEN {failed} THEN 3 ELSE 1 END",
                claims=f"CASE WHEN {failed} THEN 3 ELSE 1 END",
                created_at=self.sql.moment(f"{began} - n * 31 % 20"),
                run_after=self.sql.moment(f"{began} - n * 31 % 20"),
                attempted_at=self.sql.moment(began),
                finalized_at=self.sql.moment(f"{began} + n * 7919 % 60"),
                worker_id=f"n % {GONE} + 1",
                error_class=f"CASE WHEN {failed} THEN {self.sql.pick('n / 7', ERRORS)} END",
                errors=self.sql.json(f"CASE WHEN {failed} THEN {_error()} END"),
                result=self.sql.json("""CASE WHEN n % 20 = 0 THEN '{"sent":' || n || '}' END"""),
                unique_key="CASE WHEN n % 50 = 0 THEN 'order:' || n END",
            )

    def add_present(self) -> None:
        """Jobs that run or wait, in the order of their ids the newest."""
        first = self.history + 1
        waited = "-(n * 7919 % 1800) - 1"
        for state, columns in {
            "available": {"run_after": self.sql.moment(waited), "created_at": self.sql.moment(waited)},
            "scheduled": {
                "run_after": self.sql.moment("n * 7919 % 604800 + 60"),
                "created_at": self.sql.moment("-(n * 31 % 86400)"),
                "attempt": "n % 3",
                "claims": "n % 3",
            },
            "pending": {"created_at": self.sql.moment("-(n * 31 % 86400)")},
        }.items():
            self.insert(first, self.sizes[state], state=f"'{state}'", **columns)
            first += self.sizes[state]
        self.insert(
            first,
            self.running,
            state="'running'",
            attempt="1",
            claims="1",
            worker_id=f"{GONE + 1} + n % {WORKERS}",
            attempted_at=self.sql.moment("-(n % 20)"),
            metadata=self.sql.json("""'{"progress":{"done":' || (n % 100) || ',"total":100}}'"""),
        )

    def insert(self, first: int, count: int, **columns: str) -> None:
        """Jobs of the numbers from ``first`` on; a part of them is skewed to some names, queues and customers."""
        # A square has many small values and few large ones.
        place = f"(n * 7919 % 1000) * (n * 7919 % 1000) * {len(NAMES)} / 1000000"
        values = {
            "name": self.sql.pick(place, NAMES),
            "queue_name": self.sql.pick(place, AREAS),
            "args": self.sql.json(
                """'[' || (n * 31 % 90000) || ',"customer' || (n * 31 % 90000) || '@example.com"]'"""
            ),
            "kwargs": self.sql.json(
                """'{"order":' || n || ',"lines":[1,2,3],"note":"left with the neighbours"}'"""
            ),
            "priority": "CASE n % 20 WHEN 0 THEN 10 WHEN 1 THEN -10 ELSE 0 END",
            "attempt": "0",
            "max_attempts": "5",
            "claims": "0",
            "run_after": self.sql.moment("0"),
            "created_at": self.sql.moment("-60"),
            "holds_key": "false",
            "tags": self.sql.json("""CASE WHEN n % 10 = 0 THEN '["tenant-' || (n * 31 % 500) || '"]' END"""),
            "metadata": self.sql.json(
                f"""CASE WHEN n % 500 = 0 THEN '{{"schedule":"nightly-' || (n / 500 % {SCHEDULES}) || '"}}' END"""
            ),
            **columns,
        }
        if count:
            self.meter.run(
                f"INSERT INTO django_jobs_job ({', '.join(values)}) "
                f"SELECT {', '.join(values.values())} FROM {self.sql.series(count, first)}"
            )


def _error() -> str:
    """The errors of an attempt that failed, as a worker writes them."""
    text = '[{"number":1,"attempt":3,"at":"2026-01-01T00:00:00+00:00","worker":1,"class":"shop.errors.Unreachable",'
    return f"""'{text}"message":"no answer to ' || n || '","traceback":"{TRACEBACK}"}}]'"""


def add_workers() -> None:
    """Those that were there within a day, and those that are."""
    from django_jobs.models import Leadership, Worker

    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=1)

    def worker(number: int, **columns: Any) -> Worker:
        return Worker(
            host=f"worker-{number % 10}.shop.example",
            pid=1000 + number,
            queues=["mail,orders,payments", "*"],
            concurrency=16,
            version="1.0",
            started_at=now - day,
            heartbeat_at=now,
            expires_at=now + day,
            completed=120_000 + number,
            failed=number,
            memory=90_000_000 + 1_000_000 * number,
            **columns,
        )

    Worker.objects.bulk_create(worker(number, stopped_at=now) for number in range(GONE))
    Worker.objects.bulk_create(
        worker(GONE + number, running=EACH_RUNS, leads=number == 0) for number in range(WORKERS)
    )
    Leadership.objects.create(name="keeper", holder="shop", acquired_at=now - day, expires_at=now + day)


def add_statistics(seconds: int) -> None:
    """What became of jobs within that time, by as long spans as are kept."""
    from django_jobs.models import Stat

    def rows() -> Iterator[Stat]:
        for start, minutes in spans(dt.datetime.now(dt.UTC), seconds):
            for place, name in enumerate(NAMES):
                kinds = [("completed", ""), ("retried", ERRORS[place % 3]), ("failed", ERRORS[place % 3])]
                for outcome, error in kinds if place % 4 == 0 else kinds[:1]:
                    count = minutes * (40 - place) if outcome == "completed" else minutes
                    yield Stat(
                        minute=start,
                        queue_name=AREAS[place % len(AREAS)],
                        name=name,
                        outcome=outcome,
                        error_class=error,
                        count=count,
                        run_total=0.2 * count,
                        run_max=3.0,
                        wait_total=0.1 * count,
                        wait_max=2.0,
                    )

    found = rows()
    while batch := list(itertools.islice(found, 2000)):
        Stat.objects.bulk_create(batch)


def spans(now: dt.datetime, seconds: int) -> Iterator[tuple[dt.datetime, int]]:
    """The beginnings of the spans of that time, and their minutes: by the hour, by ten minutes, by the minute."""
    moment = (now - dt.timedelta(seconds=seconds)).replace(minute=0, second=0, microsecond=0)
    while moment < now:
        age = now - moment
        minutes = 60 if age > dt.timedelta(hours=48) else 10 if age > dt.timedelta(hours=3) else 1
        yield moment, minutes
        moment += dt.timedelta(minutes=minutes)


def add_schedules(count: int) -> None:
    """A site's schedules and queues; each schedule has a last job."""
    from django_jobs.models import Queue, Schedule

    now = dt.datetime.now(dt.UTC)
    Schedule.objects.bulk_create(
        Schedule(
            key=f"nightly-{number}",
            name=NAMES[number % len(NAMES)],
            expression=f"{number} 3 * * *",
            owed_after=now,
            last_tick=now,
            next_tick=now + dt.timedelta(days=1),
            last_job_id=count // (number + 2),
            created_at=now,
            updated_at=now,
        )
        for number in range(SCHEDULES)
    )
    Queue.objects.bulk_create(Queue(name=name, created_at=now, updated_at=now) for name in AREAS[:4])
