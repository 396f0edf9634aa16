"""What workers record in words of their own: each is one that pages translate."""

import json
from types import SimpleNamespace

import pytest
from django.utils import translation

from django_jobs import Cancel, operations
from django_jobs.definitions import JobDefinition
from django_jobs.recorded_words import RECORDED, message_text
from django_jobs.store.base import WORKER_LOST
from django_jobs.worker import outcomes
from django_jobs.worker.keeper import LEASE_OVER
from django_jobs.worker.registration import STOPPED
from django_jobs.worker.supervisor import Child
from tests.workload import jobs

pytestmark = pytest.mark.django_db


def lost(code):
    """What is recorded of a job whose process ended."""
    ended = SimpleNamespace(process=SimpleNamespace(returncode=code), pid=7)
    return f"{Child.in_words.fget(ended)}."


def recorded(attempted):
    entry = json.loads(attempted.outcome.errors)[-1]
    return entry["class"], entry["message"]


@pytest.fixture
def of_attempts():
    """All that the worker records of attempts, as (class, message)."""
    definition: JobDefinition = jobs.nothing
    row = operations.get(definition.enqueue().id)
    error = ValueError("no\nway")
    found = [
        outcomes.timed_out(row, definition, 2.5, 3.0),
        outcomes.timed_out(row, definition, 2.5, 3.0, error),
        outcomes.unregistered(row),
        outcomes.broken(row, error),
        outcomes.cancelled(row, None, 1.0),
        outcomes.cancelled_before(row),
    ]
    lost_ones = [LEASE_OVER, STOPPED, lost(1), lost(-9), lost(-99)]
    return [*map(recorded, found), *((WORKER_LOST, message) for message in lost_ones)]


def test_each_is_known(of_attempts):
    known = {text for texts in RECORDED.values() for text in texts}
    assert len(of_attempts) >= len(known) - 2, (
        "and those of a job that does not end, and that nothing is known of"
    )
    for language in ("de", "es"):
        with translation.override(language):
            told = [message_text(*each) for each in of_attempts]
        assert all(text != message for text, (_class, message) in zip(told, of_attempts, strict=True)), told
    with translation.override("en"):
        assert [message_text(*each) for each in of_attempts] == [message for _class, message in of_attempts]


def test_in_german(of_attempts):
    with translation.override("de"):
        told = [message_text(*each) for each in of_attempts]

    assert told[1] == "Es dauerte länger als das Zeitlimit von 2.5 s. Es endete mit ValueError: no\nway"
    assert told[-2] == "Prozess 7 wurde durch das Signal SIGKILL beendet."


def test_what_is_no_words_of_the_worker_stays_as_it_is():
    with translation.override("de"):
        for error_class, message in (
            ("ValueError", LEASE_OVER),
            (WORKER_LOST, "another"),
            (WORKER_LOST, ""),
            ("", ""),
            (WORKER_LOST, f"Process {'x' * 30_000} ended with exit code 1."),
        ):
            assert message_text(error_class, message) == message
        assert message_text("django_jobs.exceptions.Cancel", str(Cancel("not needed"))) == "not needed"
