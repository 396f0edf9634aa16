"""How far a running job is."""

import pytest
from django.db import OperationalError, transaction

from django_jobs import ClaimLost, context as contexts, current_job
from tests.worker.context.helping import lose, queries, stored
from tests.worker.fakes import TIMEOUT, Gate


def test_progress_is_stored_at_once_and_then_not_for_a_while(running):
    assert queries(lambda: running.progress(1, 10, "first")) == 1
    assert stored(running).metadata == {"progress": {"done": 1, "total": 10, "note": "first"}}
    assert queries(lambda: [running.progress(number, 10) for number in range(2, 9)]) == 0
    running._here[contexts.STATE].progressed_at -= contexts.PROGRESS_SECONDS
    assert queries(lambda: running.progress(9, 10)) == 1

    assert stored(running).metadata["progress"] == {"done": 9, "total": 10, "note": ""}


def test_the_last_progress_is_stored_with_the_outcome(live, define):
    def work():
        for number in range(1, 101):
            current_job().progress(number, 100)

    job = define(work).enqueue()
    live(size=1)

    assert job.wait(TIMEOUT).metadata["progress"]["done"] == 100


def test_progress_is_seen_while_the_job_runs(live, define):
    gate = Gate()

    def work():
        current_job().progress(1, 2)
        gate()

    job = define(work).enqueue()
    live(size=1)
    gate.wait()

    assert job.refresh().state == "running"
    assert job.metadata["progress"]["done"] == 1
    gate.open()
    job.wait(TIMEOUT)


def test_in_a_transaction_no_progress_is_written_since_nobody_would_see_it_and_the_row_be_locked(running):
    with transaction.atomic():
        assert queries(lambda: running.progress(1)) == 0
    assert queries(lambda: running.progress(2)) == 1


def test_progress_that_can_not_be_stored_is_no_failure(running, monkeypatch, caplog):
    def away(*args, **kwargs):
        raise OperationalError("away")

    with monkeypatch.context() as patch:
        patch.setattr(contexts, "django_store", away)
        running.progress(1)
    assert "could not be stored yet: away" in caplog.text
    running.merge_metadata({"a": 1})

    assert stored(running).metadata["progress"]["done"] == 1


def test_progress_of_a_lost_claim_says_so(running):
    lose(running)

    with pytest.raises(ClaimLost):
        running.progress(1)


@pytest.mark.parametrize(
    "arguments",
    [("1",), (None,), (True,), (float("nan"),), (1, "2"), (1, float("inf")), (1, 2, 3), (1, 2, None)],
)
def test_what_is_no_progress_is_refused(running, arguments):
    with pytest.raises(TypeError, match=r"progress\("):
        running.progress(*arguments)
