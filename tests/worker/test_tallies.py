"""What is counted of attempts for the statistics, and how it gets to the database."""

import datetime as dt
import logging
import threading

import pytest
from django.db import OperationalError, transaction

from django_jobs import operations
from django_jobs.models import Job, Stat
from django_jobs.store.answers import Ended
from django_jobs.store.rows import NewJob
from django_jobs.worker.recorder import Recorder
from django_jobs.worker.statistics import Statistics
from django_jobs.worker.tallies import MOST_KEYS, OTHERS, Tallies
from tests.waiting import eventually
from tests.worker.fakes import attempted, row


@pytest.fixture
def statistics():
    return Statistics()


@pytest.fixture
def record(statistics):
    """Record outcomes with the states that were stored."""

    def record(*pairs):
        ended = {item.outcome.id: Ended(item.outcome.id, state, state is not None) for item, state in pairs}
        Recorder(statistics)([item for item, _ in pairs], ended)

    return record


class Written:
    """A store that keeps what is written, or fails."""

    def __init__(self, *faults):
        self.faults = list(faults)
        self.rows = []

    def record_stats(self, rows):
        if self.faults:
            raise self.faults.pop(0)
        self.rows += rows


def flushed(statistics):
    store = Written()
    statistics.tallies.flush(store)
    return sorted(store.rows)


def job(id_, wait=0.0, **columns):
    due = dt.datetime(2031, 5, 6, 7, 8, 9)
    claimed = due + dt.timedelta(seconds=wait)
    return row(id_, run_after=f"{due}", attempted_at=f"{claimed}", **columns)


def test_what_is_counted_of_a_batch(statistics, record):
    error = {"error_class": "ValueError"}
    record(
        (attempted(job(1, 2.0))._replace(seconds=0.5), "completed"),
        (attempted(job(2, 6.0))._replace(seconds=0.1), "completed"),
        (attempted(job(3, 1.0, queue_name="mail"))._replace(seconds=0.2), "completed"),
        (attempted(job(4, 1.0, name="other"), "failed", **error), "failed"),
        (attempted(job(5, 3.0, name="other"), "retry", 0.0, **error), "failed"),
        (attempted(job(6, 1.0), "retry", 5.0, **error), "scheduled"),
        (attempted(job(7, 1.0), "snoozed", 5.0, error_class="django_jobs.NotRegistered"), "scheduled"),
        (attempted(job(8, 1.0), "cancelled", error_class="django_jobs.Cancel"), "cancelled"),
        (attempted(job(9, 1.0)), None),
    )
    record((attempted(job(10, 9.0))._replace(seconds=0.3), "completed"))

    assert [row[:5] for row in flushed(statistics)] == [
        ("default", "other", "failed", "ValueError", 2),
        ("default", "tests.job", "cancelled", "", 1),
        ("default", "tests.job", "completed", "", 3),
        ("default", "tests.job", "retried", "ValueError", 1),
        ("default", "tests.job", "snoozed", "", 1),
        ("mail", "tests.job", "completed", "", 1),
    ]
    assert flushed(statistics) == []


def test_times_that_are_counted(statistics, record):
    record(
        (attempted(job(1, 2.0))._replace(seconds=0.5), "completed"),
        (attempted(job(2, 6.0))._replace(seconds=0.25), "completed"),
        (attempted(job(3, 4.0), "retry", 5.0)._replace(seconds=0.5), "scheduled"),
        (attempted(job(4, 1.0), "retry", 5.0)._replace(seconds=1.5), "scheduled"),
    )
    record((attempted(job(5, 5.0))._replace(seconds=0.25), "completed"))

    completed, retried = flushed(statistics)
    assert completed[5:] == (1.0, 0.5, 13.0, 6.0)
    assert retried[5:] == (2.0, 1.5, 5.0, 4.0)


@pytest.mark.parametrize(
    ("claimed", "due"),
    [
        ("2031-05-06 07:08:09", "2031-05-06 07:08:10"),  # due after its claim, by somebody's SQL
        ("2031-05-06 07:08:09", "infinity"),
        ("2031-05-06 07:08:09", None),
        (None, "2031-05-06 07:08:09"),
        ("2031-05-06 07:08:09+00", "2031-05-06 07:08:09"),
    ],
)
@pytest.mark.parametrize("state", ["completed", "scheduled"])
def test_times_that_can_not_be_read_count_as_none(statistics, record, claimed, due, state):
    damaged = row(1, attempted_at=claimed, run_after=due)
    kind = "completed" if state == "completed" else "retry"
    record(
        (attempted(damaged, kind, 5.0 if kind == "retry" else None), state),
        (attempted(job(2, 3.0)), "completed"),
    )

    assert sum(row.number for row in flushed(statistics)) == 2


def test_what_can_not_be_written_is_written_later(statistics, record, caplog):
    record((attempted(job(1)), "completed"))
    store = Written(OperationalError("away"))
    with caplog.at_level(logging.WARNING, "django_jobs"):
        statistics.tallies.flush(store)
    assert "The statistics can't be written now: OperationalError: away" in caplog.text

    record((attempted(job(2)), "completed"))
    statistics.tallies.flush(store)
    assert [row.number for row in store.rows] == [2]


def test_kinds_without_end_are_bounded():
    tallies = Tallies()
    for number in range(MOST_KEYS + 50):
        tallies.add({(f"tenant {number}", "tests.job", "completed", ""): [1, 0.5, 0.5, 1.0, 1.0]})
        tallies.add({(f"tenant {number}", "tests.job", "failed", "E"): [1, 0.5, 0.5, 1.0, 1.0]})
    store = Written()
    tallies.flush(store)

    assert len(store.rows) == MOST_KEYS + 2
    assert sum(row.number for row in store.rows) == 2 * (MOST_KEYS + 50)
    others = [row for row in store.rows if row.queue_name == OTHERS]
    assert sorted(row[1:4] for row in others) == [(OTHERS, "completed", ""), (OTHERS, "failed", OTHERS)]


def test_what_was_given_out_is_not_changed_by_what_comes_after():
    tallies = Tallies()
    tally = [1, 0.5, 0.5, 1.0, 1.0]
    tallies.add({("a", "b", "completed", ""): tally})
    tallies.add({("a", "b", "completed", ""): [1, 0.5, 0.5, 1.0, 1.0]})

    assert tally == [1, 0.5, 0.5, 1.0, 1.0]


def test_a_site_can_do_without(settings):
    settings.DJANGO_JOBS = {"STATISTICS_RETENTION": 0}
    statistics = Statistics()
    item = attempted(job(1))
    Recorder(statistics)([item], {1: Ended(1, "completed", True)})

    assert flushed(statistics) == []
    assert statistics.completed == 1


# -- in a worker -------------------------------------------------------------------------------------------------------


def totals():
    return sorted(Stat.objects.values_list("name", "outcome", "error_class", "count"))


def fail():
    raise ValueError("no")


def test_a_worker_writes_with_its_heartbeat(live, define):
    good, bad = define(lambda: None, name="tests.good"), define(fail, name="tests.bad", max_attempts=1)
    worker = live(heartbeat_interval=0.1, lease=300.0)
    good.enqueue_many([()] * 20)
    bad.enqueue()

    eventually(lambda: len(totals()) == 2 and totals()[1][3] == 20)
    assert totals() == [("tests.bad", "failed", "ValueError", 1), ("tests.good", "completed", "", 20)]
    assert worker.statistics.completed == 20


def test_what_is_not_written_yet_is_written_at_the_stop(live, define):
    good = define(lambda: None, name="tests.good")
    worker = live(heartbeat_interval=60.0)
    good.enqueue_many([()] * 20)
    eventually(lambda: worker.statistics.completed == 20)
    assert totals() == []

    worker.stop()
    eventually(lambda: totals() == [("tests.good", "completed", "", 20)])


def test_a_worker_with_nothing_to_count_writes_nothing(live):
    worker = live(heartbeat_interval=0.05)
    written = []
    worker.statistics.tallies.flush = lambda store, flush=worker.statistics.tallies.flush: (
        written.append(store.session.statements),
        flush(store),
        written.append(store.session.statements),
    )
    eventually(lambda: len(written) >= 6)

    assert written[0::2] == written[1::2]


def test_jobs_that_a_stopping_worker_hands_back_are_counted(live, define):
    entered, leave = threading.Event(), threading.Event()
    slow = define(lambda: (entered.set(), leave.wait(30)), name="tests.slow")
    worker = live(shutdown_timeout=0.1)
    slow.enqueue()
    assert entered.wait(30)
    worker.stop()
    try:
        eventually(lambda: totals() == [("tests.slow", "retried", "django_jobs.WorkerLost", 1)])
    finally:
        leave.set()


# -- without a worker --------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_waiting_jobs_that_are_cancelled_are_counted_once(store):
    waiting = store.insert_many([NewJob("tests.job")] * 3)
    ids = [each.id for each in waiting]

    operations.cancel(ids)
    operations.cancel(ids)

    assert totals() == [("tests.job", "cancelled", "", 3)]


@pytest.mark.django_db(transaction=True)
def test_they_are_counted_when_the_callers_transaction_is_over(store):
    """Else the rows of statistics would be locked, and workers would wait for them, as long as it takes."""
    first, second = store.insert_many([NewJob("tests.job")] * 2)
    with transaction.atomic():
        operations.cancel(first.id)
        assert totals() == []
    assert totals() == [("tests.job", "cancelled", "", 1)]

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        operations.cancel(second.id)
        raise ZeroDivisionError
    assert totals() == [("tests.job", "cancelled", "", 1)]
    assert Job.objects.get(pk=second.id).state == "available"


@pytest.mark.django_db(transaction=True)
def test_that_a_count_fails_undoes_no_cancel(store, monkeypatch, caplog):
    def broken(self, rows, now=None):
        raise OperationalError("away")

    (waiting,) = store.insert_many([NewJob("tests.job")])
    monkeypatch.setattr("django_jobs.store.statistics.StatisticsStatements.record_stats", broken)

    assert operations.cancel(waiting.id).done == 1
    assert Job.objects.get().state == "cancelled"
    assert "The statistics can't be written: away" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_site_that_does_without_counts_none_of_them(store, settings):
    settings.DJANGO_JOBS = {"STATISTICS_RETENTION": 0}
    (waiting,) = store.insert_many([NewJob("tests.job")])
    operations.cancel(waiting.id)

    assert totals() == []
