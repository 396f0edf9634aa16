"""Jobs that block the event loop are named in the log, with the place where they do; the others are left alone."""

import asyncio
import logging
import sys
import threading

import pytest

from django_jobs.worker import stalls
from django_jobs.worker.stalls import StallWatch
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, Gate, row

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(stalls, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(stalls, "STALL_SECONDS", 0.05)
    monkeypatch.setattr(stalls, "AGAIN_SECONDS", 0.1)


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()


def blocked(caplog, who=""):
    """What was said of who blocks it."""
    messages = [record.getMessage() for record in caplog.records]
    return [text for text in messages if "has blocked the event loop" in text and text.startswith(who)]


def test_a_job_that_blocks_the_loop_is_named_with_the_place(live, define, gate, soon, caplog):
    async def innocent():
        await asyncio.sleep(3600)

    async def guilty():
        def deep_inside():
            gate()

        await asyncio.sleep(0)
        deep_inside()

    define(innocent).enqueue_many([()] * 3)
    job = define(guilty).enqueue()
    live(size=4)
    gate.wait()
    who = f"Job {job.id} {job.name} has blocked the event loop for "
    eventually(lambda: any("in deep_inside" in message for message in blocked(caplog, who)))

    message = blocked(caplog, who)[-1]
    assert "Await what takes long, or put it into sync_to_async()." in message
    assert "Where it is (most recent call last):" in message
    assert "in guilty" in message
    assert "in deep_inside" in message
    assert "django_jobs/worker" not in message
    gate.open()
    eventually(lambda: "The event loop goes on after " in caplog.text)
    assert job.wait(TIMEOUT).state == "completed"


def test_a_task_that_a_job_has_started_is_its_own_too(live, define, gate, soon, caplog):
    async def child():
        gate()

    async def work():
        await asyncio.create_task(child())

    job = define(work).enqueue()
    live(size=1)
    gate.wait()
    who = f"Job {job.id} {job.name}" if sys.version_info >= (3, 12) else "A task that a job has started"

    eventually(lambda: any("in child" in message for message in blocked(caplog, who)))


def test_a_job_that_waits_blocks_nothing_however_long(live, define, soon):
    release = asyncio.Event()

    async def work():
        await release.wait()

    job = define(work).enqueue()
    worker = live(size=1)
    watch = worker.event_loop._stalls
    eventually(lambda: watch._beating)
    for _ in range(5):
        before = watch._beat_at
        eventually(lambda before=before: watch._beat_at > before)

    worker.event_loop.call(release.set)
    assert job.wait(TIMEOUT).state == "completed"


def test_without_async_jobs_there_is_nothing(live, define, soon):
    worker = live(size=1)
    define(lambda: None).enqueue().wait(TIMEOUT)

    watch = worker.event_loop._stalls
    assert (watch._thread, watch._beating) == (None, False)


def test_with_none_running_nobody_beats_or_looks_and_the_next_is_watched_again(
    live, define, gate, soon, caplog, monkeypatch
):
    async def work(blocks):
        if blocks:
            gate()

    definition = define(work)
    worker = live(size=1)
    definition.enqueue(False).wait(TIMEOUT)
    watch = worker.event_loop._stalls
    eventually(lambda: not watch._beating)
    thread = watch._thread
    looks = []
    look = watch._look
    monkeypatch.setattr(watch, "_look", lambda now: looks.append(now) or look(now))
    eventually(lambda: not watch._awake.is_set())
    assert looks[1:] == [], "it was about to look, perhaps, when the last job ended"

    definition.enqueue(True)
    gate.wait()
    eventually(lambda: blocked(caplog))
    assert watch._thread is thread
    gate.open()
    worker.stop()
    thread.join(TIMEOUT)
    assert not thread.is_alive()


class Clock:
    """A watch of a loop that a task blocks, looked at when the test says."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        self.job = row(5, name="tests.blocks")
        self.task = object()
        self.watch = StallWatch({self.task: self.job})
        self.watch._beating, self.watch._beat_at = True, self.now
        monkeypatch.setattr(stalls.asyncio, "current_task", lambda loop: self.task)

    def look(self, seconds):
        self.now += seconds
        self.watch._look(self.now)

    def beat(self):
        self.watch._beat_at = self.now


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_it_is_told_after_a_second_and_of_each_function_once_a_minute(clock, caplog):
    clock.look(1.2)
    assert blocked(caplog) == []
    for _ in range(20):
        clock.look(0.25)
    assert len(blocked(caplog)) == 1
    for _ in range(10):
        clock.beat()
        clock.look(2)
    assert len(blocked(caplog)) == 1, "again and again, but a minute is not over"
    clock.look(60)
    assert len(blocked(caplog)) == 2, "still, or again"

    clock.watch._tasks[clock.task] = row(6, name="tests.another")
    clock.look(1)
    assert len(blocked(caplog)) == 3
    assert blocked(caplog)[-1].startswith("Job 6 tests.another")


def test_a_process_that_gets_no_time_is_no_job_s_fault(clock, caplog):
    clock.task = None
    clock.look(100)

    assert blocked(caplog) == []


def test_where_no_thread_can_be_started_jobs_run_unwatched(live, define, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    start = threading.Thread.start

    def refuse(thread):
        if thread.name == "django_jobs-stalls":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)

    async def work():
        return "ran"

    job = define(work).enqueue()
    live(size=1)
    assert job.wait(TIMEOUT).result == "ran"
