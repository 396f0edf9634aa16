"""What the counters take for what: zero resets and zero reads mean something only if others would be seen."""

import sqlite3

import pytest

from benchmarks.core.meters import meter_of
from benchmarks.core.statements import is_job_read, is_reset
from benchmarks.core.tracing import Counts, counted_between
from django_jobs.models import Job
from django_jobs.store.statements import statement


@pytest.mark.parametrize("sql", ["DISCARD ALL", "reset all", " ROLLBACK", "DEALLOCATE ALL"])
def test_what_cleans_a_connection_is_a_reset(sql):
    assert is_reset(sql)


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT set_config('a', 'b', false)", "BEGIN", "COMMIT"])
def test_what_does_not_is_none(sql):
    assert not is_reset(sql)


@pytest.mark.parametrize("name", ["get", "running"])
@pytest.mark.parametrize("vendor", ["sqlite", "postgresql"])
def test_the_queues_own_reads_of_jobs_are_seen(vendor, name):
    assert is_job_read(statement(vendor, name).named)


def test_the_orms_reads_of_jobs_are_seen(db):
    assert is_job_read(str(Job.objects.filter(pk=1).query))


@pytest.mark.parametrize("name", ["claim", "complete", "finish", "next_due", "waiting_queues", "heartbeat"])
@pytest.mark.parametrize("vendor", ["sqlite", "postgresql"])
def test_what_a_worker_must_do_is_no_such_read(vendor, name):
    assert not is_job_read(statement(vendor, name).named)


def test_statements_and_commits_on_sqlite_are_counted():
    counts = Counts()
    connection = sqlite3.connect(":memory:", isolation_level=None)
    counts.watch(connection)

    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO t VALUES (2)")
    connection.execute("UPDATE t SET a = 3")
    connection.execute("COMMIT")
    connection.execute("SELECT a FROM t").fetchall()
    assert counts["resets"] == 0
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")
    connection.close()

    assert (counts["connections"], counts["statements"], counts["commits"]) == (1, 9, 2)
    assert counts["resets"] == 1


def test_whole_seconds_between_two_times_are_counted():
    counts = {"at 10": 1, "at 11": 2, "at 12": 4, "at 13": 8}

    assert counted_between(counts, 10.5, 13.2) == 6


@pytest.mark.postgresql
def test_a_meter_counts_others_and_not_itself(database_url, tmp_path, transactional_db):
    import psycopg

    from benchmarks.core.databases import Database

    meter = meter_of(
        Database("postgresql", database_url.replace("postgres://", "postgresql://"), "", tmp_path)
    )
    if not meter.run("SELECT 1 FROM pg_extension WHERE extname = 'pg_stat_statements'"):
        meter.run("CREATE EXTENSION pg_stat_statements")
        meter.close()
        meter = meter_of(Database("postgresql", database_url, "", tmp_path))
    before = meter.counters()
    meter.now()
    meter.workers()
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("SELECT 1 AS benchmarks_counted")
        other.execute("DISCARD ALL")
    after = meter.counters()
    meter.run("DROP EXTENSION pg_stat_statements")
    meter.close()

    assert after.statements - before.statements == 2
    assert after.resets - before.resets == 1
    assert after.job_reads == before.job_reads
