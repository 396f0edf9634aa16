"""PostgreSQL: the queue's tables in a schema of the search path, and psycopg's connection pool."""

import pytest
from django.db import connection

from django_jobs.models import Job
from tests.waiting import eventually
from tests.workload.models import Effect

pytestmark = pytest.mark.postgresql


@pytest.fixture
def schema(site):
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA tenant")
    site.setup = {"DATABASES": {"default": {"OPTIONS": {"options": "-c search_path=tenant"}}}}
    yield "tenant"
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA tenant CASCADE")


@pytest.mark.parametrize("pooled", [False, True])
def test_tables_in_a_schema(site, schema, pooled):
    site.setup["DJANGO_JOBS"] = {
        "PREPARED_STATEMENTS": not pooled,
        "NOTIFY": not pooled,
        "POLL_INTERVAL": 0.1,
    }
    site.manage("migrate", "--run-syncdb", "--verbosity", "0")
    worker = site.start("runjobs")
    worker.wait_for_output("Stop with Ctrl-C")
    site.python("from tests.workload import jobs; jobs.leave_effect.enqueue_many([()] * 20)")

    def effects():
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM tenant.django_jobs_job WHERE state = 'completed'")
            return cursor.fetchone()[0] == 20

    eventually(effects)
    assert not Job.objects.exists()
    assert not Effect.objects.exists()


def test_a_pool_smaller_than_the_worker(site):
    site.setup = {
        "DATABASES": {"default": {"OPTIONS": {"pool": {"min_size": 1, "max_size": 2, "timeout": 20}}}}
    }
    site.python("from tests.workload import jobs; jobs.leave_effect.enqueue_many([()] * 100)")

    output = site.manage("runjobs", "--drain", "--concurrency", "8")

    assert "100 completed, 0 failed" in output
    assert Effect.objects.count() == 100
