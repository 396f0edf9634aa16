"""The migrations: there and back, and nothing left to make."""

import pytest
from django.core.management import call_command
from django.db import connection

from django_jobs.models import Job

pytestmark = pytest.mark.django_db(transaction=True)

AUTOVACUUM = {
    "autovacuum_vacuum_scale_factor=0.01",
    "autovacuum_vacuum_threshold=5000",
    "autovacuum_vacuum_insert_scale_factor=0.05",
    "autovacuum_analyze_scale_factor=0.02",
    "autovacuum_vacuum_cost_delay=0",
}


@pytest.fixture
def migrate():
    """``migrate django_jobs``; at the end all are applied again, for the tests that follow."""

    def run(*target):
        call_command("migrate", "django_jobs", *target, verbosity=0)

    yield run
    run()


def tables():
    with connection.cursor() as cursor:
        names = connection.introspection.table_names(cursor)
    return {name for name in names if name.startswith("django_jobs_")}


def columns_and_constraints():
    with connection.cursor() as cursor:
        return {
            table: (
                [
                    (column.name, column.type_code, column.null_ok)
                    for column in connection.introspection.get_table_description(cursor, table)
                ],
                sorted(connection.introspection.get_constraints(cursor, table)),
            )
            for table in tables()
        }


def storage_options(table):
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = %s", [table])
        return set(cursor.fetchone()[0] or ())


def test_there_are_none_to_make(capsys):
    call_command("makemigrations", "django_jobs", check=True, dry_run=True)

    assert "No changes detected" in capsys.readouterr().out


def test_can_be_undone_and_done_again(migrate):
    before = columns_and_constraints()
    assert "django_jobs_job" in before

    migrate("zero")
    assert tables() == set()

    migrate()
    assert columns_and_constraints() == before
    assert Job.objects.count() == 0


def test_can_be_undone_with_jobs_in_the_table(migrate):
    Job.objects.create(name="tests.job", run_after="2031-01-01T00:00Z", created_at="2031-01-01T00:00Z")

    migrate("zero")
    migrate()

    assert Job.objects.count() == 0


@pytest.mark.postgresql
def test_the_tables_are_kept_as_a_queue_needs_it(migrate):
    assert storage_options("django_jobs_job") == AUTOVACUUM
    assert storage_options("django_jobs_stat") == {"fillfactor=60"}
    assert storage_options("django_jobs_job_pkey") == {"fillfactor=70"}

    migrate("zero")
    migrate()

    assert storage_options("django_jobs_job") == AUTOVACUUM


def test_show_their_sql(capsys):
    call_command("sqlmigrate", "django_jobs", "0001_initial", no_color=True)

    assert "CREATE TABLE" in capsys.readouterr().out
