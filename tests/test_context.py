"""What a function is told of its job."""

import contextvars
from typing import Any

import pytest

from django_jobs import JobContext, current_job, job
from django_jobs.attempt_state import running
from django_jobs.store.rows import ATTEMPT, ID, JOB_COLUMNS, MAX_ATTEMPTS, NAME, STATE, WORKER_ID, JobRow
from django_jobs.worker.signs import Signs


def row(attempt=1, max_attempts=3):
    values: list[Any] = [None] * len(JOB_COLUMNS)
    values[ATTEMPT], values[MAX_ATTEMPTS] = attempt, max_attempts
    values[ID], values[NAME], values[STATE], values[WORKER_ID] = 7, "tests.context", "running", 0
    return JobRow(tuple(values))


def signs(stop):
    """As a worker sets them; the row is of worker 0."""
    made = Signs()
    made.stopping = stop
    return made


@pytest.mark.parametrize(("attempt", "last"), [(1, False), (2, False), (3, True)])
def test_knows_the_attempt(attempt, last):
    context = JobContext(row(attempt), "tests.context")

    assert (context.attempt, context.is_last_attempt()) == (attempt, last)


@pytest.mark.parametrize("stop", [False, True])
def test_asks_the_worker_whether_to_stop(stop):
    assert JobContext(row(), "tests.context", signs(stop)).should_stop() is stop


def test_of_a_direct_call():
    context = JobContext.detached("tests.context")

    assert (context.job, context.name, context.attempt) == (None, "tests.context", 1)
    assert context.is_last_attempt()
    assert not context.should_stop()
    assert repr(context) == "<context of a direct call of tests.context>"


def test_without_a_worker_nobody_says_stop():
    context = JobContext(row(), "tests.context")

    assert not context.should_stop()
    assert repr(context) == "<context of <job 7 tests.context running>>"


def test_there_is_no_current_job_outside_of_one():
    assert current_job() is None
    assert job(name="tests.current_job")(current_job).call() is None


def test_the_current_job():
    definition = job(name="tests.current_job")(current_job)

    def run():
        running.set([row(2), definition, signs(True), None])
        return definition.call()

    context = contextvars.copy_context().run(run)
    assert (context.job, context.name, context.attempt) == (row(2), "tests.current_job", 2)
    assert context.should_stop()
    assert current_job() is None
