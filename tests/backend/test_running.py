"""Tasks that a worker has run: their results, errors, attempts, and what they are given."""

import pytest
from django.utils import timezone

from django_jobs.backend import JobsBackend
from django_jobs.backend.framework import TaskResultStatus
from tests.workload import tasks


def test_a_task_runs_and_its_result_tells_all_of_it(drain):
    result = tasks.echo.enqueue(value=42)
    before = timezone.now()
    drain()
    result.refresh()
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.is_finished
    assert result.return_value == 42
    assert result.enqueued_at < result.started_at <= result.finished_at
    assert result.started_at >= before
    assert result.last_attempted_at == result.started_at
    assert result.attempts == 1
    assert len(result.worker_ids) == 1
    assert result.worker_ids[0].isdigit()
    assert result.errors == []
    assert result.args == []
    assert result.kwargs == {"value": 42}
    assert result == tasks.echo.get_result(result.id)


@pytest.mark.parametrize("task", [tasks.noop, tasks.noop_async, tasks.echo, tasks.echo_async])
def test_no_result_is_none(drain, task):
    result = task.enqueue()
    drain()
    result.refresh()
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value is None


def test_what_a_task_returns_is_normalized_as_the_framework_says(drain):
    result = tasks.echo.enqueue()
    async_result = tasks.echo_async.enqueue({"a": [1, None, 2.5]})
    odd = [tasks.odd_keys.enqueue(), tasks.odd_keys_async.enqueue()]
    drain()
    assert tasks.echo_async.get_result(async_result.id).return_value == {"a": [1, None, 2.5]}
    assert tasks.echo.get_result(result.id).return_value is None
    for each in odd:
        each.refresh()
        assert each.return_value == {"1": ["text", [0, 1]], "null": True}


@pytest.mark.parametrize(
    ("task", "kind", "message"),
    [
        (tasks.fail, ValueError, "ValueError: no\n"),
        (tasks.fail_async, ValueError, "ValueError: no\n"),
        (tasks.exit_process, SystemExit, "SystemExit: the task exits\n"),
        (tasks.unwritable, TypeError, "Unsupported type"),
    ],
)
def test_a_task_that_fails_has_its_error(drain, task, kind, message):
    result = task.enqueue()
    drain()
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert result.is_finished
    assert result.finished_at is not None
    with pytest.raises(ValueError, match="Task failed"):
        result.return_value  # noqa: B018
    (error,) = result.errors
    assert error.exception_class is kind
    assert error.traceback.startswith("Traceback")
    assert message in error.traceback
    assert result.attempts == 1


def test_the_context_is_the_frameworks(drain):
    result = tasks.attempts_and_id.enqueue()
    async_result = tasks.context_async.enqueue(7)
    worker = drain()
    result.refresh()
    assert result.return_value == [1, 1, result.id, "RUNNING", [str(worker.worker_id)], []]
    async_result.refresh()
    assert async_result.return_value == [1, async_result.id, 7]


def test_the_log_lines_are_the_frameworks(drain, caplog):
    caplog.set_level("DEBUG", logger="django.tasks")
    caplog.set_level("DEBUG", logger="django_tasks")
    done, failed = tasks.noop.enqueue(), tasks.fail.enqueue("told in the log")
    drain()
    lines = [record for record in caplog.records if record.name in ("django.tasks", "django_tasks")]
    of_done = [record for record in lines if f"id={done.id} " in record.message]
    assert ["enqueued" in of_done[0].message, "RUNNING" in of_done[1].message] == [True, True]
    assert "state=SUCCESSFUL" in of_done[2].message
    assert of_done[2].exc_info is None
    (error,) = [record for record in lines if record.levelname == "ERROR"]
    assert f"id={failed.id} " in error.message
    assert "state=FAILED" in error.message
    assert "told in the log" in str(error.exc_info[1])


def test_the_backend_is_the_sender_and_signals_come_in_order(drain, sent):
    result = tasks.noop.enqueue()
    assert [(each.name, each.status) for each in sent] == [("task_enqueued", "READY")]
    drain()
    assert [(each.name, each.status, each.error) for each in sent] == [
        ("task_enqueued", "READY", None),
        ("task_started", "RUNNING", None),
        ("task_finished", "SUCCESSFUL", None),
    ]
    assert {each.sender for each in sent} == {JobsBackend}
    assert {each.id for each in sent} == {result.id}
