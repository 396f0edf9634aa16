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
        return connections[self.alias].in_atomic_block

    def savepoint(self) -> AbstractContextManager[None]:
        if self.in_transaction:
            return transaction.atomic(using=self.alias)
        return contextlib.nullcontext()

    def transaction(self) -> AbstractContextManager[None]:
        return transaction.atomic(using=self.alias)
