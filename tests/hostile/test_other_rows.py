"""The tables beside the jobs, damaged by somebody's SQL in every column: pages, operations, commands, metrics, health
and the worker go on, with these rows and with those beside them."""

import contextlib
import datetime as dt
import io
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.core.management import call_command
from django.db import models
from django.test import Client, RequestFactory
from django.utils import timezone
from prometheus_client import generate_latest

from django_jobs import operations, scheduling
from django_jobs.health.views import ready
from django_jobs.models import Job, Leadership, Queue, Schedule, Stat, Worker
from django_jobs.prometheus import StoredState
from django_jobs.states import Counted
from django_jobs.store import django_store
from django_jobs.worker.keeper import LEADERSHIP
from tests.admin.conftest import admin, url
from tests.hostile.damage import written
from tests.hostile.damaged_tables import damage, damages, most
from tests.hostile.test_rows import Trouble, trouble
from tests.hostile.trying import TIMES
from tests.waiting import eventually
from tests.worker.conftest import live
from tests.workload.jobs import nothing

__all__ = ["admin", "live", "trouble"]

shifts = pytest.mark.parametrize("shift", range(min(TIMES, 2)))


def workers(shift: int) -> list[int]:
    """Workers, each of which holds a job."""
    store = django_store("default")
    count = most(Worker)
    nothing.using(queue_name="held").enqueue_many([()] * count)
    ids = [store.register_worker("host", 1, '["*"]', 1, "1", 300.0).id for _ in range(count)]
    for id_ in ids:
        store.claim(id_, "held", 1)
    damage(Worker, ids, shift)
    return ids


def queues(shift: int) -> list[int]:
    now = timezone.now()
    rows = [
        Queue.objects.create(name=f"q{number}", created_at=now, updated_at=now, paused_at=now)
        for number in range(most(Queue))
    ]
    damage(Queue, [row.pk for row in rows], shift)
    return [row.pk for row in rows]


def schedules(shift: int) -> list[int]:
    now = timezone.now()
    times = {"owed_after": now, "next_tick": now, "created_at": now, "updated_at": now}
    rows = [
        Schedule.objects.create(key=f"key {number}", name=nothing.name, expression="every 300 s", **times)
        for number in range(most(Schedule))
    ]
    damage(Schedule, [row.pk for row in rows], shift)
    return [row.pk for row in rows]


def statistics(shift: int) -> list[int]:
    now = timezone.now()
    outcomes = list(Counted)
    rows = [
        Stat.objects.create(
            minute=now, queue_name=f"q{number}", name=f"n{number}", outcome=outcomes[number % len(outcomes)], count=1
        )
        for number in range(most(Stat))
    ]  # fmt: skip
    damage(Stat, [row.pk for row in rows], shift)
    return [row.pk for row in rows]


TABLES: dict[type[models.Model], Callable[[int], list[int]]] = {
    Worker: workers,
    Queue: queues,
    Schedule: schedules,
    Stat: statistics,
}
each_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)


def look(admin: Client, trouble: Trouble, *pages: str) -> None:
    def see(page: str) -> None:
        response = admin.get(page)
        assert response.status_code in (200, 404), response.status_code  # of a name that no queue can have
        assert "<script>alert" not in response.content.decode()

    for page in pages:
        trouble.at(page, see, page)


def command(*args: str) -> None:
    call_command("jobs", *args, stdout=io.StringIO(), stderr=io.StringIO())


def names() -> list[str]:
    return [row.name for row in operations.queues() if row.name]


@pytest.mark.django_db
@each_table
@shifts
def test_every_page_and_view(admin: Client, trouble: Trouble, table: type[models.Model], shift: int) -> None:
    ids = TABLES[table](shift)
    kind = table._meta.model_name
    overview = url("job_overview")
    look(admin, trouble, overview, f"{overview}?period=week", url("job_failures"))
    look(admin, trouble, *(url(f"{each}_changelist") for each in ("queue", "worker", "schedule")))
    if table is Queue:
        look(admin, trouble, *(url("queue_change", quote(name)) for name in names()))
    elif table is not Stat:
        look(admin, trouble, *(url(f"{kind}_change", id_) for id_ in ids))
        look(admin, trouble, *(url(f"{kind}_history", id_) for id_ in ids[shift::3]))
    if table is Worker:
        held = Job.objects.filter(queue_name="held").only("pk")
        look(admin, trouble, *(url("job_change", job.pk) for job in held[shift::3]))
        look(admin, trouble, *(url("worker_stop", id_) for id_ in ids[shift::3]))
    trouble.at("metrics", lambda: generate_latest(StoredState()))  # type: ignore[arg-type] # it is as a registry is
    assert "django_jobs_up 1.0" in generate_latest(StoredState()).decode()  # type: ignore[arg-type]
    trouble.at("health", ready, RequestFactory().get("/"))
    trouble.none()


@pytest.mark.django_db
@each_table
@shifts
def test_every_operation_and_command(
    admin: Client, trouble: Trouble, table: type[models.Model], shift: int
) -> None:
    ids = TABLES[table](shift)
    good = Schedule.objects.create(
        key="zz good", name=nothing.name, expression="every 300 s",
        **dict.fromkeys(("owed_after", "created_at", "updated_at"), timezone.now()),
    )  # fmt: skip
    for do in (operations.problems, operations.queue_status, operations.stats_by_queue, operations.failures):
        trouble.at(do.__name__, do)
    trouble.at("schedules", scheduling.get_schedules)
    for args in (
        ["workers", "--all"], ["workers", "--all", "--json"], ["schedules"], ["schedules", "--json"], ["stats"],
        ["stats", "--json"], ["doctor"],
    ):  # fmt: skip
        trouble.at(f"{args}", told, *args)
    for id_ in ids if table is Worker else []:
        for ask in (operations.quiet_worker, operations.unquiet_worker, operations.stop_worker):
            trouble.at(f"{ask.__name__} {id_}", ask, id_)
    for name in names() if table is Queue else []:
        for change in (operations.queue, operations.pause, operations.resume):
            trouble.at(f"{change.__name__} {name!r}", sayable, change, name)
    for id_ in ids if table is Schedule else []:
        for word in ("run", "pause", "resume"):
            trouble.at(f"{word} {id_}", posted, admin, url(f"schedule_{word}", id_))
    assert scheduling.run_schedule_now(good.key) is not None
    trouble.none()


def told(*args: str) -> None:
    with contextlib.suppress(SystemExit):  # of the doctor, who found something
        command(*args)


def sayable(change: Callable[[str], Any], name: str) -> None:
    """Do it to a queue, whose name may be one that only somebody's SQL can give."""
    try:
        change(name)
    except Exception as error:
        if type(error).__name__ != "InvalidJob":
            raise


def posted(admin: Client, address: str) -> None:
    assert admin.post(address).status_code in (302, 404)


@pytest.mark.django_db(transaction=True)
@shifts
def test_the_worker(live: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    monkeypatch.setattr(
        scheduling, "synchronise", lambda *_args, **_options: []
    )  # else all of them are of the past
    for make in TABLES.values():
        make(shift)
    now = timezone.now()
    times = {"owed_after": now, "created_at": now, "updated_at": now}
    good = Schedule.objects.create(key="zz", name=nothing.name, expression="every 1 s", **times)
    later = nothing.using(run_after=dt.timedelta(seconds=0.2)).enqueue().id
    ids = [row.id for row in nothing.enqueue_many([()] * 5)]
    Queue.objects.create(name="paused", paused_at=now, created_at=now, updated_at=now)
    held = nothing.using(queue_name="paused").enqueue().id

    worker = live(heartbeat_interval=0.05, lease=3.0, poll_interval=0.1)

    eventually(lambda: Job.objects.filter(pk__in=[*ids, later], state="completed").count() == 6)
    eventually(lambda: Schedule.objects.filter(pk=good.pk, last_job_id__isnull=False).exists())
    eventually(lambda: Stat.objects.filter(name=nothing.name, outcome="completed").exists())
    assert Job.objects.filter(pk=held, state="available").exists()
    assert worker.worker_id == worker.row.id, "it was never taken for lost"


@pytest.mark.django_db
def test_whatever_is_said_of_the_leader_there_is_one_again(trouble: Trouble) -> None:
    store = django_store("default")

    def lead(column: str, sql: str) -> None:
        Leadership.objects.all().delete()
        store.acquire_leadership(LEADERSHIP, "dead", 1.0, now=timezone.now() - dt.timedelta(hours=1))
        written("django_jobs_leadership", column, sql, "holder = 'dead'")
        held = store.acquire_leadership(LEADERSHIP, "me", 30.0)
        assert held is not None
        assert held.holder == "me"

    for column, values in damages(Leadership).items():
        for sql in values:
            trouble.at(f"{column} = {sql}", lead, column, sql)
    trouble.none()
