"""How the database is emptied after a test that commits: only the tables that hold something.

Django's own way empties every table of the site, whether it was used or not, and then makes content types and
permissions anew. That took more time than most of the tests. Here those two tables are left as they are, unless a
test has changed them: then it is done Django's way.
"""

from collections.abc import Callable
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

# What ``migrate`` fills, and how many rows it made of each, by the database's name.
MADE_BY_MIGRATE = ("django_content_type", "auth_permission")
made: dict[str, list[int]] = {}

djangos_way: Callable[[TransactionTestCase], None] = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]


def install() -> None:
    """Have every test that commits clean up in this way."""
    TransactionTestCase._fixture_teardown = clean_up  # type: ignore[attr-defined]


def note_what_migrate_made() -> None:
    """Remember what the tables hold that are left alone. To be called when the databases have been made."""
    for connection in connections.all():
        made[str(connection.settings_dict["NAME"])] = count(connection)


def clean_up(test: TransactionTestCase) -> None:
    if (
        test.reset_sequences
    ):  # those of what is left alone, too: their next row would have the number of the first
        djangos_way(test)
        return
    for alias in test._databases_names(include_mirrors=False):  # type: ignore[attr-defined]
        connection = connections[alias]
        if count(connection) != made.get(str(connection.settings_dict["NAME"])):
            djangos_way(test)
            return
        empty(connection)


def count(connection: BaseDatabaseWrapper) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in MADE_BY_MIGRATE))
        return list(cursor.fetchone())


def empty(connection: BaseDatabaseWrapper) -> None:
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = [connection.ops.quote_name(name) for name in names if name not in MADE_BY_MIGRATE]
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM {table})" for table in tables))
        used = [table for table, is_used in zip(tables, cursor.fetchone(), strict=True) if is_used]
    connection.ops.execute_sql_flush(statements(connection, used))


def statements(connection: BaseDatabaseWrapper, tables: list[str]) -> list[Any]:
    """They are one transaction, in which keys to what is gone already are no error before its end.

    On PostgreSQL a table of jobs is made anew, as no test may find what others have left in its pages and indexes:
    plans and the buffers that a statement reads are tested. For the rest that would only cost ten times as much.
    """
    anew = {table for table in tables if connection.vendor == "postgresql" and "django_jobs_" in table}
    return [f"TRUNCATE {table}" for table in sorted(anew)] + [
        f"DELETE FROM {table}" for table in tables if table not in anew
    ]
