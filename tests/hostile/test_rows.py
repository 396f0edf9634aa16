"""Rows that somebody's SQL has damaged: every page, operation and command, and the worker, go on with them."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import Client

from django_jobs import operations
from django_jobs.backend import JobsBackend
from django_jobs.models import Job
from django_jobs.operations import Filter
from tests.admin.conftest import STATES, admin, url
from tests.hostile.damage import damaged_jobs
from tests.hostile.trying import TIMES
from tests.waiting import eventually
from tests.worker.conftest import live
from tests.workload.jobs import nothing

__all__ = ["admin", "live"]

shifts = pytest.mark.parametrize("shift", range(min(TIMES, len(STATES))))


class Trouble:
    """What has failed, each with what it was about, told together at the end."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def at(self, what: str, do: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        try:
            with transaction.atomic():  # what fails, fails alone
                do(*args, **kwargs)
        except CommandError as error:
            if "The database refused" in str(error):
                self.told.append(f"{what}: {error}")
        except Exception as error:
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else ""
            self.told.append(f"{what}: {type(error).__name__}: {str(error)[:150]} {where}")

    def none(self) -> None:
        assert not self.told, "\n".join(self.told)


@pytest.fixture
def trouble() -> Trouble:
    """At the end of the test there must be none: ``conftest`` looks."""
    return Trouble()


@pytest.mark.django_db
@shifts
def test_every_page(admin: Client, trouble: Trouble, shift: int) -> None:
    made = damaged_jobs(STATES, shift)

    def look(path: str, **query: str) -> None:
        response = admin.get(path, query)
        assert response.status_code in (200, 302)

    for page in (
        "job_overview",
        "job_failures",
        "queue_changelist",
        "worker_changelist",
        "schedule_changelist",
    ):
        trouble.at(page, look, url(page))
    for query in (
        *({"state": state} for state in ("", *STATES)),
        {"q": "x"}, {"q": "1", "in": "arguments"}, {"tag": "x"}, {"since": "1h"},
    ):  # fmt: skip
        trouble.at(f"the list {query}", look, url("job_changelist"), **query)
    for id_, what in made.items():
        trouble.at(f"the page of {what}", look, url("job_change", id_))
        trouble.at(f"the form of {what}", look, url("job_edit", id_))
        for part in ("args", "kwargs", "result", "metadata", "errors")[id_ % 5 :][:1]:
            trouble.at(f"{part} of {what}", look, url("job_json", id_, part))


@pytest.mark.django_db
@shifts
def test_every_operation(trouble: Trouble, shift: int) -> None:
    made = damaged_jobs(STATES, shift)
    ids = list(made)
    for state in STATES:
        trouble.at(f"list {state}", operations.list_jobs, Filter(state=state))
    trouble.at("list", operations.list_jobs)
    trouble.at("list by id", operations.list_jobs, ids)
    for text in ("x", "1", "number=1"):
        trouble.at(f"search {text}", operations.search_arguments, Filter(), text)
    trouble.at("tagged", operations.tagged, "x")
    for look in (
        operations.problems,
        operations.queue_status,
        operations.stats_by_queue,
        operations.failures,
        operations.counts,
    ):
        trouble.at(look.__name__, look)
    for id_, what in made.items():
        trouble.at(f"the result of {what}", result_of, id_)
    for do in (
        operations.release, operations.run_now, operations.retry, partial(operations.update, priority=5),
        operations.cancel, operations.purge, operations.delete,
    ):  # fmt: skip
        trouble.at(f"to all: {do}", do, ids)
    held = Job.objects.filter(pk__in=ids).exclude(state="running")
    assert all(job.holds_key for job in held), (
        "each was deleted, but for those that run, and those that hold a key"
    )


def result_of(id_: int) -> None:
    try:
        JobsBackend("default", {"QUEUES": []}).get_result(str(id_))
    except Exception as error:
        if type(error).__name__ != "TaskResultDoesNotExist":
            raise


@pytest.mark.django_db
@shifts
def test_every_command(trouble: Trouble, shift: int) -> None:
    made = damaged_jobs(STATES, shift)
    ids = [str(id_) for id_ in made]

    def command(*args: str) -> None:
        call_command("jobs", *args, stdout=io.StringIO(), stderr=io.StringIO())

    for args in (
        ["list"],
        ["list", "--json", "--limit", "1000"],
        *(["list", "--state", state] for state in STATES),
        ["stats"],
    ):
        trouble.at(f"{args}", command, *args)
    for id_, what in made.items():
        trouble.at(f"show {what}", command, "show", str(id_))
        trouble.at(f"show --json {what}", command, "show", "--json", str(id_))
    for name in ("release", "retry", "cancel", "purge"):
        try:
            command(name, *ids, *(["--yes"] if name in ("cancel", "purge") else []))
        except SystemExit as ended:
            code = ended.code
            assert code == 1, "not all of them could be"


@pytest.mark.django_db(transaction=True)
@shifts
def test_the_worker(live: Callable[..., Any], shift: int) -> None:
    damaged_jobs(["available", "scheduled", "available"], shift)
    good = [row.id for row in nothing.enqueue_many([()] * 50)]
    live()
    eventually(lambda: Job.objects.filter(pk__in=good, state="completed").count() == 50)
    eventually(lambda: not Job.objects.filter(state="running").exists())
    last = nothing.enqueue().id
    eventually(lambda: Job.objects.get(pk=last).state == "completed")
