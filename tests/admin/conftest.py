"""Users with and without permissions, and jobs in every state."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_jobs import job, registry
from django_jobs.admin.log import message_of
from django_jobs.models import Job, Worker
from tests.admin.brackets import bracketed, brackets
from tests.factories import AdminFactory

__all__ = ["bracketed", "brackets"]

STATES = ("pending", "scheduled", "available", "running", "completed", "failed", "cancelled")


def user_with(*codenames: str) -> User:
    """One of the staff with these permissions alone, on jobs and what belongs to them."""
    user = User.objects.create_user(f"user{User.objects.count()}", is_staff=True)
    found = Permission.objects.filter(content_type__app_label="django_jobs", codename__in=codenames)
    assert len(found) == len(codenames)
    user.user_permissions.set(found)
    return user


@pytest.fixture
def admin(client: Client) -> Client:
    """Somebody who may do everything."""
    client.force_login(AdminFactory())
    return client


@pytest.fixture
def reader() -> Client:
    """Somebody who may look at jobs."""
    client = Client()
    client.force_login(user_with("view_job"))
    return client


@pytest.fixture
def define():
    """Define job functions that are forgotten when the test ends."""
    made = []

    def define(function: Callable[..., Any], **options: Any) -> Any:
        made.append(job(name=f"tests.admin.{len(made)}", **options)(function))
        return made[-1]

    yield define
    for definition in made:
        registry.remove(definition)


@pytest.fixture
def greet(define):
    """A job function with a name for each of its parameters."""
    return define(lambda user, password=None, *, note="": None)


@pytest.fixture
def worker() -> Worker:
    now = timezone.now()
    lease = dt.timedelta(seconds=30)
    return Worker.objects.create(host="web1", pid=7, started_at=now, heartbeat_at=now, expires_at=now + lease)


@pytest.fixture
def make(greet, worker):
    """Jobs in a state, as a worker would have left them."""

    def make(state: str = "available", count: int = 1, **columns: Any) -> list[int]:
        ids = [row.id for row in greet.enqueue_many([("ann",)] * count)]
        now = timezone.now()
        values: dict[str, Any] = {"state": state}
        if state in ("completed", "failed", "cancelled"):
            values.update(finalized_at=now, attempted_at=now - dt.timedelta(seconds=3), attempt=1)
        if state == "running":
            values.update(worker=worker, attempted_at=now - dt.timedelta(seconds=3), attempt=1)
        if state == "failed":
            values.update(error_class="builtins.ValueError")
        Job.objects.filter(pk__in=ids).update(**{**values, **columns})
        return ids

    return make


@pytest.fixture
def each(make) -> dict[str, int]:
    """A job in each state."""
    return {state: make(state)[0] for state in STATES}


def url(name: str, *args: Any) -> str:
    return reverse(f"admin:django_jobs_{name}", args=args)


def text_of(response: Any) -> str:
    return str(response.content.decode())


def told(response: Any) -> list[str]:
    """The messages of the page that an answer leads to."""
    return [str(message) for message in response.context["messages"]]


def entries() -> list[tuple[str | None, str, str]]:
    """The admin's log, the oldest first: id, what it is called, what was done as pages tell it."""
    found = LogEntry.objects.order_by("pk")
    return [(entry.object_id, entry.object_repr, message_of(entry)) for entry in found]


def state_of(*ids: int) -> list[str | None]:
    found = dict(Job.objects.filter(pk__in=ids).values_list("pk", "state"))
    return [found.get(id_) for id_ in ids]
