"""What ``enqueue()`` of a task takes, stores, returns and refuses."""

import datetime as dt
import pickle

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.safestring import mark_safe

from django_jobs.backend import JobsBackend, JobsTask
from django_jobs.backend.framework import InvalidTask, TaskResultStatus, signals, task_backends
from django_jobs.backoff import Fixed
from django_jobs.models import Job
from django_jobs.stored_backoff import KEY
from tests.workload import tasks


def job(result):
    return Job.objects.get(pk=result.id)


@pytest.mark.parametrize("task", [tasks.noop, tasks.noop_async])
def test_enqueue(db, task):
    result = task.enqueue(1, two=3)

    assert (result.args, result.kwargs) == ([1], {"two": 3})
    assert result.task == task
    assert result.status == TaskResultStatus.READY
    assert not result.is_finished
    assert (result.started_at, result.finished_at, result.last_attempted_at) == (None, None, None)
    assert (result.errors, result.worker_ids, result.attempts) == ([], [], 0)
    assert result.backend == "default"
    assert timezone.now() - result.enqueued_at < dt.timedelta(minutes=5)
    assert result == task.get_result(result.id)
    with pytest.raises(ValueError, match="not finished yet"):
        result.return_value  # noqa: B018
    row = job(result)
    assert (row.name, row.queue_name, row.priority) == (task.module_path, "default", task.priority)


@pytest.mark.django_db(transaction=True)
def test_aenqueue():
    async def go():
        result = await tasks.noop.aenqueue(1)
        assert await tasks.noop.aget_result(result.id) == result
        await result.arefresh()
        return result

    assert async_to_sync(go)().status == TaskResultStatus.READY


def test_enqueue_is_one_statement(db):
    with (
        CaptureQueriesContext(
            connection,
        ) as queries,
        transaction.atomic(),
    ):
        tasks.noop.using(priority=7, run_after=dt.timedelta(hours=1)).enqueue(1, two=3)
    statements = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]

    assert len(statements) == 1
    assert len(queries) == 3, "and the savepoint of the test's own block"


def test_a_task_exists_if_and_only_if_the_transaction_commits(db):
    class Undo(Exception):
        pass

    with pytest.raises(Undo), transaction.atomic():
        undone = tasks.noop.enqueue()
        raise Undo

    assert not Job.objects.filter(pk=undone.id).exists()


class TestArguments:
    @pytest.mark.parametrize(
        ("given", "stored"),
        [
            ((1, 2), [1, 2]),
            ({1: "a", None: [(2,)], False: b"text"}, {"1": "a", "null": [[2]], "false": "text"}),
            ({1.5: {(2): 3}}, {"1.5": {"2": 3}}),
            (b"bytes", "bytes"),
            (range(3), [0, 1, 2]),
            (mark_safe("<b>"), "<b>"),
            ([1e22, -0.0, 2**70], [1e22, -0.0, 2**70]),
        ],
    )
    def test_are_normalized_as_the_framework_says(self, db, given, stored):
        result = tasks.echo.enqueue(given)

        assert result.args == [stored]
        assert job(result).args == [stored]
        assert tasks.echo.get_result(result.id).args == [stored]

    def test_are_copies(self, db):
        given = [1]
        result = tasks.echo.enqueue(
            given,
        )
        given.append(2)

        assert result.args == [[1]]

    @pytest.mark.parametrize("value", [timezone.now(), {1}, object(), [object()], {"a": {"b": 1j}}])
    def test_what_json_has_not(self, db, django_assert_num_queries, value):
        with django_assert_num_queries(0), pytest.raises(TypeError, match="Unsupported type") as caught:
            tasks.echo.enqueue(value=value)

        assert "argument 'value'" in str(caught.value)
        assert "tests.workload.tasks.echo" in str(caught.value)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("a\0b", "NUL"),
            ("\ud800", "surrogate"),
            (float("nan"), "JSON can't hold"),
            ({2: "\0"}, "NUL"),
            ((float("inf"),), "JSON can't hold"),
            (b"\xff", "Unsupported value"),
            ("x" * 1_000_001, "over the limit"),
        ],
    )
    def test_what_a_database_can_not_hold(self, db, django_assert_num_queries, value, message):
        with django_assert_num_queries(0), pytest.raises(ValueError, match=message):
            tasks.echo.enqueue(value)

    def test_that_do_not_fit_the_function(self, db, django_assert_num_queries):
        with django_assert_num_queries(0), pytest.raises(TypeError, match="parameters are \\(value"):
            tasks.echo.enqueue(1, 2)

    def test_the_one_that_is_wrong_is_named(self, db):
        with pytest.raises(TypeError, match=r"echo: argument 'value' can't be written as JSON"):
            tasks.echo.enqueue(object())

    def test_the_context_is_not_one_of_them(self, db):
        assert tasks.context_async.enqueue(1).args == [1]
        with pytest.raises(TypeError, match="missing"):
            tasks.context_async.enqueue()


class TestUsing:
    def test_makes_another_task(self, db):
        other = tasks.noop.using()

        assert other == tasks.noop
        assert other is not tasks.noop
        assert hash(other) == hash(tasks.noop)

    def test_options_of_the_framework(self, db):
        moment = timezone.now() + dt.timedelta(hours=2)
        task = tasks.noop.using(priority=9).using(queue_name="tasks").using(run_after=moment)
        result = task.enqueue()

        row = job(result)
        assert (row.priority, row.queue_name, row.run_after, row.state) == (9, "tasks", moment, "scheduled")
        assert result.task == task
        assert tasks.noop.get_result(result.id) == result
        assert (tasks.noop.priority, tasks.noop.queue_name, tasks.noop.run_after) == (0, "default", None)

    def test_a_delay(self, db):
        result = tasks.noop.using(run_after=dt.timedelta(hours=1)).enqueue()

        assert job(result).run_after - result.enqueued_at == dt.timedelta(hours=1)
        assert tasks.noop.get_result(result.id).task.run_after == job(result).run_after

    def test_options_of_jobs(self, db):
        result = tasks.noop.using(
            max_attempts=7, unique_key="k", pending=True, tags=["a", "b"], timeout=dt.timedelta(minutes=1)
        ).enqueue()

        row = job(result)
        assert (row.max_attempts, row.unique_key, row.state, row.tags, row.timeout) == (
            7,
            "k",
            "pending",
            ["a", "b"],
            60,
        )
        assert tasks.noop.get_result(result.id).task.max_attempts == 7

    def test_a_duplicate_is_the_one_that_is_there(self, db, sent):
        first = tasks.noop.using(unique=True).enqueue(1)
        again = tasks.noop.using(unique=True).enqueue(1)
        other = tasks.noop.using(unique=True).enqueue(2)

        assert again == first
        assert [first.is_duplicate, again.is_duplicate, other.is_duplicate] == [False, True, False]
        assert [each.id for each in sent] == [first.id, other.id]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"priority": 101}, "priority must be a whole number"),
            ({"priority": 3.1}, "priority must be a whole number"),
            ({"queue_name": "unknown"}, "Queue 'unknown' is not valid"),
            ({"queue_name": "a,b", "backend": "any"}, "can't be written in runjobs"),
            ({"run_after": dt.datetime.now()}, "run_after must be an aware"),  # noqa: DTZ005
            ({"run_after": dt.timedelta(days=365 * 200)}, "a hundred years"),
            ({"max_attempts": 0}, "max_attempts of tests.workload.tasks.noop is 0"),
            ({"timeout": -1}, "timeout of"),
            ({"tags": "one"}, "tags of"),
            ({"unique": "{missing}"}, "names 'missing'"),
            ({"unique_for": 5}, "it must be a timedelta"),
            ({"backoff": -1}, "backoff of tests.workload.tasks.noop: backoff has the negative delay -1"),
            ({"backoff": lambda *_: 5}, "goes on the function"),
        ],
    )
    def test_refused_where_it_is_said(self, options, message):
        with pytest.raises(InvalidTask, match=message):
            tasks.noop.using(**options)

    def test_a_whole_number_may_be_a_float(self, db):
        assert job(tasks.noop.using(priority=4.0).enqueue()).priority == 4

    def test_an_unknown_option_is_refused_and_the_nearest_named(self):
        with pytest.raises(
            TypeError, match=r"got an unexpected keyword argument 'queue'\. Did you mean 'queue_name'\?"
        ):
            tasks.noop.using(queue="mail")

    def test_the_functions_own_options_are_not_each_jobs(self):
        with pytest.raises(TypeError, match="give_up_on"):
            tasks.noop.using(give_up_on=ValueError)

    @pytest.mark.parametrize(
        ("backoff", "stored"),
        [
            (5, 5),
            ([1, dt.timedelta(minutes=1)], [1, 60]),
            (Fixed(3), {"policy": "Fixed", "delay": 3, "jitter": 0, "cap": 86_400}),
        ],
        ids=repr,
    )
    def test_a_backoff_of_its_own(self, db, backoff, stored):
        task = tasks.noop.using(backoff=backoff)

        assert job(task.enqueue()).metadata == {KEY: stored}
        assert job(task.using(priority=3).enqueue()).metadata == {KEY: stored}
        assert job(pickle.loads(pickle.dumps(task)).enqueue()).metadata == {KEY: stored}
        assert hash(task) != hash(tasks.noop)

    def test_the_functions_backoff_is_not_each_jobs(self, db):
        assert job(tasks.with_options.using(priority=3).enqueue()).metadata is None
        assert job(tasks.with_options.using(backoff=7, unique=False).enqueue()).metadata == {KEY: 7}

    def test_a_delay_for_a_backend_that_knows_moments_only(self):
        task = tasks.noop.using(run_after=dt.timedelta(hours=1), backend="dummy")

        assert task.run_after > timezone.now() + dt.timedelta(minutes=59)


class TestValidation:
    def test_at_enqueue_too(self, db, settings):
        task = tasks.noop.using(queue_name="tasks")
        settings.TASKS = {"default": {"BACKEND": "django_jobs.backend.JobsBackend"}}

        with pytest.raises(InvalidTask, match="Queue 'tasks' is not valid"):
            task.enqueue()

    def test_at_aenqueue_too(self, db, settings):
        task = tasks.noop.using(queue_name="tasks")
        settings.TASKS = {"default": {"BACKEND": "django_jobs.backend.JobsBackend"}}

        with pytest.raises(InvalidTask, match="Queue 'tasks' is not valid"):
            async_to_sync(task.aenqueue)()

    def test_is_asked_of_the_backend(self, db, monkeypatch):
        seen = []
        monkeypatch.setattr(JobsBackend, "validate_task", lambda self, task: seen.append(task))
        tasks.noop.enqueue()

        assert seen == [tasks.noop]

    @pytest.mark.parametrize("function", [any, Job.__str__.__call__])
    def test_functions_that_no_worker_finds(self, function):
        with pytest.raises(InvalidTask, match="module level"):
            JobsTask(func=function)

    def test_a_function_without_a_name(self):
        with pytest.raises(InvalidTask, match="can't find it by that name"):
            JobsTask(func=NAMELESS)

    def test_a_context_that_the_function_does_not_take(self):
        with pytest.raises(InvalidTask, match="first argument of 'context'"):
            JobsTask(func=tasks.echo.func, takes_context=True)

    def test_a_generator(self):
        with pytest.raises(InvalidTask, match="generator"):
            JobsTask(func=_generator)

    def test_a_job(self):
        with pytest.raises(InvalidTask, match="by @job already"):
            JobsTask(func=_is_a_job)

    def test_all_features(self):
        backend = task_backends["default"]

        assert backend.supports_defer
        assert backend.supports_async_task
        assert backend.supports_get_result
        assert backend.supports_priority


class _Holder:
    function = lambda: None  # noqa: E731


NAMELESS = _Holder.__dict__["function"]


def _generator():
    yield


def _is_a_job():
    """Made a job below."""


@pytest.fixture(autouse=True, scope="module")
def _make_a_job():
    from django_jobs import job as make, registry

    definition = make(_is_a_job)
    yield
    registry.remove(definition)


class TestCopies:
    def test_a_task_is_pickled_by_its_path(self):
        task = tasks.noop.using(priority=3, max_attempts=2, tags=["x"])

        assert pickle.loads(pickle.dumps(task)) == task

    def test_an_unpickled_task_can_be_enqueued(self, db):
        task = pickle.loads(pickle.dumps(tasks.noop.using(max_attempts=2)))

        assert job(task.enqueue()).max_attempts == 2

    def test_a_result_is_pickled(self, db):
        result = tasks.noop.enqueue(1)

        assert pickle.loads(pickle.dumps(result)) == result

    def test_calls_need_no_queue(self):
        assert tasks.echo.call(1) == 1
        assert tasks.echo_async.call(1) == 1


@pytest.mark.django_db(transaction=True)
class TestTaskEnqueued:
    def test_a_receiver_that_raises_harms_nothing(self, caplog):
        def receive(**_):
            raise ValueError("the receiver's")

        signals.task_enqueued.connect(receive)
        try:
            result = tasks.noop.enqueue()
        finally:
            signals.task_enqueued.disconnect(receive)

        assert job(result).state == "available"
        assert "the receiver's" in caplog.text

    def test_a_receiver_that_breaks_the_transaction_undoes_its_own_writes(self, caplog):
        def receive(task_result, **_):
            Job.objects.filter(pk=task_result.id).update(queue_name="written by the receiver")
            with connection.cursor() as cursor:
                cursor.execute("SELECT no_such_column FROM django_jobs_job")

        signals.task_enqueued.connect(receive)
        try:
            with transaction.atomic():
                first = tasks.noop.enqueue()
                second = tasks.noop.enqueue()
        finally:
            signals.task_enqueued.disconnect(receive)

        assert [job(first).state, job(second).state] == ["available", "available"]
        assert isinstance(caplog.records[-1].exc_info[1], DatabaseError)
