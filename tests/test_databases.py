"""The plugin that chooses the database of a run."""

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from tests.databases import with_database_name


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgres://user:p%40ss@host:5433/site", "postgres://user:p%40ss@host:5433/test_site"),
        ("postgres://host/site?sslmode=require", "postgres://host/test_site?sslmode=require"),
        ("postgres:////run/postgresql/site", "postgres:////run/postgresql/test_site"),
    ],
)
def test_a_url_keeps_its_server_and_changes_its_database(url, expected):
    assert with_database_name(url, "test_site") == expected


def test_the_url_of_a_sqlite_file_is_its_path():
    assert with_database_name("sqlite:////tmp/a.sqlite3", "/tmp/b.sqlite3") == "sqlite:////tmp/b.sqlite3"


@pytest.mark.django_db
def test_the_run_is_on_the_chosen_database(database_name, database_url):
    assert connection.vendor == database_name
    assert database_url.endswith(str(connection.settings_dict["NAME"]))


@pytest.mark.sqlite
@pytest.mark.django_db
def test_sqlite_is_a_file_in_wal_mode():
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.postgresql
@pytest.mark.django_db
def test_postgresql_is_a_supported_version():
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        assert int(cursor.fetchone()[0]) >= 150000


@pytest.mark.django_db(transaction=True)
def test_another_process_sees_the_test_database(run_manage):
    Group.objects.create(name="committed by the test")

    process = run_manage("dumpdata", "auth.group")

    assert process.wait() == 0
    assert "committed by the test" in process.output
