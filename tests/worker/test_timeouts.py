"""Timeouts: an attempt is told, then given up; its place goes on, and what comes of it late is dropped."""

import datetime as dt
import json
import threading

import pytest

import django_jobs
from django_jobs import InvalidJob, Snooze, TimedOut, current_job, registry
from django_jobs.attempt_state import running, state_of
from django_jobs.models import Job
from django_jobs.worker.attempt import GIVEN_UP, Runner
from django_jobs.worker.signs import Signs
from django_jobs.worker.timeouts import Timeouts, Watch
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, WORKER, Gate, row

SOON = 0.05


@pytest.fixture
def timeouts():
    made = Timeouts(grace=SOON)
    yield made
    made.close()


@pytest.fixture
def runner(timeouts):
    signs = Signs()
    signs.worker_id = WORKER
    return Runner(registry, signs, timeouts=timeouts)


def last_error(ended):
    return json.loads(ended.outcome.errors)[-1]


def until_told(context=None):
    context = context or current_job()
    eventually(context.should_stop)
    return context


# -- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "seconds"), [(5, 5.0), (0.5, 0.5), (dt.timedelta(minutes=1), 60.0)])
def test_the_timeout_is_stored_with_the_job(db, define, given, seconds):
    definition = define(lambda: None, timeout=given)

    assert definition.enqueue().timeout == seconds
    assert definition.enqueue_many([()])[0].timeout == seconds
    assert definition.using(timeout=7).enqueue().timeout == 7.0
    assert set(Job.objects.values_list("timeout", flat=True)) == {seconds, 7.0}


def test_none_takes_the_function_s_timeout_away(db, define, runner):
    definition = define(lambda: threading.Event().wait(SOON * 1.5) or 5, timeout=SOON)
    without = definition.using(timeout=None)

    for job in [without.enqueue(), *without.enqueue_many([()]), without.using(unique=True).enqueue()]:
        assert job.timeout == 0
        assert runner.run(job).outcome.result == "5"
    assert without.using(timeout=SOON).enqueue().timeout == SOON


def test_a_function_with_the_timeout_0_has_none(db, define):
    definition = define(lambda: None, timeout=0)
    assert definition.is_bare


def test_without_one_none_is_stored(db, define):
    assert define(lambda: None).enqueue().timeout is None


@pytest.mark.parametrize("given", [-1, float("nan"), float("inf"), True, "5", 1e12, dt.timedelta(-1), [5]])
def test_what_is_no_timeout_is_refused(given):
    with pytest.raises(
        InvalidJob,
        match=r"timeout of tests\.refused is .*; it must be a number of seconds, or a timedelta, from 0",
    ):
        django_jobs.job(name="tests.refused", timeout=given)(lambda: None)
    assert "tests.refused" not in registry


# -- in the calling thread --------------------------------------------------------------------------------------------


def test_who_is_in_time_has_its_own_outcome(define, runner, timeouts):
    definition = define(lambda: 5, timeout=60)

    assert runner.run(row(name=definition.name)).outcome.result == "5"
    assert not timeouts._watches


def test_a_job_that_ends_because_its_time_is_over_has_timed_out(define, runner):
    definition = define(lambda: until_told() and None, timeout=SOON, backoff=5)
    ended = runner.run(row(name=definition.name))

    assert (ended.outcome.kind, ended.outcome.delay) == ("retry", 5.0)
    assert ended.outcome.error_class == last_error(ended)["class"] == "django_jobs.TimedOut"
    assert last_error(ended)["message"] == "It took longer than its timeout of 0.05 s."


def test_a_heartbeat_that_came_too_late_tells_it_to_end(define, runner):
    def work():
        state_of(running.get()).watch.at = 0.0
        return None if current_job().heartbeat() else "halfway"

    ended = runner.run(row(name=define(work, timeout=SOON, backoff=5).name))

    assert (ended.outcome.kind, ended.outcome.error_class, ended.outcome.result) == (
        "retry", "django_jobs.TimedOut", None,
    )  # fmt: skip


def test_the_row_s_timeout_goes_before_the_function_s(define, runner):
    definition = define(lambda: until_told() and None, timeout=3600)

    assert runner.run(row(name=definition.name, timeout=SOON)).outcome.error_class == "django_jobs.TimedOut"


@pytest.mark.parametrize("strange", ["soon", float("nan"), -1.0, 0])
def test_a_strange_timeout_in_a_row_is_none(define, runner, strange):
    definition = define(lambda: current_job().should_stop())

    assert runner.run(row(name=definition.name, timeout=strange)).outcome.result == "false"


def test_one_that_did_not_look_and_returned_is_completed_though_late(define, runner):
    late = threading.Event()
    definition = define(lambda: late.wait(SOON * 1.5) or 5, timeout=SOON)
    runner.timeouts.grace = 60.0

    assert runner.run(row(name=definition.name)).outcome.kind == "completed"


def test_what_it_raised_is_told_with_it(define, runner):
    def fail():
        until_told()
        raise ValueError("half done")

    ended = runner.run(row(name=define(fail, timeout=SOON).name))

    assert ended.outcome.error_class == "django_jobs.TimedOut"
    assert "It ended with ValueError: half done" in last_error(ended)["message"]
    assert "in fail" in last_error(ended)["traceback"]


def test_its_own_word_counts(define, runner):
    def snooze():
        until_told()
        raise Snooze(60)

    assert runner.run(row(name=define(snooze, timeout=SOON).name)).outcome.kind == "snoozed"


def test_it_can_be_given_up_on(define, runner):
    definition = define(lambda: until_told() and None, timeout=SOON, give_up_on=TimedOut)

    assert runner.run(row(name=definition.name)).outcome.kind == "failed"


def test_it_is_tried_again_whatever_is_to_be_retried_on(define, runner):
    definition = define(lambda: until_told() and None, timeout=SOON, retry_on=OSError)

    assert runner.run(row(name=definition.name)).outcome.kind == "retry"


def test_a_heartbeat_starts_the_time_anew():
    watch = Watch(row(), 60.0)
    watch.at -= 59.0
    before = watch.at

    assert watch.extend()
    assert watch.at > before + 50
    watch.at = 0.0
    assert not watch.extend()
    assert watch.is_late()


def test_a_job_that_gives_signs_of_life_runs_for_many_timeouts(define, runner, timeouts):
    beat = threading.Event()

    def work():
        for _ in range(30):
            assert current_job().heartbeat()
            beat.wait(0.02)
        return "done"

    assert runner.run(row(name=define(work, timeout=0.3).name)).outcome.result == '"done"'


# -- given up ---------------------------------------------------------------------------------------------------------


def test_one_that_does_not_end_is_given_up_and_told_as_a_stray(define, runner, timeouts, caplog):
    gate = Gate()

    def hang():
        current_job().merge_metadata({"step": 3}, later=True)
        gate()

    definition = define(hang, timeout=SOON, backoff=5, retry_on=OSError)
    recorded, ended = [], []
    thread = threading.Thread(
        target=lambda: ended.append(runner.run(row(name=definition.name), recorded.append))
    )
    thread.start()
    eventually(lambda: recorded)

    (record,) = recorded
    attempted = record()
    assert (attempted.outcome.kind, attempted.outcome.delay) == ("retry", 5.0)
    assert attempted.outcome.error_class == "django_jobs.TimedOut"
    assert "did not end when it was told to" in last_error(attempted)["message"]
    assert "in hang" in last_error(attempted)["traceback"], "where it hangs is told"
    assert "worker/attempt.py" not in last_error(attempted)["traceback"]
    assert attempted.metadata == '{"step":3}'
    assert timeouts.strays == 1
    assert "is a stray (1 by now)" in caplog.text

    gate.open()
    thread.join(TIMEOUT)
    assert ended == [GIVEN_UP]
    assert timeouts.strays == 0
    assert "its outcome is dropped" in caplog.text


def test_an_attempt_ends_once_whoever_is_faster(timeouts):
    """The one who ends it and the one who gives it up, again and again at the same moment."""
    for _ in range(200):
        watch = Watch(row(), 60.0)
        given_up = []
        watch.give_up, watch.record = given_up.append, lambda: None
        watch.interrupted = True
        watch.at = 0.0
        barrier = threading.Barrier(2)

        def end(watch=watch, barrier=barrier, given_up=given_up):
            barrier.wait(TIMEOUT)
            given_up.append(None) if timeouts.end(watch) else None

        thread = threading.Thread(target=end)
        thread.start()
        barrier.wait(TIMEOUT)
        timeouts._late(watch, 1e9)
        thread.join(TIMEOUT)
        assert len(given_up) == 1
    assert timeouts.strays == 0
