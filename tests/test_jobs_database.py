"""Which database holds the jobs: what the call says, the setting, the routers, the default."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from django_jobs import job, operations
from django_jobs.databases import jobs_database
from django_jobs.models import Job
from django_jobs.operations import InvalidFilter
from django_jobs.operations.filters import as_filter
from django_jobs.store import django_store


@pytest.fixture(autouse=True)
def _other_databases(monkeypatch):
    """Aliases that can be named; nothing connects to them."""
    for alias in ("other", "third"):
        monkeypatch.setitem(connections.settings, alias, connections.settings["default"])


class ToOther:
    def db_for_write(self, model, **hints):
        return "other" if model is Job else None


class ToNowhere:
    def db_for_write(self, model, **hints):
        return "nowhere"


class NoOpinion:
    def db_for_read(self, model, **hints):
        return "third"


def test_is_the_default_one():
    assert jobs_database() == "default"


def test_is_the_one_of_the_setting(settings):
    settings.DJANGO_JOBS = {"DATABASE": "other"}

    assert jobs_database() == "other"


def test_is_the_one_that_a_router_gives_for_writing_jobs(settings):
    settings.DATABASE_ROUTERS = [ToOther()]

    assert jobs_database() == "other"


def test_is_the_default_one_where_no_router_has_a_say(settings):
    settings.DATABASE_ROUTERS = [NoOpinion()]

    assert jobs_database() == "default"


def test_the_setting_goes_before_the_router_and_the_call_before_both(settings):
    settings.DATABASE_ROUTERS = [ToOther()]
    settings.DJANGO_JOBS = {"DATABASE": "third"}

    assert jobs_database() == "third"
    assert jobs_database("default") == "default"


@pytest.mark.parametrize("routers", [[], [ToNowhere()]])
def test_that_does_not_exist(settings, routers):
    settings.DATABASE_ROUTERS = routers

    with pytest.raises(ImproperlyConfigured) as refusal:
        jobs_database(None if routers else "nowhere")
    assert (
        str(refusal.value) == "There is no database 'nowhere' in DATABASES; there are: default, other, third."
    )


def test_that_a_job_names():
    definition = job(name="tests.other_database", using="other")(lambda: None)

    assert definition.prepare().using == "other"
    assert definition.using(using="third").prepare().using == "third"


@pytest.mark.parametrize("operation", [operations.cancel, operations.delete, operations.list_jobs])
def test_a_job_of_another_one_is_not_taken_for_that_of_its_id_here(db, django_assert_num_queries, operation):
    row = job(name="tests.here")(lambda: None).enqueue()
    row.using = "other"

    with (
        django_assert_num_queries(0),
        pytest.raises(
            InvalidFilter, match=rf"^Job {row.id} is in the database 'other', .*: give using='other'"
        ),
    ):
        operation([row])
    assert Job.objects.get().state == "available"


def test_a_job_that_says_nothing_is_taken_for_one_of_the_database_that_was_named(db):
    """As a worker's rows, and those that signals bring: they may be of any."""
    (row,) = django_store("default").get([job(name="tests.untold")(lambda: None).enqueue().id])

    assert as_filter(row, "other").id_list == (row.id,)
    assert as_filter([row], None).id_list == (row.id,)


def test_a_changed_job_knows_the_database_that_it_was_read_from(db):
    row = operations.get(job(name="tests.changed")(lambda: None).enqueue().id, using="default")

    assert operations.edit(row, priority=3).using == "default"
