"""``run_jobs()`` and ``drain()``: as a worker does it, in the test's own transaction."""

import datetime as dt
import sys

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from django_jobs import operations, registry, signals
from django_jobs.models import Job, Worker
from django_jobs.schedules import periodic, schedules
from django_jobs.testing import (
    TooManyJobs,
    adrain,
    arun_jobs,
    assert_enqueued,
    assert_not_enqueued,
    drain,
    run_jobs,
    run_schedules,
    time_travel,
)
from tests.testing import jobs
from tests.workload import tasks


def test_a_job_runs_and_is_recorded(anywhere, ran):
    row = jobs.note.enqueue("x")
    (after,) = run_jobs()

    assert ran == ["x"]
    assert (after.id, after.state, after.attempt, after.result) == (row.id, "completed", 1, "x")
    assert after == row.refresh()
    assert connection.in_atomic_block == anywhere
    assert not Worker.objects.exists()


def test_each_that_is_due_runs_once(anywhere, ran):
    jobs.enqueue_another.enqueue(2)
    jobs.note.using(run_after=dt.timedelta(hours=1)).enqueue("later")
    jobs.note.using(pending=True).enqueue("pending")

    assert [len(run_jobs()) for _ in range(4)] == [1, 1, 1, 0]
    assert ran == [2, 1, 0]


def test_drain_goes_on_until_nothing_is_due(anywhere, ran):
    jobs.enqueue_another.enqueue(3)
    jobs.fail_at_once.enqueue()

    assert sorted(row.state for row in drain()) == ["available"] * 2 + ["completed"] * 4 + ["failed"]
    assert ran.count("fail_at_once") == 3
    assert drain() == []


def test_drain_has_an_end(anywhere):
    jobs.enqueue_for_ever.enqueue()
    with pytest.raises(TooManyJobs, match="7 jobs have run"):
        drain(most=7)

    assert Job.objects.filter(state="completed").count() == 7
    assert Job.objects.get(state="available").attempt == 0, "given back"


def test_in_the_workers_order(anywhere, ran):
    jobs.note.using(priority=-1).enqueue("last")
    jobs.note.enqueue("second")
    jobs.note.using(priority=5).enqueue("first")
    run_jobs()

    assert ran == ["first", "second", "last"]


def test_of_one_queue_or_so_many(anywhere, ran):
    for name in ("a", "b", "b"):
        jobs.note.using(queue_name=name).enqueue(name)

    assert len(run_jobs(queue_name="b", limit=1)) == 1
    assert ran == ["b"]
    assert len(run_jobs(limit=1)) == 1
    assert ran == ["b", "a"]


def test_a_paused_queue_is_left_alone(anywhere, ran):
    operations.pause("default")
    jobs.note.enqueue()
    assert drain() == []

    operations.resume("default")
    assert len(drain()) == 1


class TestErrors:
    def test_are_recorded_and_what_was_written_stays(self, anywhere):
        jobs.fail.enqueue("kept")
        (after,) = run_jobs()

        assert (after.state, after.error_class, after.errors[0]["message"]) == (
            "scheduled",
            "ValueError",
            "kept",
        )
        assert User.objects.filter(username="kept").exists(), "as a worker would have committed it"

    def test_can_be_raised_when_they_are_recorded(self, anywhere, ran):
        row = jobs.fail.using(queue_name="default").enqueue("told")
        jobs.note.enqueue("behind")
        with pytest.raises(ValueError, match="told"):
            run_jobs(raise_errors=True)

        assert row.refresh().state == "scheduled"
        assert ran == []
        assert Job.objects.get(name=jobs.note.name).state == "available"
        assert len(drain(raise_errors=True)) == 1

    def test_a_word_on_its_own_outcome_is_none(self, anywhere):
        jobs.snooze.enqueue()
        (after,) = run_jobs(raise_errors=True)

        assert (after.state, after.attempt) == ("scheduled", 0)

    def test_of_the_database_undo_what_the_job_wrote_and_no_more(self, anywhere):
        User.objects.create(username="the test's")
        jobs.break_transaction.enqueue()
        (after,) = run_jobs()

        assert "no_such_column" in after.errors[0]["message"]
        assert User.objects.filter(username="the test's").exists()
        if anywhere and connection.vendor == "postgresql":
            assert not User.objects.filter(username="undone").exists()

    def test_a_name_that_is_not_registered(self, anywhere):
        row = jobs.note.enqueue()
        Job.objects.filter(pk=row.id).update(name="gone")
        (after,) = run_jobs()

        assert (after.state, after.error_class) == ("scheduled", "django_jobs.NotRegistered")


class TestTransactions:
    def test_what_a_job_commits_is_followed_by_its_callbacks(self, anywhere, ran):
        jobs.on_commit.enqueue()
        jobs.roll_back.enqueue()
        run_jobs(raise_errors=True)

        assert ran == ["in the transaction", "committed"]

    def test_also_when_the_job_fails_later(self, anywhere, ran):
        jobs.on_commit.enqueue(raises=True)
        run_jobs()

        assert ran == ["in the transaction", "committed"]

    def test_the_tests_own_callbacks_are_left_alone(self, db, ran):
        transaction.on_commit(lambda: ran.append("the test's"))
        jobs.on_commit.enqueue()
        run_jobs()

        assert "the test's" not in ran
        assert len(connection.run_on_commit) == 1

    @pytest.mark.parametrize(("raises", "state", "users"), [(False, "completed", 1), (True, "scheduled", 0)])
    def test_atomic(self, anywhere, raises, state, users):
        jobs.atomically.enqueue("name", raises)
        (after,) = run_jobs()

        assert after.state == state
        assert after.result == (None if raises else "done")
        assert User.objects.count() == users

    def test_a_job_that_completes_itself(self, anywhere, caplog):
        jobs.complete_itself.enqueue("name")
        (after,) = run_jobs()

        assert (after.state, after.result) == ("completed", "by itself")
        assert "dropped" not in caplog.text


class TestWhatAJobSees:
    def test_its_context(self, anywhere):
        jobs.tell.enqueue()
        (after,) = run_jobs()

        assert after.result == [1, False, anywhere]
        assert after.metadata == {"progress": {"done": 1, "total": 2, "note": ""}, "a": 1}

    def test_that_it_was_cancelled(self, anywhere, ran):
        def cancel(job, **_):
            operations.cancel([behind.id])

        jobs.note.enqueue("first")
        behind = jobs.note.enqueue("cancelled by the first")
        signals.job_started.connect(cancel)
        try:
            run_jobs()
        finally:
            signals.job_started.disconnect(cancel)
        assert behind.refresh().state == "cancelled"
        assert ran == ["first"]

    def test_the_middleware(self, anywhere, ran, settings):
        settings.DJANGO_JOBS = {"MIDDLEWARE": [f"{__name__}.around"]}
        jobs.note.enqueue("inside")
        run_jobs()

        assert ran == ["before", "inside", "after"]

    def test_the_signals(self, anywhere):
        seen = []

        def receive(job, outcome, **_):
            seen.append((job.state, outcome))

        signals.job_finished.connect(receive)
        try:
            jobs.note.enqueue()
            run_jobs()
        finally:
            signals.job_finished.disconnect(receive)
        assert seen == [("completed", "completed")]


def around(run):
    def step(context):
        jobs.ran.append("before")
        try:
            return run(context)
        finally:
            jobs.ran.append("after")

    return step


class TestAsync:
    def test_an_async_job(self, anywhere, ran):
        jobs.note_async.enqueue("async")
        (after,) = run_jobs(raise_errors=True)

        assert after.result == User.objects.get(username="async").pk

    def test_from_async_code(self, anywhere, ran):
        async def go():
            await jobs.note.aenqueue(1)
            first = await arun_jobs()
            await jobs.note_async.aenqueue("x")
            return first + await adrain(queue_name="default")

        assert [row.state for row in async_to_sync(go)()] == ["completed", "completed"]


class TestTasks:
    def test_run_as_well(self, anywhere):
        result = tasks.attempts_and_id.enqueue()
        failed = tasks.fail.enqueue("no")
        run_jobs()
        result.refresh()
        failed.refresh()

        assert result.return_value[:3] == [1, 1, result.id]
        assert failed.errors[0].exception_class is ValueError

    def test_their_signals_are_sent_at_their_end(self, anywhere):
        from django_jobs.backend.framework import signals as of_tasks

        seen = []

        def receive(task_result, **_):
            seen.append((str(task_result.status), sys.exc_info()[1]))

        of_tasks.task_finished.connect(receive)
        try:
            tasks.fail.enqueue("no")
            run_jobs()
        finally:
            of_tasks.task_finished.disconnect(receive)
        assert [status for status, _ in seen] == ["FAILED"]
        assert isinstance(seen[0][1], ValueError)


class TestTime:
    def test_stands_still_until_it_is_moved(self, anywhere, ran):
        begin = dt.datetime(2031, 2, 3, 4, 5, 6, 789, tzinfo=dt.UTC)
        with time_travel(begin) as clock:
            row = jobs.note.using(run_after=dt.timedelta(hours=1)).enqueue("later")
            assert (row.created_at, row.run_after) == (begin, begin + dt.timedelta(hours=1))
            assert run_jobs() == []

            clock.advance(3599.5)
            assert run_jobs() == []
            clock.advance(dt.timedelta(seconds=0.5))
            (after,) = run_jobs()
            assert (after.attempted_at, after.finalized_at) == (clock.now, clock.now)

        assert ran == ["later"]
        assert abs(jobs.note.enqueue().created_at - timezone.now()) < dt.timedelta(minutes=5)

    def test_retries_come_when_it_has_come_that_far(self, anywhere):
        with time_travel() as clock:
            row = jobs.fail.enqueue("a")
            assert [each.state for each in drain()] == ["scheduled"]
            clock.advance(59)
            assert drain() == []
            clock.advance(1)
            User.objects.all().delete()
            assert [each.state for each in drain()] == ["failed"]
            assert row.refresh().attempt == 2

    def test_may_go_back(self, anywhere):
        with time_travel() as clock:
            clock.move_to(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
            row = jobs.note.enqueue()
            assert row.created_at.year == 2020
            assert len(run_jobs()) == 1

    def test_a_naive_moment_is_one_of_the_sites_zone(self, settings):
        settings.TIME_ZONE = "Europe/Berlin"
        with time_travel(dt.datetime(2030, 7, 1, 12)) as clock:
            assert clock.now == dt.datetime(2030, 7, 1, 10, tzinfo=dt.UTC)

    def test_what_is_no_moment(self):
        with pytest.raises(TypeError, match="a moment is a datetime"), time_travel(5):
            pass
        with time_travel() as clock, pytest.raises(TypeError, match="a delay"):
            clock.advance("1")

    def test_the_fixture(self, db, jobs_clock, run_jobs, ran):
        jobs.note.using(run_after=dt.timedelta(days=400)).enqueue("far")
        jobs_clock.advance(dt.timedelta(days=400))
        run_jobs()

        assert ran == ["far"]


class TestSchedules:
    @pytest.fixture(autouse=True)
    def _nightly(self):
        periodic("0 3 * * *", key="tests.testing.nightly", args=["nightly"], timezone="UTC")(jobs.note)
        yield
        schedules.remove("tests.testing.nightly")

    def test_tick_by_the_clock(self, anywhere, ran):
        with time_travel(dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)) as clock:
            run_schedules()
            clock.advance(dt.timedelta(hours=14))
            run_schedules()
            assert_not_enqueued(jobs.note, args=["nightly"])

            clock.advance(dt.timedelta(hours=1))
            run_schedules()
            row = assert_enqueued(jobs.note, args=["nightly"], count=1)
            assert row.created_at == clock.now
            run_jobs()
        assert "nightly" in ran


def test_the_registry_is_not_changed(db):
    before = {definition.name for definition in registry}
    run_jobs()
    assert {definition.name for definition in registry} == before
