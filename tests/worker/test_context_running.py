"""What a running job can do to itself: metadata, progress, words on its outcome."""

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from django_jobs import ClaimLost, JobContext, attempt_state, context as contexts, current_job
from django_jobs.attempt_state import state_of
from django_jobs.models import Job
from django_jobs.serialization import NotStorable
from django_jobs.store import django_store
from django_jobs.worker.signs import Signs
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, Gate


@pytest.fixture
def running(transactional_db, define):
    """The context of a job that a worker has claimed; the statements run in this thread."""
    definition = define(lambda: None)
    store = django_store("default")
    worker = store.register_worker("host", 1, "[]", 1, "1", 300.0)
    definition.enqueue()
    (job,) = store.claim(worker.id, "default", 1)
    signs = Signs("default")
    signs.worker_id = worker.id
    return JobContext(job, definition.name, signs)


def stored(context):
    return Job.objects.get(pk=context.job.id)


def lose(context):
    Job.objects.filter(pk=context.job.id).update(claims=context.job.claims + 1)


def queries(function):
    with CaptureQueriesContext(connection) as captured:
        function()
    return len(captured)


# -- metadata ---------------------------------------------------------------------------------------------------------


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


# -- progress ---------------------------------------------------------------------------------------------------------


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


# -- async ------------------------------------------------------------------------------------------------------------


def test_the_variants_for_async_code(live, define):
    async def work():
        context = current_job()
        await context.aprogress(1, 2)
        await context.amerge_metadata({"a": 1})
        seen = await Job.objects.aget(pk=context.job.id)
        await context.amerge_metadata({"later": 1}, later=True)
        context.progress(2, 2)  # not stored here and now: this is the event loop
        return seen.metadata

    job = define(work).enqueue()
    live(size=1)

    assert job.wait(TIMEOUT).result == {"progress": {"done": 1, "total": 2, "note": ""}, "a": 1}
    assert job.metadata == {"a": 1, "later": 1, "progress": {"done": 2, "total": 2, "note": ""}}


def test_the_context_is_the_same_wherever_it_is_asked_for(live, define):
    async def work(context):
        def inner():
            current_job().merge_metadata({"thread": 1}, later=True)

        async def task():
            current_job().merge_metadata({"task": 1}, later=True)

        await asyncio.gather(sync_to_async(inner)(), task())
        context.merge_metadata({"own": 1}, later=True)

    job = define(work, takes_context=True).enqueue()
    live(size=1)

    assert job.wait(TIMEOUT).metadata == {"thread": 1, "task": 1, "own": 1}


# -- words ------------------------------------------------------------------------------------------------------------


def test_snooze_and_cancel_end_the_attempt_there(live, define):
    def work(how):
        if how == "snooze":
            current_job().snooze(3600)
        current_job().cancel("not needed")

    definition = define(work)
    snoozed, cancelled = definition.enqueue("snooze"), definition.enqueue("cancel")
    live()

    assert cancelled.wait(TIMEOUT).state == "cancelled"
    assert cancelled.errors[0]["message"] == "not needed"
    eventually(lambda: snoozed.refresh().state == "scheduled")
    assert snoozed.attempt == 0


def test_a_context_without_a_job_takes_everything_and_stores_nothing(db):
    context = JobContext.detached("tests.direct")

    def everything():
        context.progress(1, 2, "x")
        context.merge_metadata({"a": 1})
        context.complete({"a": 1})
        assert context.heartbeat()
        assert not context.should_stop()

    assert queries(everything) == 0
    with pytest.raises(NotStorable):
        context.merge_metadata({"a": object()})


def test_a_job_without_a_timeout_has_no_end_to_its_heartbeats(running):
    assert queries(running.heartbeat) == 0
    assert running.heartbeat() is True
