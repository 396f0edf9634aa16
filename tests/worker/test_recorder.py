"""What follows a stored batch: counts, and one log line for each attempt, of what the database has."""

import logging

import pytest

from django_jobs.store.answers import Ended
from django_jobs.worker.recorder import Recorder
from django_jobs.worker.statistics import Statistics
from tests.worker.fakes import attempted, row


@pytest.fixture
def statistics():
    return Statistics()


@pytest.fixture
def record(statistics, caplog):
    """Record outcomes with the states that were stored (None: gone; a tuple: not stored); the log records."""
    caplog.set_level(logging.INFO, "django_jobs")

    def record(*pairs):
        caplog.clear()
        ended = {}
        for item, state in pairs:
            if state is not None:
                stored = isinstance(state, str)
                ended[item.outcome.id] = Ended(item.outcome.id, state if stored else state[0], stored)
        Recorder(statistics)([item for item, _ in pairs], ended)
        return [entry for entry in caplog.records if entry.name == "django_jobs.attempts"]

    return record


CASES = [
    ("completed", None, "completed", logging.INFO, "completed", "completed"),
    ("retry", 90.0, "scheduled", logging.WARNING, "failed, next in 90 s,", "retried"),
    ("retry", 0.0, "available", logging.WARNING, "failed, next in 0 s,", "retried"),
    ("retry", 90.0, "failed", logging.ERROR, "failed for good", "dead"),
    ("failed", None, "failed", logging.ERROR, "failed for good", "dead"),
    ("snoozed", 60.0, "scheduled", logging.INFO, "snoozed for 60 s", "snoozed"),
    ("snoozed", 0.0, "available", logging.INFO, "snoozed for 0 s", "snoozed"),
    ("cancelled", None, "cancelled", logging.INFO, "cancelled", "cancelled"),
    ("snoozed", 60.0, "cancelled", logging.INFO, "cancelled", "cancelled"),
    ("retry", 60.0, "cancelled", logging.WARNING, "cancelled", "cancelled"),
]


@pytest.mark.parametrize(("kind", "delay", "state", "level", "words", "count"), CASES)
def test_one_line_for_each_attempt_with_fields_to_search_by(
    record, statistics, kind, delay, state, level, words, count
):
    job = row(5, name="shop.pay", queue_name="mail", attempt=2, max_attempts=3)
    (entry,) = record((attempted(job, kind, delay, error_class="ValueError"), state))

    assert entry.levelno == level
    assert entry.getMessage() == f"job 5 shop.pay (queue mail) attempt 2 of 3 {words} in 0.001 s"
    assert (entry.job_id, entry.job_name, entry.queue_name, entry.attempt) == (5, "shop.pay", "mail", 2)
    assert (entry.duration, entry.outcome, entry.error_class) == (0.001, state, "ValueError")
    assert getattr(statistics, count) == 1
    assert statistics.attempts == 1


def test_a_name_that_nobody_registered_is_a_warning(record, caplog):
    caplog.set_level(logging.WARNING, "django_jobs.attempts")
    (entry,) = record((attempted(1, "snoozed", 60.0, error_class="django_jobs.NotRegistered"), "scheduled"))

    assert (entry.levelno, entry.outcome) == (logging.WARNING, "scheduled")


def test_what_is_told_is_what_the_database_has_and_not_what_the_job_wanted(record, statistics):
    """A job that was cancelled while it failed is cancelled; one that used its last attempt is a dead letter."""
    (entry,) = record((attempted(1, "retry", 5.0), "failed"))

    assert entry.outcome == "failed"
    assert (statistics.dead, statistics.retried, statistics.failed) == (1, 0, 1)


@pytest.mark.parametrize(
    ("state", "reason"),
    [(None, "the job was deleted"), (("running",), "the claim was lost; the job is running now"),
     (("completed",), "the claim was lost; the job is completed now")],
)  # fmt: skip
def test_an_outcome_that_was_not_stored_is_told_as_dropped(record, statistics, state, reason):
    (entry,) = record((attempted(1), state))

    assert entry.levelno == logging.WARNING
    assert entry.getMessage().endswith(f"its outcome (completed) is dropped, since {reason}")
    assert entry.outcome == "dropped"
    assert (statistics.dropped, statistics.attempts) == (1, 0)


def test_the_error_is_in_the_line_short_and_in_one_line(record):
    (entry,) = record((attempted(1, "retry", 5.0, error="ValueError: a\n  b\t" + "x" * 1000), "scheduled"))

    assert entry.getMessage().endswith("...")
    assert "in 0.001 s: ValueError: a b xxx" in entry.getMessage()
    assert "\n" not in entry.getMessage()
    assert len(entry.getMessage()) < 400


def test_lines_are_in_the_order_of_the_outcomes(record):
    entries = record(*[(attempted(number), "completed") for number in range(100)])

    assert [entry.job_id for entry in entries] == list(range(100))


def test_the_traceback_is_for_debugging(record, caplog):
    item = attempted(1, "retry", 5.0, error="ValueError: no", trace="Traceback ...")
    assert len(record((item, "scheduled"))) == 1

    caplog.set_level(logging.DEBUG, "django_jobs.attempts")
    assert "Traceback ..." in record((item, "scheduled"))[1].getMessage()


@pytest.mark.parametrize(
    ("level", "heard"),
    [
        (logging.INFO, ["completed", "scheduled", "failed", "dropped"]),
        (logging.WARNING, ["scheduled", "failed", "dropped"]),
        (logging.ERROR, ["failed"]),
        (logging.CRITICAL, []),
    ],
)
def test_a_site_that_wants_to_hear_less_hears_all_of_its_level(record, statistics, caplog, level, heard):
    caplog.set_level(level, "django_jobs")
    entries = record(
        (attempted(1), "completed"),
        (attempted(2, "retry", 5.0), "scheduled"),
        (attempted(3, "failed"), "failed"),
        (attempted(4), None),
    )

    assert [entry.outcome for entry in entries] == heard
    assert (statistics.attempts, statistics.dropped) == (3, 1)


def test_a_name_full_of_signs_does_no_harm(record):
    (entry,) = record((attempted(row(1, name="%s %d {0} \n", queue_name="%(x)s")), "completed"))

    assert "%s %d {0}" in entry.getMessage()


def test_counts_add_up(record, statistics):
    for kind, delay, state, *_ in CASES:
        record((attempted(1, kind, delay), state))

    assert (statistics.completed, statistics.retried, statistics.dead) == (1, 2, 2)
    assert (statistics.snoozed, statistics.cancelled, statistics.failed) == (2, 3, 4)
    assert statistics.attempts == len(CASES)
