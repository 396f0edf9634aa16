"""Rows that somebody else's SQL has damaged: each is one bad row, and its neighbours never suffer."""

import datetime as dt
import sys
import threading

import pytest
from django.db import connection

from django_jobs.serialization import Undecodable
from tests.store.builders import outcome, write

JSON_COLUMNS = ["args", "kwargs", "tags", "errors", "result", "metadata"]


def write_bytes(job, column, data, kind="TEXT"):
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE django_jobs_job SET {column} = CAST(x'{data.hex()}' AS {kind}) WHERE id = {job.id}"
        )


def claim_with_neighbours(store, make, clock, damage):
    """The damaged job as it was claimed, in the middle of others, and then completed with them."""
    worker = make.worker()
    jobs = make.insert(5)
    damage(jobs[2])

    claimed = store.claim(worker, "default", 10, now=clock.now)

    assert {job.id for job in claimed} == {job.id for job in jobs}
    outcomes = [outcome(job) for job in claimed]
    ended = store.finish(outcomes, now=clock.now, whole_rows=True)
    assert [each.stored for each in ended] == [True] * 5
    return next(job for job in claimed if job.id == jobs[2].id)


def decoded(job, column):
    """The column's value. How deep is too deep is a number of levels; from Python 3.14 on it is what a thread's stack
    holds: there in a small one, since PostgreSQL takes few more levels than these."""
    if sys.version_info < (3, 14):
        return getattr(job, column)
    values = []
    usual = threading.stack_size(1_000_000)
    thread = threading.Thread(target=lambda: values.append(getattr(job, column)))
    thread.start()
    threading.stack_size(usual)
    thread.join()
    return values[0]


@pytest.mark.parametrize("column", JSON_COLUMNS)
@pytest.mark.parametrize("text", ["[" * 12_000 + "]" * 12_000, "1" * 5000], ids=["deep", "long number"])
def test_json_that_python_does_not_decode(store, make, clock, column, text):
    job = claim_with_neighbours(store, make, clock, lambda job: write(job, column, text))

    value = decoded(job, column)
    assert (type(value), value) == (Undecodable, text)


@pytest.mark.sqlite
@pytest.mark.parametrize("column", JSON_COLUMNS)
@pytest.mark.parametrize("text", ["", "no JSON", "[1,", "{'a': 1}", "NaN", "[Infinity]"])
def test_text_that_is_no_json(store, make, clock, column, text):
    job = claim_with_neighbours(store, make, clock, lambda job: write(job, column, text))

    value = getattr(job, column)
    assert (type(value), value) == (Undecodable, text)


@pytest.mark.sqlite
@pytest.mark.parametrize("column", JSON_COLUMNS)
@pytest.mark.parametrize(
    ("data", "shown"),
    [(b"\xff\xfe", "\\xff\\xfe"), (b'["caf\xc3"]', '["caf\\xc3"]'), (b"\xed\xa0\x80", "\\xed\\xa0\\x80")],
)
@pytest.mark.parametrize("kind", ["TEXT", "BLOB"])
def test_bytes_that_are_no_text(store, make, clock, column, data, shown, kind):
    job = claim_with_neighbours(store, make, clock, lambda job: write_bytes(job, column, data, kind))

    value = getattr(job, column)
    assert (type(value), value) == (Undecodable, shown)


@pytest.mark.sqlite
@pytest.mark.parametrize("column", ["name", "error_class", "unique_key"])
def test_a_name_that_is_no_text_can_be_shown(store, make, clock, column):
    job = claim_with_neighbours(store, make, clock, lambda job: write_bytes(job, column, b"a\xff"))

    assert getattr(job, column) == "a\\xff"


@pytest.mark.sqlite
@pytest.mark.parametrize("text", ["soon", "", "2031-13-01 00:00:00", "2031-01-01 00:00:00+00:00", "5"])
def test_a_time_that_is_none(store, make, clock, text):
    claim_with_neighbours(store, make, clock, lambda job: write(job, "run_after", text))


@pytest.mark.sqlite
def test_text_is_text_again_after_a_damaged_row(store, make, clock):
    claim_with_neighbours(store, make, clock, lambda job: write_bytes(job, "args", b"\xff"))
    job = make.one(args='["caf\N{LATIN SMALL LETTER E WITH ACUTE}"]')

    assert type(make.again(job).name) is str
    assert make.again(job).args == ["caf\N{LATIN SMALL LETTER E WITH ACUTE}"]


@pytest.mark.sqlite
@pytest.mark.parametrize("operation", ["cancel", "retry", "get"])
def test_an_operators_statement_on_djangos_connection(shared, make, clock, operation):
    (job, other) = make.finished("failed", count=2)
    write_bytes(job, "errors", b'["\xff"]')

    answers = getattr(shared, operation)([job.id, other.id])

    assert len(answers) == 2
    assert make.again(job).errors == '["\\xff"]'


@pytest.mark.sqlite
def test_times_with_a_zone_are_ordered_among_the_others(store, make, clock):
    worker = make.worker()
    first, second, third = make.insert(3)
    write(first, "run_after", "2031-01-01 00:00:02.000000")
    write(second, "run_after", "2031-01-01 00:00:01+00:00")
    write(third, "run_after", "2031-01-01 00:00:00.000000")

    claimed = store.claim(worker, "default", 3, now=clock.now)

    assert [job.id for job in claimed] == [third.id, second.id, first.id]
    assert claimed[1].run_after == dt.datetime(2031, 1, 1, 0, 0, 1, tzinfo=dt.UTC)


@pytest.mark.sqlite
def test_a_worker_and_what_it_runs_are_told_whatever_their_times(shared, make, clock):
    """On Django's connection, which fails on a column that has no such time."""
    worker = make.worker()
    job = make.running(worker)
    write(job, "attempted_at", "2031-13-01 00:00:00")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_jobs_worker SET heartbeat_at = '2031-13-01 00:00:00'")

    (held,) = shared.held_jobs([worker], 3)
    _, (live,) = shared.live_workers(now=clock.now)

    assert (held.id, held.attempted_at) == (job.id, None)
    assert (live.id, live.heartbeat_at.year) == (worker, 9999)
