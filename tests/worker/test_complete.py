"""``context.complete()``: a job's completion in a transaction of its own making."""

import logging

import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.transaction import TransactionManagementError

from django_jobs import ClaimLost, current_job
from django_jobs.models import Job
from django_jobs.signals import job_finished
from tests.waiting import eventually
from tests.worker.effects import leave_effect, take_away
from tests.worker.fakes import TIMEOUT
from tests.workload.models import Effect

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
def finished():
    """The id and the outcome of each job that ``job_finished`` tells of."""
    told = []

    def hear(job, outcome, **_):
        told.append((job.id, outcome))

    job_finished.connect(hear)
    yield told
    job_finished.disconnect(hear)


def test_complete_commits_both_and_what_is_raised_after_that_changes_nothing(live, define, caplog):
    caplog.set_level(logging.INFO)

    def work():
        with transaction.atomic():
            leave_effect()
            current_job().complete("mine")
        raise ValueError("after the completion")

    job = define(work, max_attempts=1).enqueue()
    worker = live(size=1)

    assert (job.wait(TIMEOUT).state, job.result, job.errors) == ("completed", "mine", [])
    eventually(lambda: worker.statistics.completed == 1)
    assert (worker.statistics.failed, worker.statistics.dropped) == (0, 0)
    eventually(lambda: "attempt 1 of 1 completed" in caplog.text)
    assert "after it had completed itself it raised ValueError: after the completion" in caplog.text


@pytest.mark.parametrize("is_atomic", [True, False])
def test_what_waits_for_the_commit_and_raises_hides_no_completion(live, define, caplog, finished, is_atomic):
    caplog.set_level(logging.INFO)

    def fail():
        raise ValueError("after the commit")

    def work():
        leave_effect()
        transaction.on_commit(fail)
        return "mine"

    def complete():
        with transaction.atomic():
            current_job().complete(work())

    job = define(work if is_atomic else complete, atomic=is_atomic).enqueue()
    worker = live(size=1)

    eventually(lambda: worker.statistics.completed == 1)
    assert (job.refresh().state, job.result, job.errors) == ("completed", "mine", [])
    assert Effect.objects.count() == 1
    eventually(lambda: finished == [(job.id, "completed")])
    eventually(lambda: "after it had completed itself it raised ValueError: after the commit" in caplog.text)


def test_a_completion_that_is_rolled_back_is_none(live, define):
    def work():
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            leave_effect()
            current_job().complete("rolled back")
            raise ZeroDivisionError
        return "in the end"

    job = define(work).enqueue()
    live(size=1)

    assert (job.wait(TIMEOUT).state, job.result) == ("completed", "in the end")
    assert Effect.objects.count() == 0


def test_a_savepoint_that_is_rolled_back_takes_the_completion_with_it(live, define):
    def work():
        with transaction.atomic():
            with pytest.raises(ZeroDivisionError), transaction.atomic():
                current_job().complete("rolled back")
                raise ZeroDivisionError
            leave_effect()
            current_job().complete("stays")

    job = define(work).enqueue()
    live(size=1)

    assert (job.wait(TIMEOUT).state, job.result) == ("completed", "stays")
    assert Effect.objects.count() == 1


def test_complete_in_an_atomic_job_is_its_completion(live, define):
    def work():
        leave_effect()
        current_job().complete("first")
        return "second"

    job = define(work, atomic=True).enqueue()
    live(size=1)

    assert (job.wait(TIMEOUT).state, job.result) == ("completed", "first")


def said_by(live, define, function):
    """What the function said of itself before it ended."""
    said = []

    def work():
        try:
            function()
        except Exception as error:
            said.append(error)
            raise

    definition = define(work, backoff=3600)
    job = definition.enqueue()
    worker = live(size=1)
    eventually(lambda: worker.statistics.attempts + worker.statistics.dropped == 1)
    return said, job.refresh(), worker


def test_complete_outside_of_a_transaction_is_refused(live, define):
    (error,), job, _ = said_by(live, define, lambda: current_job().complete())

    assert isinstance(error, TransactionManagementError)
    assert "Call it inside transaction.atomic(using='default')" in str(error)
    assert job.state == "scheduled"


def test_complete_twice_is_refused_and_the_transaction_rolled_back(live, define):
    def twice():
        with transaction.atomic():
            leave_effect()
            current_job().complete()
            current_job().complete()

    (error,), job, _ = said_by(live, define, twice)

    assert "has completed itself already" in str(error)
    assert (job.state, Effect.objects.count()) == ("scheduled", 0)


def test_who_has_completed_itself_takes_no_more_metadata_and_has_lost_no_claim(live, define):
    told = []

    def work():
        context = current_job()
        with transaction.atomic():
            context.merge_metadata({"before": 1})
            context.complete()
            context.progress(1)
            with pytest.raises(
                RuntimeError, match=r"has completed itself already.* before complete\(\)"
            ) as refusal:
                context.merge_metadata({"after": 1})
            told.append(type(refusal.value))
        context.progress(2)
        with pytest.raises(RuntimeError) as refusal:
            context.merge_metadata({"after": 1}, later=True)
        told.append(type(refusal.value))
        told.append(context.should_stop())

    job = define(work, max_attempts=1).enqueue()
    worker = live(size=1)

    eventually(lambda: worker.statistics.completed == 1)
    assert (job.refresh().state, job.metadata) == ("completed", {"before": 1})
    assert told == [RuntimeError, RuntimeError, False]


def test_a_lost_claim_is_told_and_should_stop_says_so_from_then_on(live, define):
    stops = []

    def work():
        context = current_job()
        take_away(context.job.id)
        try:
            with transaction.atomic():
                leave_effect()
                context.complete()
        finally:
            stops.append(current_job().should_stop())

    (error,), job, worker = said_by(live, define, work)

    assert isinstance(error, ClaimLost)
    assert "is no longer this worker's" in str(error)
    assert stops == [True]
    assert (job.state, Effect.objects.count(), worker.statistics.dropped) == ("scheduled", 0, 1)


def test_a_failed_commit_is_the_job_s_failure(live, define):
    def work():
        with transaction.atomic():
            leave_effect()
            current_job().complete()
            raise IntegrityError("deferred")

    (error,), job, _ = said_by(live, define, work)

    assert isinstance(error, IntegrityError)
    assert (job.state, job.error_class, Effect.objects.count()) == (
        "scheduled",
        "django.db.utils.IntegrityError",
        0,
    )


def test_a_commit_whose_answer_is_lost_is_told_as_what_it_is(live, define, finished, caplog):
    """The attempt sees an error; the database has effect and completion."""
    caplog.set_level(logging.INFO)

    def work():
        leave_effect()
        commit = connection._commit

        def commit_and_lose_the_answer():
            del connection._commit
            commit()
            raise OperationalError("server closed the connection unexpectedly")

        connection._commit = commit_and_lose_the_answer
        return "mine"

    job = define(work, atomic=True).enqueue()
    worker = live(size=1)

    eventually(lambda: worker.statistics.completed == 1)
    assert (job.refresh().state, job.result, job.attempt) == ("completed", "mine", 1)
    assert Effect.objects.count() == 1
    eventually(lambda: finished == [(job.id, "completed")])
    assert (worker.statistics.failed, worker.statistics.dropped) == (0, 0)
    eventually(lambda: "attempt 1 of 5 completed" in caplog.text)


def test_an_async_job_completes_itself_in_its_synchronous_part(live, define):
    async def work():
        def save():
            with transaction.atomic():
                leave_effect()
                current_job().complete("both")

        await sync_to_async(save)()

    job = define(work).enqueue()
    worker = live(size=1)

    assert (job.wait(TIMEOUT).state, job.result, Effect.objects.count()) == ("completed", "both", 1)
    eventually(lambda: worker.statistics.completed == 1)


def test_a_job_that_is_deleted_after_it_completed_itself_counts_as_completed(live, define):
    def work():
        with transaction.atomic():
            leave_effect()
            current_job().complete()
        Job.objects.all().delete()

    define(work).enqueue()
    worker = live(size=1)

    eventually(lambda: worker.statistics.completed == 1)
    assert worker.statistics.dropped == 0
