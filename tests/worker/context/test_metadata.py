"""What a running job notes about itself: at once, later, within bounds."""

import threading

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from django_jobs import ClaimLost, attempt_state, context as contexts, current_job
from django_jobs.attempt_state import state_of
from django_jobs.serialization import NotStorable
from tests.waiting import eventually
from tests.worker.context.helping import lose, queries, stored
from tests.worker.fakes import TIMEOUT


def test_metadata_is_merged_by_one_statement(running):
    assert queries(lambda: running.merge_metadata({"a": 1, "big": 2**70})) == 1
    assert queries(lambda: running.merge_metadata({"a": 1e22})) == 1

    assert stored(running).metadata == {"big": 2**70, "a": 1e22}


def test_what_may_be_stored_later_costs_no_statement_and_goes_with_the_next(running):
    values = {"list": [1]}
    assert queries(lambda: running.merge_metadata(values, later=True)) == 0
    values["list"].append(2)  # what was given counts, not what becomes of it
    assert queries(lambda: running.merge_metadata({"b": 2})) == 1

    assert stored(running).metadata == {"list": [1], "b": 2}


@pytest.mark.parametrize("how", ["completed", "failed", "snoozed", "async"])
def test_what_is_left_is_stored_with_the_outcome_whatever_that_is(live, define, how):
    def work():
        current_job().merge_metadata({"left": how}, later=True)
        if how == "failed":
            raise ValueError("no")
        if how == "snoozed":
            current_job().snooze(3600)

    async def awork():
        work()

    jobs = [define(awork if how == "async" else work, max_attempts=1).enqueue() for _ in range(3)]
    live(size=2)

    for job in jobs:
        eventually(lambda job=job: job.refresh().state not in ("available", "running"))
        assert job.metadata == {"left": how}


def test_one_that_can_not_be_stored_keeps_no_outcome_from_it(live, define, monkeypatch, caplog):
    monkeypatch.setattr(
        attempt_state, "joined", lambda values: "no JSON" if "bad" in values else '{"good":1}'
    )
    bad = define(lambda: current_job().merge_metadata({"bad": 1}, later=True))
    good = define(lambda: current_job().merge_metadata({"good": 1}, later=True))
    jobs = [bad.enqueue(), *[good.enqueue() for _ in range(3)]]
    live(size=4)

    assert [job.wait(TIMEOUT).state for job in jobs] == ["completed"] * 4
    assert [job.metadata for job in jobs] == [{}, *[{"good": 1}] * 3]
    if connection.vendor == "postgresql":
        assert f"The metadata of job {jobs[0].id} can't be stored" in caplog.text


def test_nothing_is_stored_for_a_claim_that_is_lost(running):
    lose(running)
    assert not running.should_stop()

    with pytest.raises(ClaimLost, match="is no longer this worker's"):
        running.merge_metadata({"a": 1})
    assert stored(running).metadata is None
    assert running.should_stop()


def test_it_is_in_the_transaction_that_is_open(running):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        running.merge_metadata({"a": 1})
        raise ZeroDivisionError

    assert stored(running).metadata is None


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"a": {1, 2}}, NotStorable, "set"),
        ({1: 2}, NotStorable, "key"),
        ({"a": float("nan")}, NotStorable, "nan"),
        ({"a": "\0"}, NotStorable, "NUL"),
        ({"\ud800": 1}, NotStorable, "surrogate"),
        ({"a": "x" * 100_000}, NotStorable, "over the limit of 100,000"),
        ([1], TypeError, "takes a dict"),
        (None, TypeError, "takes a dict"),
    ],
)
def test_what_can_not_be_stored_is_refused_before_any_statement(running, values, error, message):
    with CaptureQueriesContext(connection) as captured, pytest.raises(error, match=message):
        running.merge_metadata(values)
    assert len(captured) == 0


def test_what_is_left_for_later_outlives_a_transaction_that_is_rolled_back(running):
    running.merge_metadata({"later": 1, "both": 1}, later=True)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        running.merge_metadata({"both": 2})
        raise ZeroDivisionError
    assert stored(running).metadata is None

    with transaction.atomic():
        running.merge_metadata({"both": 3})
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            running.merge_metadata({"both": 4, "later": 4})
            raise ZeroDivisionError

    assert stored(running).metadata == {"both": 3}
    assert state_of(running._here).take_metadata() == '{"later":1}'


def test_what_a_transaction_has_committed_is_not_left_for_later(running):
    running.merge_metadata({"a": 1}, later=True)
    with transaction.atomic():
        running.merge_metadata({"b": 2})
        running.merge_metadata({"a": 3})

    assert stored(running).metadata == {"b": 2, "a": 3}
    assert state_of(running._here).take_metadata() is None


def test_what_is_left_for_later_outlives_a_completion_that_is_rolled_back(live, define):
    def work():
        current_job().merge_metadata({"later": 1}, later=True)
        with transaction.atomic():
            current_job().complete()
            raise ZeroDivisionError

    job = define(work, max_attempts=1).enqueue()
    live(size=1)

    assert (job.wait(TIMEOUT).state, job.metadata) == ("failed", {"later": 1})


def test_all_metadata_together_is_bounded_and_what_is_too_much_is_refused_alone(running, settings):
    settings.DJANGO_JOBS = {"MAX_METADATA_BYTES": 100}
    running.merge_metadata({"a": "x" * 60})
    running.merge_metadata({"later": 1}, later=True)

    with pytest.raises(
        NotStorable, match=r"would, with what the job has, be over the limit of 100 bytes .* raise DJ"
    ):
        running.merge_metadata({"b": "y" * 60})
    running.merge_metadata({"a": "z" * 60})

    assert stored(running).metadata == {"later": 1, "a": "z" * 60}


def test_what_is_left_for_later_is_bounded_too(running, settings):
    settings.DJANGO_JOBS = {"MAX_METADATA_BYTES": 100}
    running.merge_metadata({"a": "x" * 60}, later=True)

    with pytest.raises(NotStorable, match=r"to be merged later has 135 bytes, over the limit of 100 bytes"):
        running.merge_metadata({"b": "y" * 60}, later=True)
    running.merge_metadata({"c": 1})

    assert stored(running).metadata == {"a": "x" * 60, "c": 1}


@pytest.mark.parametrize("atomic", [False, True])
def test_an_outcome_is_stored_without_metadata_that_is_too_much(live, define, settings, caplog, atomic):
    settings.DJANGO_JOBS = {"MAX_METADATA_BYTES": 100}

    def work():
        current_job().merge_metadata({"a": "x" * 60})
        current_job().merge_metadata({"b": "y" * 60}, later=True)
        return "done"

    job = define(work, atomic=atomic).enqueue()
    live(size=1)

    assert (job.wait(TIMEOUT).result, job.metadata) == ("done", {"a": "x" * 60})
    assert f"The metadata of job {job.id}" in caplog.text


def test_progress_that_is_too_much_is_said_once_and_no_failure(running, settings, caplog, monkeypatch):
    monkeypatch.setattr(contexts, "PROGRESS_SECONDS", 0.0)
    settings.DJANGO_JOBS = {"MAX_METADATA_BYTES": 100}
    running.merge_metadata({"a": "x" * 70})

    for number in range(5):
        running.progress(number, 5)
    running.merge_metadata({"b": 1})

    assert caplog.text.count("The progress of job") == 1
    assert stored(running).metadata == {"a": "x" * 70, "b": 1}


def test_what_could_not_be_stored_is_kept_for_the_next_time(running, monkeypatch):
    def away(*args, **kwargs):
        raise OperationalError("away")

    with monkeypatch.context() as patch:
        patch.setattr(contexts, "django_store", away)
        with pytest.raises(OperationalError):
            running.merge_metadata({"a": 1})
    running.merge_metadata({"b": 2})

    assert stored(running).metadata == {"a": 1, "b": 2}


def test_threads_of_one_job_lose_nothing(running):
    def merge(number):
        for count in range(20):
            running.merge_metadata({f"{number}.{count}": 1}, later=True)

    threads = [threading.Thread(target=merge, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    running.merge_metadata({"last": 1})

    assert len(stored(running).metadata) == 81
