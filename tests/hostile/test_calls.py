"""Operations, ``manage.py jobs``, tasks and the other pages of the admin, given anything: an error that is meant, or an
answer, and the transaction goes on."""

import contextlib
import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import given, strategies as st

from django_jobs import InvalidJob, InvalidSchedule, operations, scheduling
from django_jobs.backend import JobsBackend
from django_jobs.backend.framework import TaskResultDoesNotExist
from django_jobs.management.commands.jobs import SUBCOMMANDS
from django_jobs.models import Job, Worker
from django_jobs.operations import Filter, InvalidFilter
from django_jobs.operations.filters import STATES
from tests.admin.conftest import admin, each, greet, make, url, worker
from tests.hostile.strategies import names, texts, values, wild
from tests.hostile.test_enqueue import moments, numbers, spans
from tests.hostile.trying import longer
from tests.workload import tasks
from tests.workload.jobs import nothing

__all__ = ["admin", "each", "greet", "make", "worker"]
pytestmark = pytest.mark.django_db

REFUSED = (InvalidFilter, InvalidJob, InvalidSchedule)


@pytest.fixture
def define() -> Any:
    """The job of these tests, as ``make`` wants it."""
    return lambda *_, **__: nothing


def goes(do: Callable[[], Any], refused: tuple[type[Exception], ...] = REFUSED) -> Any:
    """What it returned; None where it was refused, before any SQL. The transaction goes on."""
    found = None
    with CaptureQueriesContext(connection) as queries:
        try:
            found = do()
        except refused as error:
            if type(error).__module__.startswith("django_jobs"):  # the framework's own messages are its own
                str(error).encode()
            assert not queries, "it was refused by Python, not by a database"
    assert not connection.needs_rollback
    Job.objects.exists()
    return found


ids = st.one_of(
    st.integers(), st.integers(-2, 50), st.sampled_from([2**63 - 1, 2**63, -(2**63), 10**400]), wild
)
FIELDS = {
    "state": st.one_of(st.sampled_from(STATES), st.lists(st.one_of(st.sampled_from(STATES), texts), max_size=3)),
    "queue_name": names, "name": names, "error_class": names, "tag": names, "unique_key": names, "word": names,
    "ids": st.lists(ids, max_size=3), "worker_id": ids, "priority": numbers,
    "created_before": moments, "created_after": moments, "finished_after": moments,
}  # fmt: skip
fields = st.fixed_dictionaries(
    {}, optional={name: st.one_of(kind, kind, wild) for name, kind in FIELDS.items()}
)
places = st.one_of(
    texts,
    st.builds(
        "{}_{}_{}_{}_{}".format,
        st.integers(0, 8), st.integers(-2, 1001), st.integers(0, 99),
        st.one_of(st.datetimes().map(str), st.datetimes().map(lambda moment: f"{moment}+23:00"), st.sampled_from(
            ["", "infinity", "0001-01-01 00:00:00+14:00", "9999-12-31 23:59:59-14:00",
             "2031-01-01T00:00:00+15:59:59"])),
        texts,
    ),
)  # fmt: skip


@longer(80)
@given(
    wanted=fields,
    after=st.one_of(st.none(), places, wild),
    limit=st.one_of(st.integers(1, 1000), numbers, wild),
)
def test_any_filter(each, wanted, after, limit):
    found = goes(lambda: Filter(**wanted))
    if found is not None:
        goes(lambda: operations.list_jobs(found, after=after, limit=limit))
        goes(lambda: operations.list_jobs(found))


@longer(50)
@given(
    do=st.sampled_from(
        [operations.retry, operations.cancel, operations.release, operations.run_now, operations.delete]
    ),
    jobs=st.one_of(
        st.lists(ids, max_size=3), ids, fields.map(lambda wanted: goes(lambda: Filter(**wanted)) or 5), wild
    ),
    options=st.fixed_dictionaries(
        {}, optional={"steps": st.integers(0, 3), "after": st.one_of(st.none(), places)}
    ),
)
def test_any_jobs_of_an_operation(each, do, jobs, options):
    goes(lambda: do(jobs, **options))


@longer(25)
@given(
    changes=st.fixed_dictionaries(
        {},
        optional={
            "queue_name": st.one_of(names, wild), "priority": st.one_of(numbers, wild),
            "run_after": st.one_of(moments, wild), "max_attempts": st.one_of(numbers, wild),
        },
    ),
    text=st.one_of(texts, wild),
    age=st.one_of(spans, wild),
    job_id=ids,
)  # fmt: skip
def test_any_values_of_the_others(each, changes, text, age, job_id):
    goes(lambda: operations.update([each["available"]], **changes))
    job = operations.get(each["available"])
    goes(lambda: operations.edit(job, **changes))
    for do in (
        lambda: operations.get(job_id),
        lambda: operations.search_arguments(Filter(), text),
        lambda: operations.tagged(text),
        lambda: operations.purge(Filter(state="failed"), age),
        lambda: operations.purge_failed(age),
        lambda: operations.pause(text),
        lambda: operations.resume(text),
        lambda: operations.queue(text),
        lambda: operations.stats_for(text),
        lambda: operations.quiet_worker(job_id),
        lambda: operations.stop_worker(job_id),
        lambda: scheduling.get_schedule(text),
        lambda: scheduling.pause_schedule(text),
        lambda: scheduling.run_schedule_now(text),
    ):
        goes(do)


words = st.one_of(
    texts,
    st.sampled_from([
        "--all", "--yes", "--json", "--state", "failed", "--queue", "--name", "--error", "--tag", "--worker",
        "--limit", "--after",
        "--older-than", "7d", "--created-before", "--created-after", "--args", "--kwargs", "--priority",
        "--run-after", "--in", "--key",
        "tests.workload.jobs.nothing", "[1]", "{}", "--pause", "--resume", "--run-now", "--quiet", "--stop", "1",
        "--database", "default",
    ]),
)  # fmt: skip


@longer(60)
@given(subcommand=st.sampled_from(sorted(SUBCOMMANDS)), args=st.lists(words, max_size=5))
def test_any_command_line(each, subcommand, args):
    out = io.StringIO()
    # As the interpreter gives what is no UTF-8 there; a NUL can't be given at all.
    args = [re.sub("[\0\ud800-\udfff]", "\udcff", arg) for arg in args if arg != "--help"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            call_command("jobs", subcommand, *args, stdout=out, stderr=out)
            code: Any = 0
        except CommandError as error:
            out.write(f"{error}")
            code = 1
        except SystemExit as ended:
            code = ended.code or 0
    assert code in (0, 1, 2)
    assert "The database refused" not in out.getvalue()
    out.getvalue().encode("utf-8", "surrogateescape")
    assert not connection.needs_rollback
    Job.objects.exists()


TASK_OPTIONS = {
    "priority": numbers, "queue_name": st.one_of(st.sampled_from(["default", "tasks"]), names), "run_after": moments,
    "max_attempts": numbers, "unique_key": names, "unique_for": spans, "timeout": spans, "pending": st.booleans(),
    "tags": st.lists(texts, max_size=3), "backend": st.one_of(st.just("any"), texts),
}  # fmt: skip


@longer(80)
@given(
    options=st.fixed_dictionaries(
        {}, optional={name: st.one_of(kind, kind, wild) for name, kind in TASK_OPTIONS.items()}
    ),
    args=st.lists(values, max_size=2),
    kwargs=st.dictionaries(texts, values, max_size=2),
    result_id=st.one_of(texts, st.integers().map(str)),
)
def test_any_task(options, args, kwargs, result_id):
    # What the framework itself raises of a task that can't be, and of values that it can't take.
    meant = (ValueError, TypeError, LookupError)
    task = goes(lambda: tasks.noop.using(**options), (*meant, Exception)) or tasks.noop
    result = goes(lambda: task.enqueue(*args, **kwargs), meant)
    if result is not None:
        goes(lambda: JobsBackend("any", {"QUEUES": []}).get_result(result.id))
    with contextlib.suppress(TaskResultDoesNotExist):
        JobsBackend("any", {"QUEUES": []}).get_result(result_id)
    assert not connection.needs_rollback
    Job.objects.exists()  # PostgreSQL would refuse it, had a statement failed


PAGES = [
    ("job_overview", {"period": texts}), ("job_failures", {"by": texts}), ("queue_changelist", {}),
    ("worker_changelist", {}), ("schedule_changelist", {}), ("queue_purge", {"queue": names}),
]  # fmt: skip


@longer(25)
@given(data=st.data(), name=names)
def test_any_address_of_the_other_pages(admin: Client, each, data, name):
    path, query = data.draw(st.sampled_from(PAGES))
    drawn = data.draw(st.fixed_dictionaries(query))
    sendable = {key: value.encode("utf-8", "replace").decode() for key, value in drawn.items()}
    name = name.encode("utf-8", "replace").decode()
    assert admin.get(url(path), sendable).status_code in (200, 302, 404)
    for model in ("queue", "worker", "schedule", "job"):
        response = admin.get(f"{url(f'{model}_changelist')}{_quoted(name)}/change/")
        assert response.status_code in (200, 301, 302, 404)
    Job.objects.exists()


@longer(50)
@given(
    path=st.sampled_from(["queue_pause", "queue_resume", "queue_purge", "job_act"]),
    data=st.dictionaries(
        st.sampled_from([
            "queue", "state", "next", "action", "job", "scope", "query", "to_queue", "to_priority", "after", "left",
        ]),
        st.one_of(
            names, places, st.lists(texts, max_size=3), st.sampled_from(["update", "retry", "all", "selected"])
        ),
        max_size=6,
    ),
    charset=st.sampled_from([
        "utf-8", "utf-8", "latin-1", "utf-16", "utf-7", "unicode_escape", "raw_unicode_escape", "no-such",
    ]),
)  # fmt: skip
def test_any_form_of_the_other_pages(admin: Client, each, path, data, charset):
    sendable = {
        key: [
            text.encode("utf-8", "replace").decode()
            for text in ([value] if isinstance(value, str) else value)
        ]
        for key, value in data.items()
    }
    response = admin.post(url(path), sendable)
    assert response.status_code in (200, 302, 400, 404)
    if response.status_code == 302:
        assert response.url.startswith("/")
        assert not response.url.startswith("//")
    body = "&".join(f"{key}={_quoted(text)}" for key, texts in sendable.items() for text in texts)
    sent = admin.generic("POST", url(path), body, f"application/x-www-form-urlencoded; charset={charset}")
    assert sent.status_code in (200, 302, 400, 404)
    assert Worker.objects.exists()


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
