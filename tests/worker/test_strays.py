"""Timeouts in a whole worker: a stray's place goes on, and what comes of it late is dropped."""

import asyncio
import contextlib
import logging
import os
import threading

import pytest

from django_jobs import Snooze, current_job
from django_jobs.models import Job
from django_jobs.worker import event_loop
from django_jobs.worker.executor import Executors
from django_jobs.worker.shared_notes import VARIABLE, Notes
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, Gate

SOON = 0.05


@pytest.fixture
def short_grace(settings):
    settings.DJANGO_JOBS = {"TIMEOUT_GRACE": SOON}


def test_a_stray_thread_is_replaced_counted_and_fenced(live, define, short_grace, caplog):
    caplog.set_level(logging.INFO)
    gate = Gate()
    hang = define(lambda: gate() or "too late", timeout=SOON, max_attempts=1)
    quick = define(lambda: "quick")
    stuck = hang.enqueue()
    worker = live(size=1)
    gate.wait()
    after = quick.enqueue()

    assert after.wait(TIMEOUT).result == "quick", "the place of the stray thread is used again"
    stuck.wait(TIMEOUT)
    assert (stuck.state, stuck.error_class, stuck.attempt) == ("failed", "django_jobs.TimedOut", 1)
    assert worker.strays == 1
    eventually(lambda: worker.statistics.timed_out == 1)

    gate.open()
    eventually(lambda: worker.strays == 0)
    worker.stop()
    eventually(lambda: not worker.completer.is_alive())
    assert (stuck.refresh().state, stuck.result) == ("failed", None)
    assert worker.statistics.dropped == 0, "the late outcome never left the worker"


def test_a_stray_is_replaced_later_if_no_thread_can_be_started_then(live, define, short_grace, monkeypatch):
    gate = Gate()
    hang = define(gate, timeout=SOON, max_attempts=1).enqueue()
    after = define(lambda: "after").enqueue()
    live(size=1)
    gate.wait()
    start = Executors._start_thread
    refusals = [RuntimeError("can't start new thread"), MemoryError()]

    def start_at_last(pool, slot, first=None):
        if refusals:
            raise refusals.pop()
        start(pool, slot, first)

    monkeypatch.setattr(Executors, "_start_thread", start_at_last)

    assert hang.wait(TIMEOUT).state == "failed"
    assert after.wait(TIMEOUT).result == "after"
    gate.open()


def test_a_stray_s_next_attempt_runs_beside_it_and_its_late_word_changes_nothing(live, define, short_grace):
    """Scenario: the handler outlives its timeout and is retried while it still runs."""
    gate, second, strays = Gate(), Gate(), []

    def work():
        here = current_job()
        if here.attempt == 1:
            # Its next attempt has all the time that it takes.
            Job.objects.filter(pk=here.job.id).update(timeout=3600)
            strays.append(threading.current_thread())
            gate()
        else:
            second()
        return here.attempt

    job = define(work, timeout=SOON, backoff=0, max_attempts=2).enqueue()
    live(size=1)
    second.wait()
    gate.open()  # the first attempt returns now, while the second runs
    eventually(lambda: not strays[0].is_alive() or job.refresh().state != "running")

    assert (job.refresh().state, job.claims, job.result) == ("running", 2, None)
    second.open()
    job.wait(TIMEOUT)
    assert (job.state, job.attempt, job.claims, job.result) == ("completed", 2, 2, 2)


def test_many_strays_never_take_more_places_than_there_are(live, define, short_grace):
    gate = Gate()
    hang = define(gate.__call__, timeout=SOON, max_attempts=1)
    jobs = hang.enqueue_many([()] * 4)
    worker = live(size=2)

    for job in jobs:
        assert job.wait(TIMEOUT).error_class == "django_jobs.TimedOut"
    eventually(lambda: worker.strays == 4)
    eventually(lambda: worker.pools[0].executors.idle)
    assert len(worker.pools[0].executors.slots) == 2
    gate.open()
    eventually(lambda: worker.strays == 0)


def test_a_child_with_a_stray_retires_to_be_replaced(live, define, short_grace, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    notes = Notes.create(4)
    monkeypatch.setenv(VARIABLE, str(os.dup(notes.descriptor)))
    gate = Gate()
    hang = define(gate.__call__, timeout=SOON, max_attempts=1)
    job = hang.enqueue()
    worker = live(size=1, notes=Notes.inherited(), heartbeat_interval=0.05)

    assert job.wait(TIMEOUT).error_class == "django_jobs.TimedOut"
    eventually(lambda: notes.retiring and notes.ended)
    assert worker.strays == 1
    assert "still hold 1 of its threads or tasks" in caplog.text
    gate.open()
    eventually(lambda: worker.strays == 0)


def test_a_worker_without_a_supervisor_stays_whatever_its_strays(live, define, short_grace):
    gate = Gate()
    job = define(gate.__call__, timeout=SOON, max_attempts=1).enqueue()
    worker = live(size=1, heartbeat_interval=0.05)
    job.wait(TIMEOUT)
    eventually(lambda: worker.strays == 1)

    assert define(lambda: None).enqueue().wait(TIMEOUT).state == "completed"
    worker.retirement.consider()
    assert worker.retirement.reason is None
    gate.open()


@pytest.mark.parametrize(
    "how", ["a thread", "a coroutine that will not end", "a coroutine that blocks the loop"]
)
def test_a_stop_does_not_wait_for_strays(live, define, short_grace, monkeypatch, how):
    monkeypatch.setattr(event_loop, "CLOSE_SECONDS", 0.1)
    gate, ended = Gate(), []

    async def deaf():
        while not gate.opened.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    async def blocking():
        gate()

    function = {"a thread": gate.__call__, "a coroutine that will not end": deaf}.get(how, blocking)
    job = define(function, timeout=SOON, max_attempts=1).enqueue()
    worker = live(size=1, shutdown_timeout=3600)
    thread = next(thread for thread in threading.enumerate() if thread.name == "the worker")
    close = worker.event_loop.close
    monkeypatch.setattr(worker.event_loop, "close", lambda: close() or ended.append(worker.strays))
    assert job.wait(TIMEOUT).error_class == "django_jobs.TimedOut"
    worker.stop()

    # Not the hour that running jobs would have: the deadline is that of a stop with nothing to wait for.
    eventually(lambda: not thread.is_alive(), TIMEOUT / 3)
    assert (ended, gate.opened.is_set()) == ([1], False), "it has ended beside the stray"
    gate.open()
    if function is deaf:  # nobody runs it any more
        loop = worker.event_loop._loop
        loop.run_until_complete(asyncio.wait(asyncio.all_tasks(loop)))
        loop.close()


def test_an_async_job_is_cancelled_when_its_time_is_over(live, define):
    seen = []

    async def work():
        try:
            await asyncio.sleep(TIMEOUT)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    job = define(work, timeout=SOON, max_attempts=1).enqueue()
    live()

    job.wait(TIMEOUT)
    assert (job.state, job.error_class) == ("failed", "django_jobs.TimedOut")
    assert seen == ["cancelled"]


def test_an_async_job_that_returns_when_it_is_cancelled_for_its_time_has_timed_out(live, define):
    """Half of its work is no completion; its own word counts, as everywhere."""

    async def halfway():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return "halfway"

    async def later():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return Snooze(3600)

    late = define(halfway, timeout=SOON, max_attempts=1).enqueue()
    snoozed = define(later, timeout=SOON, max_attempts=1).enqueue()
    live()

    late.wait(TIMEOUT)
    assert (late.state, late.error_class, late.result) == ("failed", "django_jobs.TimedOut", None)
    eventually(lambda: snoozed.refresh().state == "scheduled")


def test_an_async_job_that_does_not_end_is_given_up_too(live, define, short_grace):
    go = threading.Event()

    async def work():
        while not go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    job = define(work, timeout=SOON, max_attempts=1).enqueue()
    worker = live(size=1)

    assert job.wait(TIMEOUT).error_class == "django_jobs.TimedOut"
    assert worker.strays == 1
    assert define(lambda: "next").enqueue().wait(TIMEOUT).result == "next"
    go.set()
    eventually(lambda: worker.strays == 0)


def test_a_job_that_blocks_the_event_loop_is_given_up_and_sync_jobs_go_on(live, define, short_grace):
    gate = Gate()

    async def block():
        gate()

    job = define(block, timeout=SOON, max_attempts=1).enqueue()
    live(size=1)

    assert job.wait(TIMEOUT).error_class == "django_jobs.TimedOut"
    assert define(lambda: "next").enqueue().wait(TIMEOUT).result == "next"
    gate.open()
