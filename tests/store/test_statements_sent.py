"""What each operation sends to the database, counted by the database's own library: BEGIN and COMMIT too."""

import re

import pytest
from django.db import connection

from django_jobs.store.outcomes import COMPLETED
from django_jobs.store.rows import NewJob, Outcome
from tests.store.operations import expected_statements, operations

SENT = re.compile(r"^(?:\S+ \S+\t|)F\t\d+\t(Execute|Query|FunctionCall)\b", re.MULTILINE)


class Sent:
    """Counts what one connection of a driver's sends."""

    def __init__(self, driver, vendor, folder):
        self.driver, self.vendor = driver, vendor
        self.texts = []
        self.file = (folder / "trace").open("w+")
        if vendor == "sqlite":
            driver.set_trace_callback(self.texts.append)

    def count(self, operation, *args):
        if self.vendor == "sqlite":
            self.texts.clear()
            assert operation(*args)
            return len(self.texts)
        self.file.truncate(0)
        self.driver.pgconn.trace(self.file.fileno())
        try:
            assert operation(*args)
        finally:
            self.driver.pgconn.untrace()
        self.file.seek(0)
        return len(SENT.findall(self.file.read()))


@pytest.fixture
def counted(transactional_db, tmp_path, database_name):
    made = []

    def count(driver):
        made.append(Sent(driver, database_name, tmp_path))
        return made[-1]

    yield count
    for sent in made:
        sent.file.close()
        if database_name == "sqlite":
            sent.driver.set_trace_callback(None)


def expected(name, vendor):
    statements = len(expected_statements(name, vendor))
    return statements if statements == 1 else statements + 2  # two go into a transaction


def extra(make):
    """What operations() has not: a full claim, a job that waits for an operator, a change of a queue."""
    now = make.clock.now
    worker = make.worker()
    make.insert(50, queue_name="fifty")
    one = make.claimed(worker, queue_name="one")[0]
    return {
        "claim of 50": lambda store: len(store.claim(worker, "fifty", 50, now=now)) == 50,
        "insert pending": lambda store: store.insert(NewJob("tests.job", pending=True), now=now),
        "complete one": lambda store: store.finish([Outcome(one.id, one.claims, COMPLETED)], now=now),
        "change of a queue": lambda store: store.upsert_queue("mail", pause=False, now=now),
        "leadership again": lambda store: store.acquire_leadership("other", "a", 30.0, now=now),
    }


def test_on_a_connection_of_its_own_each_operation_is_one_statement(store, make, counted):
    sent = counted(store.session.connection)
    wanted = {**extra(make), **operations(make)}

    numbers = {name: sent.count(operation, store) for name, operation in wanted.items()}
    assert numbers == {name: expected(name, store.vendor) for name in wanted}


def test_on_djangos_connection_too_outside_of_a_transaction(shared, make, counted):
    connection.ensure_connection()
    sent = counted(connection.connection)
    wanted = {**extra(make), **operations(make)}

    numbers = {name: sent.count(operation, shared) for name, operation in wanted.items()}
    assert numbers == {name: expected(name, shared.vendor) for name in wanted}


def test_a_transaction_is_counted(counted, transactional_db):
    """The counter sees what it is there to see."""
    from django.db import transaction

    def two():
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            return True

    connection.ensure_connection()
    assert counted(connection.connection).count(two) == 3
