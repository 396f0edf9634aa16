"""``immediate()`` and ``capture_jobs()``."""

import datetime as dt

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction

from django_jobs import enqueue_many
from django_jobs.backend.framework import TaskResultStatus
from django_jobs.models import Job, Worker
from django_jobs.testing import capture_jobs, immediate, run_jobs
from tests.testing import jobs
from tests.workload import tasks


class TestImmediate:
    def test_enqueue_returns_the_job_as_it_ended(self, anywhere, ran):
        with immediate():
            row = jobs.note.enqueue("x")

        assert (row.state, row.result, ran) == ("completed", "x", ["x"])
        assert jobs.note.enqueue("y").state == "available"
        assert ran == ["x"]
        assert not Worker.objects.exists()

    def test_jobs_of_jobs(self, anywhere, ran):
        with immediate():
            jobs.enqueue_another.enqueue(2)

        assert ran == [2, 1, 0]
        assert set(Job.objects.values_list("state", flat=True)) == {"completed"}

    def test_many(self, anywhere, ran):
        with immediate():
            rows = enqueue_many([jobs.note.prepare(1), jobs.note.prepare(2)])
            jobs.note.enqueue_many([(3,)])

        assert ran == [1, 2, 3]
        assert [row.state for row in rows] == ["completed", "completed"]

    def test_leaves_alone_what_was_there_or_is_not_due(self, anywhere, ran):
        jobs.note.using(priority=100).enqueue("before")
        with immediate():
            assert jobs.note.using(run_after=dt.timedelta(hours=1)).enqueue().state == "scheduled"
            assert jobs.note.using(pending=True).enqueue().state == "pending"
            assert jobs.note.using(unique_key="k", pending=True).enqueue().state == "pending"
            assert jobs.note.using(unique_key="k").enqueue().is_duplicate
            jobs.note.enqueue("now")

        assert ran == ["now"]

    def test_errors(self, anywhere):
        with immediate():
            assert jobs.fail.enqueue("a").state == "scheduled"
        with immediate(raise_errors=True), pytest.raises(ValueError, match="b"):
            jobs.fail.enqueue("b")

        assert list(Job.objects.values_list("state", flat=True)) == ["scheduled"] * 2

    def test_tasks(self, anywhere):
        with immediate():
            result = tasks.echo.enqueue(5)

        assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 5)

    def test_in_async_code(self, anywhere, ran):
        async def go():
            with immediate():
                return await jobs.note_async.aenqueue("x")

        assert async_to_sync(go)().state == "completed"

    def test_the_fixture(self, immediate_jobs, ran):
        jobs.note.enqueue("x")
        assert ran == ["x"]


class TestCapture:
    def test_what_was_enqueued_in_the_block(self, anywhere, ran):
        jobs.note.enqueue("before")
        with capture_jobs() as captured:
            assert captured == []
            first = jobs.note.enqueue("a")
            assert captured == [first]
            jobs.note.enqueue_many([("b",), ("c",)])
        jobs.note.enqueue("after")

        assert [row.args for row in captured] == [["a"], ["b"], ["c"]]
        assert ran == []

    def test_not_what_was_rolled_back_and_no_duplicates(self, anywhere):
        with capture_jobs() as captured:
            with transaction.atomic():
                jobs.note.enqueue("undone")
                transaction.set_rollback(True)
            jobs.note.using(unique=True).enqueue(1)
            jobs.note.using(unique=True).enqueue(1)

        assert [row.args for row in captured] == [[1]]

    def test_nothing_if_all_was_rolled_back(self, anywhere):
        with capture_jobs(execute=True) as captured, transaction.atomic():
            jobs.note.enqueue("undone")
            transaction.set_rollback(True)

        assert captured == []

    def test_run_at_the_end(self, anywhere, ran):
        jobs.note.enqueue("before")
        with capture_jobs(execute=True) as captured:
            jobs.note.enqueue("x")
            jobs.note.using(run_after=dt.timedelta(hours=1)).enqueue("later")
            assert ran == []

        assert ran == ["x"]
        assert [(row.state, row.result) for row in captured] == [("completed", "x"), ("scheduled", None)]

    def test_errors(self, anywhere):
        with pytest.raises(ValueError, match="a"), capture_jobs(execute=True, raise_errors=True):
            jobs.fail.enqueue("a")

    def test_an_error_of_the_block_is_not_hidden(self, anywhere, ran):
        with pytest.raises(KeyError), capture_jobs(execute=True):
            jobs.note.enqueue("x")
            raise KeyError
        jobs.note.enqueue("not followed any more")

        assert ran == []

    def test_with_callbacks_of_commit(self, db, django_capture_on_commit_callbacks, ran):
        with capture_jobs() as captured, django_capture_on_commit_callbacks(execute=True):
            transaction.on_commit(lambda: jobs.note.enqueue("on commit"))
            assert captured == []

        assert [row.args for row in captured] == [["on commit"]]

    def test_what_a_job_enqueues_while_it_runs(self, anywhere):
        jobs.enqueue_another.enqueue(1)
        with capture_jobs() as captured:
            run_jobs()

        assert [row.args for row in captured] == [[0]]

    def test_in_another_database_is_another_matter(self, db, settings):
        with capture_jobs(using="default") as captured:
            jobs.note.enqueue()

        assert len(captured) == 1

    @pytest.mark.django_db(transaction=True)
    def test_in_async_code(self, ran):
        async def go():
            async with capture_jobs(execute=True) as captured:
                await jobs.note_async.aenqueue("x")
            return captured

        (row,) = async_to_sync(go)()
        assert row.result == User.objects.get().pk

    def test_can_be_used_again(self, anywhere):
        capture = capture_jobs()
        for number in range(2):
            with capture as captured:
                jobs.note.enqueue(number)
            assert [row.args for row in captured] == [[number]]

    def test_the_fixture(self, captured_jobs):
        jobs.note.enqueue("x")
        assert [row.args for row in captured_jobs] == [["x"]]
