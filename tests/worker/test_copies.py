"""A job that forks, and whose child process returns from it as well: that one ends there, and says nothing on what it
has of the worker's."""

import os
import signal
import sys
import warnings

import pytest

from django_jobs import current_job
from django_jobs.models import Job
from django_jobs.testing import run_jobs
from django_jobs.worker import attempt, copies
from tests.waiting import eventually
from tests.workload.models import Effect


def ended(pid):
    """How a process ended; where it does not, it is killed, and that is told."""
    codes = []

    def look():
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            codes.append(os.waitstatus_to_exitcode(status))
        return done

    try:
        eventually(look, 5)
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return "it goes on and on"
    return codes[0]


def fork(how):
    Effect.objects.create(job_id=current_job().job.id, claims=1, pid=os.getpid())
    with warnings.catch_warnings(action="ignore"):  # of threads, in newer Pythons
        pid = os.fork()
    if pid:
        return ended(pid)
    if how == "raise":
        raise ValueError("in the child")
    if how == "exit":
        sys.exit(3)
    return "in the child"


async def fork_async(how):
    with warnings.catch_warnings(action="ignore"):
        pid = os.fork()
    if pid:
        return ended(pid)
    if how == "raise":
        raise ValueError("in the child")
    if how == "exit":
        sys.exit(3)
    return "in the child"


@pytest.mark.django_db
def test_who_runs_jobs_by_itself_is_no_copy(define, monkeypatch):
    """As in a process of a parallel test run, whose parent has run a worker before it forked."""
    copied = [1]
    for module in (copies, attempt):
        monkeypatch.setattr(module, "copied", copied)

    def leave(error, job_id):
        raise AssertionError("the whole process would end here, and the job would stay running")

    monkeypatch.setattr(attempt, "leave", leave)
    define(lambda: None).enqueue()
    (job,) = run_jobs()
    assert job.state == "completed"


@pytest.mark.parametrize("kind", ["plain", "atomic", "async"])
def test_the_child_ends_where_the_job_does(define, live, kind):
    job = define(fork_async if kind == "async" else fork, max_attempts=1, atomic=kind == "atomic")
    live(size=1)
    codes = {"return": 0, "raise": 1, "exit": 3}

    told = {how: job.enqueue(how).wait(30).result for how in codes}

    assert told == codes
    assert {*Job.objects.values_list("state", "attempt")} == {("completed", 1)}
    assert Effect.objects.count() == (0 if kind == "async" else 3)
