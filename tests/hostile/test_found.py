"""What the tests beside this one have found, each by itself: their search need not find it again."""

import datetime as dt

import pytest
from django.db import connection
from django.test import Client

from django_jobs import InvalidJob, operations
from django_jobs.models import Job
from django_jobs.operations import Filter, InvalidFilter
from django_jobs.serialization import shown
from tests.admin.conftest import admin, told, url
from tests.hostile.damage import damage
from tests.hostile.strategies import Halves, endless
from tests.workload import tasks
from tests.workload.jobs import nothing

__all__ = ["admin"]
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "offset", [dt.timedelta(hours=23, minutes=59), dt.timedelta(microseconds=1), -dt.timedelta(hours=16)]
)
def test_an_offset_that_postgresql_does_not_have(offset):
    moment = dt.datetime(2031, 5, 6, 7, 8, 9, 10, tzinfo=dt.timezone(offset))
    row = nothing.using(run_after=moment).enqueue()
    rows = nothing.using(run_after=moment).enqueue_many([(), ()])
    keyed = nothing.using(run_after=moment, unique_key="key").enqueue()
    edited = operations.edit(nothing.using(pending=True).enqueue(), run_after=moment)
    for each in (row, *rows, keyed, edited):
        assert Job.objects.get(pk=each.id).run_after == moment
    assert operations.update([row.id], run_after=moment).done == 1
    assert operations.list_jobs(Filter(created_before=moment)).jobs


def test_a_representation_that_can_not_be_written():
    assert shown(Halves()) == r"\ud800\x00"


@pytest.mark.parametrize(
    "after",
    [
        "0_0_5_0001-01-01T00:00:00+14:00_",
        "0_0_5_9999-12-31T23:59:59-14:00_",
        "0_0_5_2031-01-01T00:00:00+23:00_",
    ],
)
def test_a_place_whose_time_no_database_has(admin: Client, after):
    with pytest.raises(InvalidFilter, match="pass what the page before said"):
        operations.list_jobs(Filter(state="scheduled"), after=after)
    assert admin.get(url("job_changelist"), {"state": "scheduled", "after": after}).status_code == 200


def test_a_task_s_argument_that_contains_itself():
    with pytest.raises(ValueError, match="nested too deeply, or contains itself"):
        tasks.noop.enqueue(endless())


@pytest.mark.parametrize("worker_id", [2**63 - 1, -1, 0])
def test_the_id_of_a_worker_that_no_database_has(worker_id):
    assert operations.quiet_worker(worker_id) is None
    assert operations.unquiet_worker(worker_id) is None
    assert operations.stop_worker(worker_id) is None


@pytest.mark.parametrize("worker_id", [None, "1", True, 1.5, 10**400])
def test_what_is_no_id_of_a_worker(worker_id):
    with pytest.raises(InvalidFilter, match="worker_id has"):
        operations.stop_worker(worker_id)


def test_a_delay_for_the_edit_of_one_job():
    row = nothing.using(pending=True).enqueue()
    with pytest.raises(InvalidJob, match=r"it must be an aware datetime"):
        operations.edit(row, run_after=dt.timedelta(hours=1))


@pytest.mark.parametrize("name", [" ", "a,b", "*", "\x1b[31m"])
def test_a_queue_with_a_name_that_none_can_be_given(admin: Client, name):
    row = nothing.enqueue()
    Job.objects.filter(pk=row.id).update(queue_name=name)
    for path in ("queue_pause", "queue_resume"):
        answer = admin.post(url(path), {"queue": name}, follow=True)
        assert "can't be written in runjobs --queues" in told(answer)[-1]
    assert admin.get(url("queue_purge"), {"queue": name}).status_code == 200
    admin.post(url("queue_purge"), {"queue": name, "state": ["available"]})
    assert not Job.objects.exists()


def test_a_queue_without_a_name(admin: Client):
    Job.objects.filter(pk=nothing.enqueue().id).update(queue_name="")
    for page in ("job_overview", "queue_changelist"):
        assert admin.get(url(page)).status_code == 200


def test_a_tag_that_no_text_can_hold_keeps_no_other_from_being_found(admin: Client):
    odd, other = nothing.enqueue(), nothing.using(tags=['of "x"']).enqueue()
    assert damage(odd.id, "tags", r"""'["\u0000","\ud800"]'""")
    assert [job.id for job in operations.list_jobs(Filter(word='of "x"')).jobs] == [other.id]


def test_an_infinite_timeout_and_an_infinite_argument(admin: Client, database_name):
    row = nothing.enqueue()
    infinite = "'Infinity'" if database_name == "postgresql" else "9e999"
    assert damage(row.id, "timeout", infinite)
    assert damage(row.id, "args", "'[1e999]'")
    assert operations.get(row.id).timeout is None
    assert admin.get(url("job_change", row.id)).status_code == 200
    assert operations.search_arguments(Filter(), "1").jobs == []


def test_the_greatest_number_of_claims_begins_again(database_name):
    from django_jobs.store import django_store

    worker = django_store("default").register_worker("host", 1, '["*"]', 1, "1", 30.0).id
    rows = nothing.enqueue_many([(), ()])
    assert damage(rows[0].id, "claims", "2147483647")
    claimed = django_store("default").claim(worker, "default", 10)
    assert [job.claims for job in claimed] == [1, 1]


def test_half_a_character_in_arguments_that_are_edited(admin: Client):
    row = nothing.using(pending=True).enqueue()
    assert damage(row.id, "args", r"""'["\ud800"]'""")
    assert r"\ud800" in admin.get(url("job_edit", row.id)).content.decode()


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "text", ["'2031-13-01 00:00:00'", "x'ff'", "'0001-01-01 00:00:00+14:00'", "5", "'soon'"]
)
@pytest.mark.parametrize("column", ["run_after", "created_at", "attempted_at"])
def test_a_time_that_is_none_on_djangos_connection(column, text):
    row, other = nothing.enqueue_many([(), ()])
    assert damage(row.id, column, text)
    assert getattr(operations.get(row.id), column) is None
    assert operations.cancel([row.id, other.id]).done == 2


@pytest.mark.postgresql
@pytest.mark.parametrize("text", ["'infinity'", "'-infinity'", "'20000-01-01'", "'0044-03-15 BC'"])
def test_a_time_that_python_does_not_have(admin: Client, text):
    row = nothing.using(run_after=dt.timedelta(days=1)).enqueue()
    assert damage(row.id, "run_after", text)
    assert operations.get(row.id).run_after is None
    for page in (url("job_change", row.id), url("job_changelist"), url("job_overview")):
        assert admin.get(page).status_code == 200


def test_what_is_refused_leaves_the_transaction_whole():
    for bad in ({"priority": 10**400}, {"queue_name": "\ud800"}, {"timeout": float("nan")}):
        with pytest.raises(InvalidJob):
            nothing.using(**bad)
    assert not connection.needs_rollback
    assert nothing.enqueue().id
