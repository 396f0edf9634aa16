"""Exactly-once effects: what a job writes, and its completion, in one transaction."""

import logging

import pytest
from django.db import connection, transaction

from django_jobs import InvalidJob, Snooze, current_job, job, registry
from django_jobs.models import Job
from django_jobs.worker import atomic
from tests.waiting import eventually
from tests.worker.effects import leave_effect, take_away
from tests.worker.fakes import TIMEOUT, Gate
from tests.workload.models import Effect

pytestmark = pytest.mark.usefixtures("transactional_db")


# -- options ----------------------------------------------------------------------------------------------------------


def test_an_async_function_can_not_be_atomic():
    async def work():
        pass

    class Work:
        __module__, __name__ = "tests", "work"

        async def __call__(self):
            pass

    for function in (work, Work()):
        with pytest.raises(
            InvalidJob, match=r"tests\.refused is an async def function, .* atomic=True can't be kept"
        ):
            job(name="tests.refused", atomic=True)(function)
    assert "tests.refused" not in registry


@pytest.mark.parametrize("given", [1, "yes", None])
def test_it_is_true_or_false(given):
    with pytest.raises(InvalidJob, match=r"atomic of tests\.refused is .*; it must be True or False"):
        job(name="tests.refused", atomic=given)(lambda: None)


# -- @job(atomic=True) ------------------------------------------------------------------------------------------------


def test_effect_and_completion_are_committed_together(live, define, caplog):
    caplog.set_level(logging.INFO)
    seen = []

    def work():
        leave_effect()
        seen.append((connection.in_atomic_block, Job.objects.get(pk=current_job().job.id).state))
        return {"n": 1}

    done = define(work, atomic=True).enqueue()
    worker = live(size=1)

    assert (done.wait(TIMEOUT).state, done.result) == ("completed", {"n": 1})
    assert seen == [(True, "running")]
    assert Effect.objects.count() == 1
    eventually(lambda: worker.statistics.completed == 1)
    assert worker.statistics.dropped == 0
    eventually(lambda: "attempt 1 of 5 completed" in caplog.text)


@pytest.mark.parametrize(
    "how", ["raises", "snoozes", "returns a snooze", "result can't be stored", "commit fails"]
)
def test_whatever_is_no_completion_leaves_no_effect(live, define, how):
    def work():
        leave_effect()
        if how == "raises":
            raise ValueError("no")
        if how == "snoozes":
            raise Snooze(3600)
        if how == "returns a snooze":
            return Snooze(3600)
        if how == "commit fails":
            transaction.set_rollback(True)
        return object() if "stored" in how else None

    job = define(work, atomic=True, backoff=3600).enqueue()
    live(size=1)

    eventually(lambda: job.refresh().state == ("failed" if "stored" in how else "scheduled"))
    assert Effect.objects.count() == 0
    assert job.attempt == (0 if "snooze" in how else 1)
    if "stored" in how:
        assert job.error_class == "django_jobs.ResultNotStorable"


def test_who_has_lost_its_claim_commits_nothing(live, define, caplog, monkeypatch):
    call = atomic.call
    # Between the claim and the transaction: on SQLite nobody can write while the transaction is open.
    monkeypatch.setattr(
        atomic, "call", lambda context, function: take_away(context.job.id) or call(context, function)
    )

    def work():
        leave_effect()
        return "late"

    job = define(work, atomic=True).enqueue()
    worker = live(size=1)

    eventually(lambda: worker.statistics.dropped == 1)
    assert Effect.objects.count() == 0
    assert (job.refresh().state, job.result) == ("scheduled", None)
    assert "is dropped, since the claim was lost" in caplog.text


@pytest.mark.postgresql
def test_who_loses_its_claim_while_it_runs_commits_nothing(live, define):
    gate = Gate()

    def work():
        leave_effect()
        gate()

    job = define(work, atomic=True).enqueue()
    worker = live(size=1)
    gate.wait()
    take_away(job.id)
    gate.open()

    eventually(lambda: worker.statistics.dropped == 1)
    assert (job.refresh().state, Effect.objects.count()) == ("scheduled", 0)


@pytest.mark.parametrize("why", ["cancelled", "late"])
def test_one_that_returns_because_it_was_told_to_end_leaves_no_effect(live, define, why):
    def work():
        context = current_job()
        leave_effect()
        if why == "cancelled":
            worker.signs.cancelled = frozenset({context.job.id})
        eventually(context.should_stop)

    worker = live(size=1)
    options = {"timeout": 0.05} if why == "late" else {}
    job = define(work, atomic=True, max_attempts=1, **options).enqueue()

    job.wait(TIMEOUT)
    assert (job.state, job.error_class) == {
        "cancelled": ("cancelled", "django_jobs.exceptions.Cancel"),
        "late": ("failed", "django_jobs.TimedOut"),
    }[why]
    assert Effect.objects.count() == 0


def test_a_middleware_is_in_the_transaction_too_and_its_result_is_stored(live, define, settings):
    settings.DJANGO_JOBS = {"MIDDLEWARE": ["tests.worker.test_async.adding"]}
    job = define(lambda: 1, atomic=True).enqueue()
    live(size=1)

    assert job.wait(TIMEOUT).result == 2


def test_metadata_left_for_later_is_stored_with_the_completion(live, define):
    def work():
        current_job().merge_metadata({"rows": 3}, later=True)
        current_job().progress(3, 3, "done")

    job = define(work, atomic=True).enqueue()
    live(size=1)

    assert job.wait(TIMEOUT).metadata == {"rows": 3, "progress": {"done": 3, "total": 3, "note": "done"}}
