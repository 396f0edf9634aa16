"""What PostgreSQL reads for an operation of a store: its buffers, and the indexes that it goes by."""

import copy
from collections.abc import Callable
from typing import Any

import psycopg
from django.db import connection

from django_jobs.store import Store, own_store
from django_jobs.store.low_water import LowWater
from django_jobs.store.sessions import Session
from django_jobs.store.statements import Statement
from tests.store.plans import explained, indexes_of_jobs, nodes


class Reading:
    """What PostgreSQL read for an operation."""

    def __init__(self, topmost: dict[str, Any]) -> None:
        self.buffers = topmost["Shared Hit Blocks"] + topmost["Shared Read Blocks"]
        self.rows = topmost["Actual Rows"]
        self.indexes = indexes_of_jobs(nodes(topmost))


class Noted(Session):
    """Notes statements, and runs none."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Statement, dict[str, Any]]] = []

    def fetch(self, statement: Statement, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        self.seen.append((statement, parameters))
        return []


class Explainer:
    """Explains operations of a store on a connection of its own, as a worker's session plans them."""

    def __init__(self) -> None:
        self.noting = own_store("default")
        self.noting.session = self.noted = Noted()
        self.explaining = own_store("default")

    @property
    def driver(self) -> Any:
        """The connection."""
        return self.explaining.session.connection

    def explain(
        self,
        operation: Callable[[Store], Any],
        marks: LowWater,
        changed: Callable[[str], str] = lambda text: text,
    ) -> Reading:
        """What the first statement of an operation reads. It is done, and undone.

        :param marks: where claims begin.
        :param changed: the statement, otherwise.
        """
        self.noting.low_water = copy.deepcopy(marks)
        self.noted.seen.clear()
        operation(self.noting)
        statement, parameters = self.noted.seen[0]
        statement = statement._replace(named=changed(statement.named))
        return Reading(explained(self.driver, statement, parameters, analyze=True))

    def close(self) -> None:
        """Close the connection."""
        self.explaining.close()


def connect(autocommit: bool = False) -> psycopg.Connection[Any]:
    """A connection that no store uses."""
    parameters = connection.get_connection_params()
    for key in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(key, None)
    return psycopg.connect(**parameters, autocommit=autocommit)


def open_for_long() -> psycopg.Connection[Any]:
    """Somebody's transaction, a report or a backup: what it can see is kept while it is open."""
    old = connect()
    old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    old.execute("SELECT")
    return old
