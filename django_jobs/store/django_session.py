"""Statements on Django's connection, in the caller's transaction."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import Any

from django.db import connections, transaction

from django_jobs.store.sessions import Session
from django_jobs.store.statements import Statement

# Statements that return no times and no JSON but as text: to register what reads those as text is not for nothing.
_OF_TEXT = frozenset({"insert_now"})


class DjangoSession(Session):
    """Statements on ``connections[alias]`` of the calling thread: in the caller's transaction, counted by
    ``assertNumQueries``, with Django's exceptions. May be shared by threads."""

    def __init__(self, alias: str) -> None:
        super().__init__()
        self.alias = alias

    def fetch(self, statement: Statement, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        connection = connections[self.alias]
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                from django_jobs.store.postgresql_session import read_as_text

                if statement.name not in _OF_TEXT:
                    read_as_text(cursor.cursor)
                cursor.execute(statement.pyformat, parameters)
                return cursor.fetchall()  # type: ignore[no-any-return]
            from django_jobs.store.sqlite_session import readable, rows_of

            if statement.name == "merge_metadata":
                from django_jobs.store.sqlite_functions import add_functions

                add_functions(connection.connection)
            cursor.execute(statement.pyformat, parameters)
            with connection.wrap_database_errors:
                rows = rows_of(cursor.cursor)
            return rows if statement.name.startswith("insert") else readable(rows)

    @property
    def in_transaction(self) -> bool:
        connection = connections[self.alias]
        # Without autocommit, too: who has turned that off ends the transaction.
        return connection.in_atomic_block or not connection.get_autocommit()

    def savepoint(self) -> AbstractContextManager[None]:
        connection = connections[self.alias]
        # Without autocommit SQLite's driver begins a transaction with the first write: a savepoint before that, let go,
        # would commit.
        if connection.in_atomic_block or (connection.vendor != "sqlite" and self.in_transaction):
            return transaction.atomic(using=self.alias)
        return contextlib.nullcontext()

    def transaction(self) -> AbstractContextManager[None]:
        return transaction.atomic(using=self.alias)
