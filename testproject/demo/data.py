"""A week of an invented shop's jobs, written into the tables as if workers had been there; for looking at the pages.

The same numbers come at every call (but for the time): a page of today can be compared with one of yesterday.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from django_jobs.models import Job, Leadership, Queue, Schedule, Stat, Worker
from django_jobs.timing import parse

MINUTE, HOUR, DAY = dt.timedelta(minutes=1), dt.timedelta(hours=1), dt.timedelta(days=1)
# The steps of the statistics: no chart shows what is older by a shorter one.
STEPS = [(2 * HOUR, MINUTE), (26 * HOUR, 30 * MINUTE), (8 * DAY, HOUR)]


class Kind(NamedTuple):
    """A job function of the shop: how often it runs in a minute at noon, how long, how often it fails, and how."""

    name: str
    queue: str
    rate: float
    seconds: float
    failing: float = 0.0  # attempts that fail, and are repeated
    dying: float = 0.0  # jobs that are dead letters in the end
    error: str = ""
    message: str = ""
    max_attempts: int = 5

    @property
    def dotted(self) -> str:
        return f"testproject.demo.jobs.{self.name}"


BUSY = "testproject.demo.jobs.MailServerBusy"
AWAY = "testproject.demo.jobs.WarehouseUnreachable"
KINDS = [
    Kind("index_product", "search", 34, 0.03),
    Kind(
        "send_receipt",
        "mail",
        26,
        0.18,
        0.08,
        0.002,
        BUSY,
        "421 4.7.0 too many connections, receipt is deferred",
    ),
    Kind(
        "resize_image", "images", 21, 0.55, 0.0, 0.01, "django_jobs.Fail", "products/{n}.jpg is no image", 3
    ),
    Kind(
        "charge_card", "payments", 13, 0.35, 0.0, 0.02, "django_jobs.Fail", "card declined for order {n}", 3
    ),
    Kind("sync_stock", "warehouse", 2.5, 0.8, 0.2, 0.12, AWAY, "Lisbon did not answer within 10 s", 2),
    Kind("expire_carts", "housekeeping", 0.2, 0.1),
]
BY_NAME = {kind.name: kind for kind in KINDS}

TRACEBACK = """Traceback (most recent call last):
  File "/srv/shop/venv/lib/python3.13/site-packages/urllib3/connection.py", line 204, in _new_conn
    sock = connection.create_connection(
        (self._dns_host, self.port),
        self.timeout,
    )
  File "/srv/shop/venv/lib/python3.13/site-packages/urllib3/util/connection.py", line 85, in create_connection
    raise err
TimeoutError: timed out

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/shop/testproject/demo/jobs.py", line 76, in {function}
    raise {error}("{message}")
{error}: {message}
"""


def fill_history(now: dt.datetime, seed: int = 7) -> None:
    """What became of jobs within the last week: statistics, and the last of the finished jobs."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    Stat.objects.bulk_create(statistics(now, rng), batch_size=500)
    Job.objects.bulk_create(sorted(finished(now, rng), key=lambda job: job.created_at), batch_size=200)


def fill_present(now: dt.datetime, seed: int = 7) -> None:
    """What is there at this moment: workers, jobs that wait and run, schedules, a queue that nobody serves."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    workers = add_workers(now)
    Job.objects.bulk_create(sorted(unfinished(now, rng, workers), key=lambda job: job.created_at))
    Leadership.objects.create(name="keeper", holder="demo", acquired_at=now - HOUR, expires_at=now + DAY)
    Queue.objects.create(
        name="imports",
        paused_at=now - 25 * MINUTE,
        metadata={"owner": "catalogue team", "why": "supplier asks us to wait until 14:00"},
        created_at=now - DAY,
        updated_at=now - 25 * MINUTE,
    )
    add_schedules(now)


# -- history -----------------------------------------------------------------------------------------------------------


def statistics(now: dt.datetime, rng: random.Random) -> Iterator[Stat]:
    """Rows by the hour, the newest by the minute. The mail server was busy twice; a warehouse is often away."""
    moment = (now - 7 * DAY).replace(minute=0, second=0, microsecond=0)
    while moment < now:
        step = next(step for longest, step in STEPS if now - moment <= longest)
        minutes = step / MINUTE
        for kind in KINDS:
            yield from of_kind(kind, moment, minutes, now - moment, rng)
        moment += step


def of_kind(
    kind: Kind, moment: dt.datetime, minutes: float, age: dt.timedelta, rng: random.Random
) -> Iterator[Stat]:
    day = 0.55 + 0.45 * math.sin((moment.hour + moment.minute / 60 - 7) / 24 * 2 * math.pi)
    weekend = 0.6 if moment.weekday() >= 5 else 1.0
    count = round(max(0.0, rng.gauss(1, 0.12)) * kind.rate * minutes * day * weekend + rng.random() - 0.5)
    incident = 1.0
    if kind.name == "send_receipt" and (18 <= age / HOUR <= 20 or 22 <= age / MINUTE <= 31):
        incident = 7.0
    waits = (0.4 if incident == 1.0 else 6.0) * rng.uniform(0.5, 1.6)
    parts = {
        ("completed", ""): count,
        ("retried", kind.error): some(count * kind.failing * incident, rng),
        ("failed", kind.error): some(count * kind.dying * incident, rng),
    }
    for (outcome, error), number in parts.items():
        if number > 0:
            yield Stat(
                minute=moment,
                queue_name=kind.queue,
                name=kind.dotted,
                outcome=outcome,
                error_class=error,
                count=number,
                run_total=number * kind.seconds * rng.uniform(0.8, 1.3),
                run_max=kind.seconds * rng.uniform(2, 5),
                wait_total=number * waits,
                wait_max=waits * 3,
            )


def some(expected: float, rng: random.Random) -> int:
    """A whole number around what is expected."""
    return int(expected) + (rng.random() < expected % 1)


def finished(now: dt.datetime, rng: random.Random) -> Iterator[Job]:
    """The last of those that ended: many completed, some dead letters, a few cancelled."""
    age = 3.0
    for number in range(400):
        kind = rng.choices(KINDS, weights=[kind.rate for kind in KINDS])[0]
        age += rng.expovariate(1 / 2.5)
        ended = now - dt.timedelta(seconds=age)
        began = ended - dt.timedelta(seconds=kind.seconds * rng.uniform(0.6, 1.8))
        retried = rng.random() < kind.failing
        attempt = 2 if retried else 1
        due = began - dt.timedelta(seconds=rng.uniform(0.01, 1.2))
        yield job(
            kind,
            number,
            rng,
            state="completed",
            created_at=due - (15 if retried else 0) * dt.timedelta(seconds=1),
            run_after=due,
            attempted_at=began,
            finalized_at=ended,
            attempt=attempt,
            errors=errors(kind, number, began, attempt - 1) or None,
            result={f"products/{number}.jpg@640": 74880} if kind.name == "resize_image" else None,
        )
    for name, ages in {
        "sync_stock": [0.2, 0.5, 0.9, 1.4, 3, 5, 8, 11, 17, 22, 40, 70, 100, 130],
        "charge_card": [0.4, 2.2, 6, 9, 30, 55, 90],
        "send_receipt": [0.45, 0.46, 0.48, 18.4, 18.6, 18.9, 19.2],
        "resize_image": [1.1, 12, 60],
    }.items():
        kind = BY_NAME[name]
        for number, hours in enumerate(ages, 900):
            ended = now - hours * HOUR
            attempts = 1 if kind.error == "django_jobs.Fail" else kind.max_attempts
            yield job(
                kind,
                number,
                rng,
                state="failed",
                created_at=ended - attempts * MINUTE,
                run_after=ended - MINUTE,
                attempted_at=ended - dt.timedelta(seconds=kind.seconds),
                finalized_at=ended,
                attempt=attempts,
                error_class=kind.error,
                errors=errors(kind, number, ended, attempts),
            )
    for number in range(3):
        ended = now - (number + 1) * 3 * HOUR
        yield job(
            BY_NAME["index_product"],
            number,
            rng,
            state="cancelled",
            created_at=ended - HOUR,
            run_after=ended,
            finalized_at=ended,
            cancel_requested_at=ended,
        )


def errors(kind: Kind, number: int, last: dt.datetime, attempts: int) -> list[dict[str, Any]]:
    """The errors of a job that was attempted so often."""
    message = kind.message.format(n=number)
    return [
        {
            "number": attempt,
            "attempt": attempt,
            "at": (last - (attempts - attempt) * MINUTE).isoformat(),
            "attempted_at": (
                last - (attempts - attempt) * MINUTE - dt.timedelta(seconds=kind.seconds)
            ).isoformat(),
            "worker": 2,
            "class": kind.error,
            "message": message,
            "traceback": TRACEBACK.format(
                function=kind.name, error=kind.error.rpartition(".")[2], message=message
            ),
        }
        for attempt in range(1, attempts + 1)
    ]


def job(kind: Kind, number: int, rng: random.Random, **columns: Any) -> Job:
    """A row, with arguments such as the shop's jobs have."""
    order = rng.randint(100_000, 999_999)
    args: list[Any] = [order]
    kwargs: dict[str, Any] = {}
    if kind.name == "send_receipt":
        args = [order, f"customer{number}@example.com"]
    elif kind.name == "resize_image":
        args, kwargs = [f"products/{number}.jpg"], {"widths": [320, 640, 1280]}
    elif kind.name == "charge_card":
        args, kwargs = [order, f"{rng.uniform(5, 300):.2f}"], {"api_key": f"sk_live_{order}"}
    elif kind.name == "sync_stock":
        args, kwargs = ["Lisbon"], {"since": "2026-11-29T22:00:00Z"}
    elif kind.name == "expire_carts":
        args = []
    return Job(
        **{
            "name": kind.dotted,
            "queue_name": kind.queue,
            "args": args,
            "kwargs": kwargs,
            "max_attempts": kind.max_attempts,
            "claims": columns.get("attempt", 0),
            "tags": [f"order:{order}"] if kind.name == "send_receipt" else None,
            **columns,
        }
    )


# -- the present -------------------------------------------------------------------------------------------------------


OTHERS = "search,warehouse,imports,housekeeping"


def add_workers(now: dt.datetime) -> list[Worker]:
    """Three that live, one of them the leader; one that stopped, one that was lost."""
    seconds = dt.timedelta(seconds=1)
    common = {"concurrency": 10, "version": "0.1.0", "expires_at": now + HOUR}
    live = [
        {"host": "web-1", "pid": 4172, "queues": ["mail,payments", OTHERS], "running": 3, "completed": 182_337,
         "failed": 1_204, "started_at": now - 26 * HOUR, "heartbeat_at": now - 3 * seconds, "memory": 131_400_000,
         "leads": True},
        {"host": "web-2", "pid": 988, "queues": ["mail,payments", OTHERS], "running": 2, "completed": 179_902,
         "failed": 1_190, "started_at": now - 26 * HOUR, "heartbeat_at": now - 1 * seconds, "memory": 128_900_000},
        {"host": "images-1", "pid": 71, "queues": ["images"], "concurrency": 4, "running": 4, "completed": 61_028,
         "failed": 611, "started_at": now - 5 * HOUR, "heartbeat_at": now - 2 * seconds, "memory": 402_100_000,
         "quiet_requested_at": now - 2 * MINUTE},
    ]  # fmt: skip
    gone = [
        {"host": "images-1", "pid": 70, "queues": ["images"], "concurrency": 4, "completed": 90_112, "failed": 904,
         "started_at": now - 29 * HOUR, "heartbeat_at": now - 5 * HOUR, "stopped_at": now - 5 * HOUR},
        {"host": "web-3", "pid": 512, "queues": ["*"], "completed": 4_011, "failed": 20,
         "started_at": now - 9 * HOUR, "heartbeat_at": now - 7 * HOUR, "lost_at": now - 7 * HOUR},
    ]  # fmt: skip
    made = [Worker.objects.create(**{**common, **columns}) for columns in gone + live]
    return made[len(gone) :]


def unfinished(now: dt.datetime, rng: random.Random, workers: list[Worker]) -> Iterator[Job]:
    """Those that run, wait, and are for later."""
    first, second, third = workers
    running = [
        (first, "send_receipt"),
        (first, "charge_card"),
        (second, "index_product"),
        (second, "sync_stock"),
    ]
    for number, (worker, name) in enumerate([*running, *[(third, "resize_image")] * 4]):
        due = now - dt.timedelta(seconds=rng.uniform(0.5, 3))
        yield job(
            BY_NAME[name], number, rng, state="running", worker=worker, created_at=due, run_after=due,
            attempted_at=now - dt.timedelta(seconds=rng.uniform(0.05, 0.5)), attempt=1,
        )  # fmt: skip
    catalogue = Kind("import_catalogue", "imports", 0, 60)
    yield job(
        catalogue, 0, rng, state="running", worker=first, args=["Fern & Sons"], kwargs={"rows": 12_480},
        created_at=now - 40 * MINUTE, run_after=now - 40 * MINUTE, attempted_at=now - 38 * MINUTE, attempt=1,
        metadata={"progress": {"done": 8312, "total": 12480, "note": "row 8312 of Fern & Sons"},
                  "file": {"name": "autumn-2026.csv", "bytes": 18_446_744_073_709_551_617, "sheets": ["prices"]}},
    )  # fmt: skip
    for number in range(3):
        due = now - (20 - number) * MINUTE
        supplier = ["Okapi Trading", "Hilltop Mills", "Fern & Sons"][number]
        yield job(catalogue, number, rng, state="available", args=[supplier], created_at=due, run_after=due)
    for number in range(11):  # no worker serves these
        due = now - (14 - number) * MINUTE
        report = Kind("nightly_report", "reports-eu", 0, 2)
        yield job(report, number, rng, state="available", args=[], created_at=due, run_after=due)
    for number in range(38):
        due = now - dt.timedelta(seconds=rng.uniform(0.1, 9))
        kind = BY_NAME["resize_image" if number % 3 else "send_receipt"]
        yield job(kind, number, rng, state="available", created_at=due, run_after=due)
    for number in range(9):
        kind = BY_NAME["send_receipt" if number % 2 else "sync_stock"]
        failed = now - dt.timedelta(seconds=rng.uniform(5, 200))
        yield job(
            kind, number, rng, state="scheduled", attempt=1, created_at=failed - MINUTE, attempted_at=failed,
            run_after=now + dt.timedelta(seconds=rng.uniform(20, 290)), error_class=kind.error,
            errors=errors(kind, number, failed, 1),
        )  # fmt: skip
    for number in range(14):
        kind = BY_NAME["send_receipt"]
        yield job(
            kind, number, rng, state="scheduled", created_at=now - HOUR, run_after=now + rng.uniform(0.2, 30) * HOUR
        )  # fmt: skip


def add_schedules(now: dt.datetime) -> None:
    """Periodic jobs; one is paused, one can't run, and one was removed from the code."""
    last = Job.objects.filter(state="completed").order_by("-id").first()
    dead = Job.objects.filter(state="failed").order_by("-id").first()
    common: dict[str, Any] = {
        "owed_after": now - 7 * DAY,
        "created_at": now - 30 * DAY,
        "updated_at": now - HOUR,
    }
    tick = now.replace(second=0, microsecond=0)
    for columns in [
        {"key": "expire carts", "name": "testproject.demo.jobs.expire_carts", "expression": "*/5 * * * *",
         "last_tick": tick - 3 * MINUTE, "last_job_id": last and last.pk},
        {"key": "nightly report", "name": "testproject.demo.jobs.nightly_report", "expression": "30 2 * * MON-FRI",
         "timezone": "Europe/Berlin", "last_tick": tick - 9 * HOUR,
         "kwargs": {"kind": "sales"}, "last_job_id": last and last.pk},
        {"key": "sync Lisbon", "name": "testproject.demo.jobs.sync_stock", "expression": "every 900 s",
         "args": ["Lisbon"], "last_tick": tick - 8 * MINUTE,
         "last_job_id": dead and dead.pk},
        {"key": "catalogue of Okapi", "name": "testproject.demo.jobs.import_catalogue", "expression": "0 6 1 * *",
         "timezone": "Europe/Lisbon", "paused_at": now - 3 * DAY, "last_tick": tick - 20 * DAY},
        {"key": "newsletter", "name": "shop.mail.send_newsletter", "expression": "0 9 * * MON",
         "last_tick": tick - 8 * DAY, "next_tick": tick - 3 * HOUR,
         "last_error": "No job is registered as 'shop.mail.send_newsletter' in this process."},
        {"key": "old backup", "name": "shop.backup.run", "expression": "@daily", "removed_at": now - 2 * DAY},
    ]:  # fmt: skip
        schedule = Schedule(**{**common, **columns})
        if not (schedule.last_error or schedule.paused_at or schedule.removed_at):
            schedule.next_tick = parse(schedule.expression, schedule.timezone).after(now)
        schedule.save()
