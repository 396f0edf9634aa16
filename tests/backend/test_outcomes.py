"""How the states and attempts of a job read as a task's result."""

import datetime as dt
import sys
import uuid

import pytest
from django.db import connection
from django.test.utils import override_settings
from django.utils import timezone

from django_jobs import current_job, operations, registry
from django_jobs.backend.framework import TaskResultDoesNotExist, TaskResultStatus, signals
from django_jobs.models import Job
from django_jobs.store import django_store
from django_jobs.store.rows import Outcome
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.followers import is_followed
from tests.backend.conftest import Sent
from tests.worker.fakes import row
from tests.workload import jobs, tasks
from tests.workload.models import Effect

pytestmark = pytest.mark.django_db(transaction=True)


def update(result, **values):
    Job.objects.filter(pk=result.id).update(**values)
    result.refresh()
    return result


class TestStates:
    def test_pending(self):
        result = tasks.noop.using(pending=True).enqueue()
        result.refresh()

        assert (result.status, result.is_finished) == (TaskResultStatus.READY, False)

    def test_scheduled(self):
        result = tasks.noop.using(run_after=dt.timedelta(hours=1)).enqueue()
        result.refresh()

        assert (result.status, result.started_at) == (TaskResultStatus.READY, None)

    def test_snoozed(self, drain, sent):
        result = tasks.snooze.enqueue()
        drain()
        result.refresh()

        assert (result.status, result.attempts, result.errors) == (TaskResultStatus.READY, 0, [])
        assert tasks.snooze.get_result(result.id).task.run_after > timezone.now() + dt.timedelta(minutes=50)
        assert [each.name for each in sent] == ["task_enqueued", "task_started"]

    def test_cancelled_by_itself(self, drain, sent):
        result = tasks.cancel.enqueue()
        drain()
        result.refresh()

        assert (result.status, result.is_finished) == (TaskResultStatus.FAILED, True)
        (error,) = result.errors
        assert error.exception_class.__name__ == "Cancel"
        assert "not needed" in error.traceback
        assert (sent[-1].name, sent[-1].status) == ("task_finished", "FAILED")

    def test_cancelled_while_it_waited(self):
        result = tasks.noop.enqueue()
        operations.cancel([int(result.id)])
        result.refresh()

        assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 0)
        (error,) = result.errors
        assert error.exception_class.__name__ == "Cancel"
        with pytest.raises(ValueError, match="Task failed"):
            result.return_value  # noqa: B018

    def test_to_be_retried(self, drain, sent):
        result = tasks.fail.using(max_attempts=2).enqueue("first")
        drain()
        result.refresh()

        assert (result.status, result.attempts, result.finished_at) == (TaskResultStatus.READY, 1, None)
        assert len(result.errors) == 1
        assert [each.name for each in sent] == ["task_enqueued", "task_started"], "nothing is finished yet"

    def test_retried_by_an_operator(self, drain):
        result = tasks.fail.enqueue()
        drain()
        operations.retry([int(result.id)])
        result.refresh()
        assert (result.status, result.attempts, result.worker_ids) == (TaskResultStatus.READY, 0, [])

        worker = drain()
        result.refresh()
        assert (result.status, result.worker_ids) == (TaskResultStatus.FAILED, [str(worker.worker_id)])
        assert len(result.errors) == 2


class TestAttempts:
    def test_each_has_its_worker(self, drain):
        result = tasks.fail.using(max_attempts=3).enqueue()
        workers = []
        for _ in range(3):
            Job.objects.filter(state="scheduled").update(run_after=timezone.now() - dt.timedelta(seconds=1))
            workers.append(str(drain().worker_id))
        result.refresh()

        assert result.worker_ids == workers
        assert (result.attempts, len(result.errors), result.status) == (3, 3, TaskResultStatus.FAILED)
        assert result.started_at < result.last_attempted_at <= result.finished_at

    def test_all_of_them_have_where_errors_are_bounded(self, drain, settings):
        settings.DJANGO_JOBS = {"MAX_ERRORS": 3}
        result = tasks.fail.using(max_attempts=9).enqueue()
        workers = []
        for _ in range(9):
            Job.objects.filter(state="scheduled").update(run_after=timezone.now() - dt.timedelta(seconds=1))
            workers.append(str(drain().worker_id))
        result.refresh()

        assert result.worker_ids == workers
        assert len(result.errors) == 3

    def test_one_whose_worker_died_counts(self, drain):
        result = tasks.noop.using(max_attempts=2).enqueue()
        store = django_store("default")
        dead = store.register_worker("host", 1, "[]", 1, "1", 30.0).id
        store.claim(dead, "default", 1)
        result.refresh()
        assert (result.status, result.worker_ids) == (TaskResultStatus.RUNNING, [str(dead)])

        store.rescue(worker_id=dead, spread=0.0)
        result.refresh()
        assert (result.status, result.worker_ids) == (TaskResultStatus.READY, [str(dead)])
        assert result.errors[0].exception_class.__name__ == "WorkerLost"

        worker = drain()
        result.refresh()
        assert (result.status, result.worker_ids) == (
            TaskResultStatus.SUCCESSFUL,
            [str(dead), str(worker.worker_id)],
        )

    @pytest.mark.parametrize(
        "name",
        [
            "NotRegistered",
            "OutcomeNotStorable",
            "ResultNotStorable",
            "TimedOut",
            "UndecodableArguments",
            "WorkerError",
        ],
    )
    def test_every_error_of_the_workers_own_has_a_class(self, name):
        entry = {"number": 1, "attempt": 1, "class": f"django_jobs.{name}", "message": "m", "traceback": ""}
        result = update(tasks.noop.enqueue(), errors=[entry], attempt=0)

        assert issubclass(result.errors[0].exception_class, Exception)
        assert result.errors[0].traceback == f"django_jobs.{name}: m\n"


class TestDamagedRows:
    """Somebody's SQL may have written anything that JSON is."""

    @pytest.mark.parametrize("errors", [5, {}, ["x", None], [{}], [{"attempt": "1", "worker": []}]])
    def test_errors(self, errors):
        result = update(tasks.noop.enqueue(), errors=errors)

        assert result.worker_ids == []

    def test_arguments(self):
        result = update(tasks.noop.enqueue(), args={"a": 1}, kwargs=[2])

        assert tasks.noop.get_result(result.id).args == []
        assert tasks.noop.get_result(result.id).kwargs == {}

    @pytest.mark.parametrize("metadata", [[], {"task_workers": 5}, {"task_workers": [1, 2, 3]}])
    def test_metadata(self, metadata):
        assert update(tasks.noop.enqueue(), metadata=metadata).worker_ids == []


MISSING = [
    *("0", "-1", "123456789", str(2**63 - 1), str(2**63), "1" * 5000, "", "x", "1.0", " 1", "+1", "٣", "²"),
    *("1\0", str(uuid.uuid4()), None, 1.5, b"1", [1]),
]


class TestGetResult:
    @pytest.mark.parametrize("missing", MISSING)
    def test_unknown_and_malformed_ids(self, missing):
        tasks.noop.enqueue()
        with pytest.raises(TaskResultDoesNotExist):
            tasks.noop.get_result(missing)

    def test_an_id_in_another_spelling(self):
        with pytest.raises(TaskResultDoesNotExist):
            tasks.noop.get_result(f"0{tasks.noop.enqueue().id}")

    def test_of_another_task(self):
        from django_jobs.backend import framework

        result = tasks.noop.enqueue()
        mismatch = getattr(sys.modules[framework.InvalidTask.__module__], "TaskResultMismatch")  # noqa: B009
        with pytest.raises(mismatch, match="Task does not match"):
            tasks.echo.get_result(result.id)

    def test_of_a_job_that_is_no_task(self):
        job = jobs.nothing.enqueue()
        with pytest.raises(TaskResultDoesNotExist, match="is no task"):
            tasks.noop.get_result(str(job.id))

    def test_of_a_function_that_is_gone(self):
        result = tasks.noop.enqueue()
        Job.objects.filter(pk=result.id).update(name="tests.workload.tasks.gone")
        with pytest.raises(TaskResultDoesNotExist, match="is no task"):
            result.refresh()

    def test_of_one_that_is_deleted(self):
        result = tasks.noop.enqueue()
        Job.objects.filter(pk=result.id).delete()
        with pytest.raises(TaskResultDoesNotExist):
            result.refresh()

    def test_is_one_statement(self, django_assert_num_queries):
        result = tasks.noop.enqueue()
        with django_assert_num_queries(1):
            result.refresh()


class TestSignals:
    def test_of_a_failure_finished_is_sent_within_it_and_after_it_is_stored(self, drain):
        seen = []

        def receive(sender, task_result, **_):
            stored = Job.objects.get(pk=task_result.id)
            seen.append((stored.state, task_result.status, sys.exc_info()[1], len(task_result.errors)))

        signals.task_finished.connect(receive)
        try:
            tasks.fail.enqueue("why")
            drain()
        finally:
            signals.task_finished.disconnect(receive)

        ((state, status, error, errors),) = seen
        assert (state, status, errors) == ("failed", TaskResultStatus.FAILED, 1)
        assert repr(error) == "ValueError('why')"
        assert error.__traceback__.tb_frame.f_code.co_name, "with where it came from"

    def test_a_receiver_that_raises_harms_no_task(self, drain):
        def receive(**_):
            raise SystemExit

        for signal in (signals.task_started, signals.task_finished):
            signal.connect(receive)
        try:
            results = [tasks.noop.enqueue(), tasks.noop_async.enqueue()]
            drain()
        finally:
            for signal in (signals.task_started, signals.task_finished):
                signal.disconnect(receive)

        for result in results:
            result.refresh()
            assert result.status == TaskResultStatus.SUCCESSFUL

    def test_started_may_use_the_database_before_an_async_task(self, drain):
        seen = []

        def receive(task_result, **_):
            seen.append(Job.objects.get(pk=task_result.id).state)

        signals.task_started.connect(receive)
        try:
            tasks.noop_async.enqueue()
            drain()
        finally:
            signals.task_started.disconnect(receive)

        assert seen == ["running"]

    def test_a_plain_job_sends_none(self, drain, sent):
        jobs.nothing.enqueue()
        drain()

        assert sent == []

    @pytest.mark.parametrize("how", ["keeper", "end_claims"])
    def test_of_one_whose_worker_died_in_its_last_attempt(self, sent, how):
        from django_jobs.store import own_store
        from django_jobs.worker.keeper import Keeper
        from django_jobs.worker.registration import end_claims

        result = tasks.noop.using(max_attempts=1).enqueue()
        store = own_store("default")
        try:
            dead = store.register_worker("host", 1, "[]", 1, "1", -1.0 if how == "keeper" else 30.0).id
            django_store("default").claim(dead, "default", 1)
            if how == "keeper":
                Keeper(lambda: store, 30.0, lambda: 3600.0, lambda name: None).rescue()
            else:
                end_claims(store, dead)
        finally:
            store.close()
        result.refresh()

        assert result.status == TaskResultStatus.FAILED
        assert [each.name for each in sent] == ["task_enqueued", "task_finished"]
        assert (sent[-1].status, type(sent[-1].error).__name__) == ("FAILED", "WorkerLost")

    def test_of_a_dead_letter_that_raised_nothing(self, sent):
        """As the completer writes it in the place of an outcome that the database refuses."""
        from django_jobs.backend import telling
        from django_jobs.backend.definitions import definition_of

        result = tasks.noop.enqueue()
        Job.objects.filter(pk=result.id).update(state="failed", finalized_at=timezone.now())
        (failed,) = django_store("default").get([int(result.id)])
        telling.stored(definition_of(tasks.noop), failed, None, "its outcome can't be stored", "default")

        last: Sent = sent[-1]
        assert (last.name, str(last.error)) == ("task_finished", "its outcome can't be stored")


class TestOptionsOfTheDecorator:
    """On Django 6.0 ``@task`` passes none on: there they are given by ``using()``."""

    def test_they_hold(self):
        task = tasks.with_options
        stored = Job.objects.get(pk=task.enqueue(1).id)

        assert (stored.max_attempts, stored.unique_key, stored.timeout) == (3, "thing:1", 60)
        assert task.enqueue(1).is_duplicate

    def test_backoff_and_attempts(self, drain):
        result = tasks.with_options.enqueue(1)
        drain()
        result.refresh()

        assert (result.attempts, result.status) == (3, TaskResultStatus.FAILED)

    def test_give_up_on(self, drain):
        result = tasks.with_options.enqueue(-1)
        drain()
        result.refresh()

        assert (result.attempts, result.errors[0].exception_class) == (1, LookupError)

    def test_atomic(self, drain, sent):
        result = tasks.fail_atomically.enqueue()
        drain()
        result.refresh()

        assert result.status == TaskResultStatus.FAILED
        assert not Effect.objects.exists()
        assert [each.name for each in sent] == ["task_enqueued", "task_started", "task_finished"]

    def test_a_receiver_of_started_breaks_no_transaction_of_the_task(self, drain):
        def receive(**_):
            with connection.cursor() as cursor:
                cursor.execute("SELECT no_such_column FROM django_jobs_job")

        signals.task_started.connect(receive)
        try:
            result = tasks.fail_atomically.enqueue()
            drain()
        finally:
            signals.task_started.disconnect(receive)

        result.refresh()
        assert result.errors[0].exception_class is ValueError


class TestWhoIsFollowed:
    def attempted(self, name):
        return Attempted(Outcome(1, 1, "completed"), row(name=name), 0.1)

    def test_a_batch_with_a_task(self):
        task = tasks.noop.module_path

        assert is_followed([self.attempted("tests.workload.jobs.nothing"), self.attempted(task)])

    def test_a_batch_of_plain_jobs_is_not_while_tasks_are_known(self):
        assert registry.listening
        assert not is_followed([self.attempted("tests.workload.jobs.nothing")] * 2)


def test_a_task_can_use_what_jobs_can(drain):
    assert current_job() is None
    result = tasks.snooze.enqueue()
    drain()

    assert Job.objects.get(pk=result.id).state == "scheduled"


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_without_time_zones_moments_are_naive(drain, zone):
    with override_settings(USE_TZ=False, TIME_ZONE=zone):
        result = tasks.noop.enqueue()
        later = tasks.noop.using(run_after=timezone.now() + dt.timedelta(hours=1)).enqueue()
        drain()
        result.refresh()

        assert abs(timezone.now() - result.enqueued_at) < dt.timedelta(minutes=5)
        assert result.finished_at.tzinfo is None
        assert tasks.noop.get_result(later.id).task == later.task
