"""When no thread can be started: no place is lost, and no stop held up."""

import asyncio
import threading

import pytest

from django_jobs import registry
from django_jobs.worker.attempt import Runner, broken
from django_jobs.worker.buffer import Buffer
from django_jobs.worker.event_loop import EventLoop
from django_jobs.worker.executor import Executors
from django_jobs.worker.sensitive import SensitiveThread
from django_jobs.worker.timeouts import Timeouts, Watch
from tests.waiting import eventually
from tests.worker.executor.helping import kinds
from tests.worker.fakes import TIMEOUT, Gate, row


@pytest.fixture
def no_threads(monkeypatch):
    """Let no thread be started, until it is set."""
    allowed = threading.Event()
    start = threading.Thread.start

    def start_if_allowed(thread):
        if not allowed.is_set():
            raise RuntimeError("can't start new thread")
        start(thread)

    yield lambda: monkeypatch.setattr(threading.Thread, "start", start_if_allowed), allowed.set
    allowed.set()


def test_the_place_of_a_stray_is_not_lost_when_no_thread_can_be_started(
    executors, define, no_threads, caplog
):
    forbid, allow = no_threads
    gate = Gate()
    hang, quick = define(gate), define(lambda: "quick")
    pool = executors(1)
    pool.buffer.put([row(1, name=hang.name), row(2, name=quick.name)])
    gate.wait()
    slot = pool.slots[0]
    lost = broken(slot.job, RuntimeError("given up"))

    forbid()
    pool._give_up(slot, slot.thread, lambda: lost)
    assert pool.ended == [lost], "it is recorded that it was given up, all the same"
    assert pool.running() == []
    pool.recover()
    assert (
        caplog.text.count("No thread can be started for a place of the pool; it is tried again: can't") == 1
    )
    allow()
    pool.recover()

    eventually(lambda: kinds(pool) == ["retry", "completed"])
    eventually(lambda: pool.idle)
    gate.open()


def test_a_place_that_has_no_thread_holds_up_no_stop(executors, define, no_threads):
    forbid, _ = no_threads
    gate = Gate()
    pool = executors(1)
    pool.buffer.put([row(name=define(gate).name)])
    gate.wait()
    slot = pool.slots[0]
    lost = broken(slot.job, RuntimeError("given up"))
    pool.crowded = lambda: True

    forbid()
    pool._give_up(slot, slot.thread, lambda: lost)
    assert pool.ended == [], "nothing waits in a backlog that can't be handed over"
    pool.stop()
    assert not pool.join(0.01)
    pool.crowded = lambda: False
    pool.join(0.01)
    assert pool.join(TIMEOUT)

    assert pool.ended == [lost]
    gate.open()


def test_a_place_that_the_event_loop_gives_back_is_not_lost_either(executors, define, signs, no_threads):
    forbid, allow = no_threads
    loop = EventLoop()
    reached, release = threading.Event(), asyncio.Event()

    async def work():
        reached.set()
        await release.wait()

    pool = executors(1, runner=Runner(registry, signs, loop=loop))
    pool.buffer.put([row(1, name=define(work).name)])
    assert reached.wait(TIMEOUT)
    eventually(lambda: pool._spare == 1)
    with pool._changed:
        pool._spare = 0  # the thread that lent its place has ended meanwhile
    pool._freed.put(None)
    eventually(lambda: not pool._threads)

    forbid()
    loop.call(release.set)
    eventually(lambda: pool._unstarted)
    assert kinds(pool) == ["completed"]
    allow()
    pool.recover()
    pool.buffer.put([row(2, name=define(lambda: None).name)])

    eventually(lambda: kinds(pool) == ["completed", "completed"])
    loop.close()


def test_a_spare_thread_takes_the_place_of_a_stray(executors, define, signs, no_threads):
    forbid, _ = no_threads
    loop = EventLoop()
    gate, release = Gate(), asyncio.Event()

    async def work():
        await release.wait()

    pool = executors(2, runner=Runner(registry, signs, loop=loop))
    pool.buffer.put([row(1, name=define(work).name)])
    eventually(lambda: pool._spare == 1)
    pool.buffer.put([row(2, name=define(gate).name)])
    gate.wait()
    slot = next(slot for slot in pool.slots if slot.thread is not None and slot.job is not None)
    lost = broken(slot.job, RuntimeError("given up"))

    forbid()
    pool._give_up(slot, slot.thread, lambda: lost)

    eventually(lambda: pool.ended == [lost])
    loop.call(release.set)
    gate.open()
    eventually(lambda: len(pool.ended) == 3)
    loop.close()


def test_executors_that_can_not_start_say_so_and_can_be_started_later(define, signs, no_threads):
    forbid, allow = no_threads
    ended = []
    pool = Executors(Buffer(), Runner(registry, signs), ended.append, 2)
    forbid()
    with pytest.raises(RuntimeError, match="can't start"):
        pool.start()
    assert pool.join(TIMEOUT)

    allow()
    pool.start()
    pool.buffer.put([row(name=define(lambda: None).name)])
    eventually(lambda: ended)
    pool.stop()
    assert pool.join(TIMEOUT)


def test_what_could_not_start_its_thread_once_starts_it_the_next_time(no_threads):
    forbid, allow = no_threads
    loop, timeouts, thread = EventLoop(), Timeouts(0.0), SensitiveThread()
    told = threading.Event()
    late = Watch(row(), 0.001)
    late.interrupt = told.set
    forbid()
    for start in (lambda: loop.call(print), lambda: timeouts.begin(late), lambda: thread.submit(int)):
        with pytest.raises(RuntimeError, match="can't start"):
            start()

    allow()
    called = threading.Event()
    loop.call(called.set)
    timeouts.begin(late)

    assert called.wait(TIMEOUT)
    assert told.wait(TIMEOUT)
    assert thread.submit(int, "5").result(TIMEOUT) == 5
    loop.close()
    timeouts.close()
    thread.close()
