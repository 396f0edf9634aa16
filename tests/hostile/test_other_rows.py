"""The tables beside the jobs, with what somebody's SQL can have written into their JSON and their texts."""

import io
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from django_jobs import operations, scheduling
from django_jobs.models import Queue, Schedule, Stat, Worker
from django_jobs.store import django_store
from django_jobs.worker.ticker import Ticker
from tests.admin.conftest import admin, url
from tests.hostile.damage import DEEP, HUGE, LONG, NO_JSON, quoted
from tests.hostile.test_rows import Trouble, trouble
from tests.workload.jobs import nothing

__all__ = ["admin", "trouble"]
pytestmark = pytest.mark.django_db

ODD = [
    "null", "5", '"x"', "[]", "{}", "[null]", '[{"a":1}]', '{"a":"<script>"}', r'["\u0000"]', r'{"\ud800":"\ud800"}',
    DEEP, LONG, f"[{HUGE}]", "[1e999]",
]  # fmt: skip
TEXTS = ["", " ", "\x1b[31m", "a\nb", "<script>alert(1)</script>", "\u202e", "%s{0}"]


def write(table: str, id_: int, column: str, text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE django_jobs_{table} SET {column} = {quoted(text)} WHERE id = {id_}")


def json_texts() -> list[str]:
    return ODD + (NO_JSON if connection.vendor == "sqlite" else [])


def look(admin: Client, trouble: Trouble, *pages: str) -> None:
    def see(page: str) -> None:
        response = admin.get(page)
        assert response.status_code in (200, 302)
        assert "<script>alert" not in response.content.decode()

    for page in pages:
        trouble.at(page, see, page)


def command(*args: str) -> None:
    call_command("jobs", *args, stdout=io.StringIO(), stderr=io.StringIO())


def test_workers(admin: Client, trouble: Trouble) -> None:
    store = django_store("default")
    for column, texts in {"queues": json_texts(), "host": TEXTS, "version": TEXTS}.items():
        for text in texts:
            write("worker", store.register_worker("host", 1, '["*"]', 1, "1", 300.0).id, column, text)
    last = Worker.objects.order_by("-pk").values_list("pk", flat=True)
    look(admin, trouble, url("worker_changelist"), url("job_overview"), url("queue_changelist"))
    look(admin, trouble, *(url("worker_change", pk) for pk in last))
    trouble.at("problems", operations.problems)
    trouble.at("status", operations.queue_status)
    for args in (["workers"], ["workers", "--json"], ["stats"]):
        trouble.at(f"{args}", command, *args)


def test_queues(admin: Client, trouble: Trouble) -> None:
    now = timezone.now()
    for number, text in enumerate(json_texts()):
        row = Queue.objects.create(name=f"q{number}", created_at=now, updated_at=now)
        write("queue", row.pk, "metadata", text)
        look(admin, trouble, url("queue_change", row.name))
        for do in (operations.pause, operations.resume, operations.queue):
            trouble.at(f"{do.__name__} {text[:40]}", do, row.name)
    trouble.at("queues", operations.queues)
    look(admin, trouble, url("queue_changelist"))


def test_schedules(admin: Client, trouble: Trouble) -> None:
    now = timezone.now()
    times = {"owed_after": now, "next_tick": now, "created_at": now, "updated_at": now}
    rows: list[Any] = []
    texts = {column: json_texts() for column in ("args", "kwargs", "options")}
    for column in ("expression", "timezone", "missed", "name", "last_error"):
        texts[column] = [text[:9] for text in TEXTS]
    for column, each in texts.items():
        for text in each:
            rows.append(
                Schedule.objects.create(
                    key=f"key {len(rows)}", name=nothing.name, expression="every 300 s", **times
                )
            )
            write("schedule", rows[-1].pk, column, text)

    def run(id_: int) -> None:
        assert admin.post(url("schedule_run", id_)).status_code == 302

    good = Schedule.objects.create(key="zz", name=nothing.name, expression="every 300 s", **times)
    trouble.at("ticks", Ticker("default", lambda _queue: None).run, django_store("default"))
    good.refresh_from_db()
    assert good.last_job_id is not None, "it ran beside the others"
    look(
        admin,
        trouble,
        url("schedule_changelist"),
        url("job_overview"),
        *(url("schedule_change", row.pk) for row in rows),
    )
    for row in rows:
        trouble.at(f"run {row.key}", run, row.pk)
    for args in (["schedules"], ["schedules", "--json"]):
        trouble.at(f"{args}", command, *args)
    trouble.at("schedules", scheduling.get_schedules)


def test_statistics(admin: Client, trouble: Trouble) -> None:
    now = timezone.now()
    for number, text in enumerate(TEXTS):
        for outcome in ("completed", "failed", "retried"):
            Stat.objects.create(
                minute=now, queue_name=text, name=f"{text}{number}", outcome=outcome, error_class=text,
                count=2**53, run_total=1e300, run_max=1e308, wait_total=-1e300, wait_max=-1,
            )  # fmt: skip
    look(admin, trouble, url("job_overview"), f"{url('job_overview')}?period=week", url("job_failures"))
    for do in (operations.failures, operations.problems, operations.queue_status):
        trouble.at(do.__name__, do)
    trouble.at("stats", command, "stats")
