"""What few jobs have comes packed from a claim on SQLite: exactly what the columns hold, whoever wrote it."""

import pytest
from django.db import connection

from django_jobs.store.rows import JOB_COLUMNS
from tests.store.builders import Recorder, write

pytestmark = pytest.mark.sqlite

COLUMNS = [
    "cancel_requested_at", "unique_key", "tags", "error_class", "errors", "result", "metadata", "timeout", "key_until",
]  # fmt: skip
LITERALS = [
    "''", "'NULL'", "'t41'", "'X''41'''", "'it''s, \"this\"'", "'a' || char(0) || 'b'", "'☃'", "CAST(x'ff41' AS TEXT)",
    "CAST(x'edA080' AS TEXT)", "x''", "x'00ff'", "0", "-9223372036854775808", "2.5", "0.1", "-1e-300", "9e999",
    "-9e999", "1e22", "'2031-01-01 00:00:00.000000'",
]  # fmt: skip


def exactly(job):
    return {name: (type(value), repr(value)) for name, value in zip(JOB_COLUMNS, job.values, strict=True)}


@pytest.mark.parametrize("column", COLUMNS)
def test_a_claim_brings_what_a_column_holds(store, make, clock, column):
    """Of one job in twenty, each with its own value, so that all come packed."""
    jobs = make.insert(20 * len(LITERALS))
    for job, literal in zip(jobs[::20], LITERALS, strict=True):
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE django_jobs_job SET {column} = {literal} WHERE id = {job.id}")
    worker = make.worker()
    recorder = store.session = Recorder(store.session)

    claimed = store.claim(worker, "default", len(jobs), now=clock.now)

    assert "hex(" in recorder.seen[0][0].named
    assert {job.id: exactly(job) for job in claimed} == {
        job.id: exactly(job) for job in store.get([job.id for job in jobs])
    }


def test_all_of_them_at_once(store, make, clock):
    job, *_ = make.insert(20)
    for column in COLUMNS:
        write(job, column, f"of {column}")
    write(job, "holds_key", True)

    claimed = {each.id: each for each in store.claim(make.worker(), "default", 20, now=clock.now)}

    assert exactly(claimed[job.id]) == exactly(make.again(job))
    assert claimed[job.id].holds_key


def test_where_many_have_something_all_comes_as_it_is(store, make, clock):
    worker = make.worker()
    recorder = store.session = Recorder(store.session)

    def claimed_packed():
        recorder.seen.clear()
        jobs = store.claim(worker, "default", 10, now=clock.now)
        assert jobs == store.get([job.id for job in jobs])
        return "hex(" in recorder.seen[0][0].named

    make.insert(10)
    make.insert(20, tags='["red"]')
    make.insert(20)
    # Each claim goes by what the one before brought.
    assert [claimed_packed() for _ in range(5)] == [True, True, False, False, True]
