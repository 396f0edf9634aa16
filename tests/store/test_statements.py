"""Every operation is exactly one statement, with no transaction of its own; and every statement is there twice."""

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

import django_jobs
from tests.store.builders import Recorder, outcome
from tests.store.operations import expected_statement, expected_statements, operations

SQL = Path(django_jobs.__file__).parent / "sql"
# A claim past old entries of the index, and a look for rows that others hold: SQLite has neither.
ONLY_POSTGRESQL = {"claim_on", "locked"}


def files(vendor):
    return {path.stem for path in (SQL / vendor).glob("*.sql")}


def test_both_databases_have_the_same_statements():
    assert files("sqlite") | ONLY_POSTGRESQL == files("postgresql")


def test_every_operation_is_one_statement(store, make):
    recorder = store.session = Recorder(store.session)
    for name, operation in operations(make).items():
        recorder.seen.clear()
        before = recorder.session.statements

        assert operation(store), name

        expected = expected_statements(name, store.vendor)
        assert [statement.name for statement, _ in recorder.seen] == expected
        assert recorder.session.statements - before == len(expected)


def test_every_operation_is_one_query_on_djangos_connection(shared, make):
    for name, operation in operations(make).items():
        with CaptureQueriesContext(connection) as queries:
            assert operation(shared), name

        expected = len(expected_statements(name, shared.vendor))
        # Two go into a transaction, which Django tells too.
        assert len(queries) == (1 if expected == 1 else expected + 2), f"{name}: {queries.captured_queries}"


def test_every_statement_file_is_used(store, make):
    used = {expected_statement(name) for name in operations(make)}

    assert used == files(store.vendor) - ONLY_POSTGRESQL


def test_a_finish_reads_lost_claims_once_however_many(store, make, clock):
    jobs = make.claimed(make.worker(), count=20)
    store.release(jobs[:10], now=clock.now)
    before = store.session.statements

    store.finish([outcome(job) for job in jobs], now=clock.now)

    assert store.session.statements - before == 2


@pytest.mark.parametrize("operation", ["insert_many", "finish"])
def test_nothing_to_do_is_no_statement(store, operation):
    store.get([])
    before = store.session.statements

    getattr(store, operation)([])

    assert store.session.statements == before


@pytest.mark.parametrize("count", [1, 1000])
def test_the_number_of_jobs_does_not_change_the_number_of_statements(store, make, clock, count):
    worker = make.worker()
    before = store.session.statements
    make.insert(count)
    jobs = store.claim(worker, "default", count, now=clock.now)
    store.release(jobs, now=clock.now)
    jobs = store.claim(worker, "default", count, now=clock.now)
    store.cancel([job.id for job in jobs], now=clock.now)
    store.finish([outcome(job, "retry", delay=1.0) for job in jobs], now=clock.now)
    store.retry([job.id for job in jobs], now=clock.now)

    assert store.session.statements - before == 7


@pytest.mark.sqlite
def test_no_statement_leaves_a_transaction_open_or_the_write_lock_taken(store, open_store, make):
    other = open_store(timeout=1.0)
    for name, operation in operations(make).items():
        operation(store)
        assert not store.session.connection.in_transaction, name
        other.upsert_queue(name)


@pytest.mark.postgresql
def test_no_statement_leaves_a_transaction_open(store, make):
    for name, operation in operations(make).items():
        operation(store)
        assert store.session.connection.info.transaction_status == 0, name
