"""Async jobs: on one event loop, up to the pool's size at once, each with a thread of its own for synchronous parts."""

import asyncio
import threading
from contextvars import ContextVar

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection, connections
from django.utils import translation

from django_jobs import Snooze, current_job
from django_jobs.models import Job
from django_jobs.worker.event_loop import EventLoop
from django_jobs.worker.sensitive import SensitiveThread
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, Gate
from tests.workload.models import Effect

pytestmark = pytest.mark.usefixtures("transactional_db")


def results(jobs):
    return [job.wait(TIMEOUT).result for job in jobs]


class Meeting:
    """A place where coroutines wait for each other; counts how many there are at once."""

    def __init__(self, size):
        self.size = size
        self.now = self.most = 0
        self.event = None

    async def __call__(self):
        self.event = self.event or asyncio.Event()
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now == self.size:
            self.event.set()
        await asyncio.wait_for(self.event.wait(), TIMEOUT)
        await asyncio.sleep(0.01)
        self.now -= 1


def test_async_jobs_run_at_once_on_one_thread_up_to_the_pool_s_size(live, define):
    meeting = Meeting(8)
    threads = set()

    async def work():
        threads.add(threading.current_thread().name)
        await meeting()

    jobs = define(work).enqueue_many([()] * 24)
    live(size=8)

    results(jobs)
    assert meeting.most == 8
    assert threads == {"django_jobs-event-loop"}


def test_async_and_sync_jobs_share_the_pool_s_size(live, define):
    lock, now, most = threading.Lock(), 0, 0
    reached = threading.Event()

    def enter(change):
        nonlocal now, most
        with lock:
            now += change
            most = max(most, now)
            if now == 3:
                reached.set()

    def work():
        enter(1)
        assert reached.wait(TIMEOUT)
        enter(-1)

    async def awork():
        enter(1)
        assert await asyncio.to_thread(reached.wait, TIMEOUT)
        enter(-1)

    mixed = [define(work), define(awork)]
    jobs = [mixed[number % 2].enqueue() for number in range(60)]
    worker = live(size=3)

    results(jobs)
    assert {job.state for job in jobs} == {"completed"}
    assert most == 3
    eventually(lambda: worker.pools[0].executors.idle)


def test_no_thread_of_the_pool_waits_beside_an_async_job(live, define):
    gate = Gate()

    async def work():
        while not gate.opened.is_set():
            gate.reached.set()
            await asyncio.sleep(0.01)

    jobs = define(work).enqueue_many([()] * 6)
    worker = live(size=6)
    executors = worker.pools[0].executors
    gate.wait()
    eventually(lambda: len(executors.running()) == 6)

    # Spare threads end by themselves, and when asked to; the async jobs run on without one.
    eventually(lambda: executors._spare == 6)
    with executors._changed:
        for _ in range(6):
            executors._freed.put(None)
        executors._spare = 0
    eventually(lambda: not executors._threads)
    assert len(executors.running()) == 6
    gate.open()
    results(jobs)
    eventually(lambda: executors.idle)


def test_each_has_a_thread_of_its_own_so_that_synchronous_parts_do_not_wait_for_each_other(live, define):
    barrier = threading.Barrier(4)
    threads = []

    def meet():
        barrier.wait(TIMEOUT)
        return threading.get_ident()

    async def work():
        first = await sync_to_async(meet)()
        second = await sync_to_async(threading.get_ident)()
        threads.append(first)
        assert first == second

    jobs = define(work).enqueue_many([()] * 4)
    live(size=4)

    assert results(jobs) == [None] * 4
    assert len(set(threads)) == 4


def test_the_database_is_used_as_async_code_does_and_its_connections_are_kept_and_left_sound(live, define):
    used = []

    async def work(number):
        await Effect.objects.acreate(job_id=number, claims=1, pid=0)
        used.append(await sync_to_async(lambda: connection.connection)())
        return await Effect.objects.acount()

    definition = define(work)
    threads = live(size=1).event_loop.threads
    for number in range(3):
        assert definition.enqueue(number).wait(TIMEOUT).result == number + 1
        # Else the next job may begin before that thread has been tidied, and get another one.
        eventually(lambda: threads._free)

    assert used[0] is not None
    assert set(used) == {used[0]}, "the connection goes from job to job"


def test_a_transaction_that_a_job_leaves_open_is_rolled_back(live, define):
    def leave_open():
        connection.set_autocommit(False)
        Effect.objects.create(job_id=1, claims=1, pid=0)

    async def leave():
        await sync_to_async(leave_open)()

    async def look():
        autocommit = await sync_to_async(lambda: connection.get_autocommit())()  # noqa: PLW0108 - that thread's connection
        return [await Effect.objects.acount(), autocommit]

    leaving, looking = define(leave), define(look)
    live(size=1)

    leaving.enqueue().wait(TIMEOUT)
    assert looking.enqueue().wait(TIMEOUT).result == [0, True]


def test_a_connection_that_was_asked_for_in_the_coroutine_is_closed_with_it(live, define):
    """Its wrapper is the coroutine's, not the thread's; the next job has another one."""
    wrappers = []

    async def work():
        await sync_to_async(connection.ensure_connection)()
        wrappers.append(connections["default"])
        assert wrappers[-1].connection is not None

    definition = define(work)
    live(size=1)
    for _ in range(2):
        assert definition.enqueue().wait(TIMEOUT).state == "completed"

    assert len(set(map(id, wrappers))) == 2
    assert [wrapper.connection for wrapper in wrappers] == [None, None]


def test_context_variables_end_with_the_job(live, define):
    variable = ContextVar("variable", default="nothing")

    async def leave():
        variable.set("something")
        translation.activate("de")
        await sync_to_async(lambda: variable.set("else"))()

    async def look():
        return [variable.get(), translation.get_language()]

    leaving, looking = define(leave), define(look)
    live(size=1)

    leaving.enqueue().wait(TIMEOUT)
    assert looking.enqueue().wait(TIMEOUT).result == ["nothing", "en"]


def test_outcomes_are_those_of_other_jobs(live, define):
    async def ends(how):
        await asyncio.sleep(0)
        if how == "error":
            raise ValueError("no")
        if how == "exit":
            raise SystemExit(3)
        if how == "snooze":
            return Snooze(3600)
        if how == "id":
            return current_job().job.id
        return {"how": how}

    definition = define(ends, max_attempts=1)
    error, exited, snoozed, own, plain = (
        definition.enqueue(how) for how in ["error", "exit", "snooze", "id", "plain"]
    )
    live()

    assert (error.wait(TIMEOUT).state, error.error_class) == ("failed", "ValueError")
    assert "in ends" in error.errors[0]["traceback"]
    assert "worker/attempt.py" not in error.errors[0]["traceback"]
    assert (exited.wait(TIMEOUT).state, exited.error_class) == ("failed", "SystemExit")
    assert own.wait(TIMEOUT).result == own.id
    assert plain.wait(TIMEOUT).result == {"how": "plain"}
    eventually(lambda: snoozed.refresh().state == "scheduled")
    assert snoozed.attempt == 0


def test_a_system_exit_of_a_task_that_a_job_has_started_does_not_end_the_loop(live, define, caplog):
    async def leave_task():
        async def exit_soon():
            raise SystemExit(3)

        task = asyncio.get_running_loop().create_task(exit_soon())
        task.add_done_callback(
            lambda task: task.exception()
        )  # else it is told whenever the garbage is collected
        await asyncio.sleep(0.05)
        return "went on"

    definition = define(leave_task)
    live(size=1)

    for _ in range(2):
        assert definition.enqueue().wait(TIMEOUT).result == "went on"
    assert "has ended the event loop; it goes on" in caplog.text


def test_undecodable_arguments_and_a_middleware(live, define, settings):
    settings.DJANGO_JOBS = {"MIDDLEWARE": ["tests.worker.test_async.adding"]}

    async def number():
        return 1

    definition = define(number, max_attempts=1)
    broken = definition.enqueue()
    Job.objects.filter(pk=broken.id).update(args={"no": "list"})
    live()

    assert broken.wait(TIMEOUT).error_class == "django_jobs.UndecodableArguments"
    assert definition.enqueue().wait(TIMEOUT).result == 2


def adding(step):
    def around(context):
        return step(context) + 1

    return around


def test_a_drain_waits_for_async_jobs(live, define):
    async def work(number):
        await asyncio.sleep(0.01)
        return number

    jobs = define(work).enqueue_many([(number,) for number in range(30)])
    worker = live(size=4, drain=True)

    eventually(lambda: worker.statistics.completed == 30)
    eventually(lambda: not worker.reporter.is_alive())
    assert [job.refresh().result for job in jobs] == list(range(30))


def test_what_does_not_end_in_time_is_handed_back_and_the_loop_ends(live, define):
    gate = Gate()

    async def work():
        gate.reached.set()
        await asyncio.sleep(3600)

    job = define(work).enqueue()
    worker = live(size=1)
    gate.wait()
    worker.stop()

    eventually(lambda: worker.event_loop._thread is not None and not worker.event_loop._thread.is_alive())
    assert job.refresh().state == "available"
    assert job.errors[-1]["class"] == "django_jobs.WorkerLost"


def test_a_worker_without_async_jobs_has_no_loop(live, define):
    worker = live(size=1)
    define(lambda: None).enqueue().wait(TIMEOUT)

    assert worker.event_loop._thread is None


def test_async_code_in_synchronous_parts_finds_its_way_back(live, define):
    async def inner():
        return await sync_to_async(threading.get_ident)()

    async def work():
        return await sync_to_async(lambda: [threading.get_ident(), async_to_sync(inner)()])()

    outside, inside = define(work).enqueue(), None
    live(size=1)
    outside, inside = outside.wait(TIMEOUT).result

    assert outside == inside


# -- the parts alone --------------------------------------------------------------------------------------------------


def test_a_sensitive_thread_ends_when_it_is_asked_to_after_what_was_submitted():
    thread = SensitiveThread()
    thread.close()  # never started: nothing to end
    ident = thread.submit(threading.get_ident).result(TIMEOUT)
    assert thread.submit(threading.get_ident).result(TIMEOUT) == ident
    last = thread.submit(lambda: "last")
    thread.close()

    assert last.result(TIMEOUT) == "last"
    eventually(lambda: thread._thread is None)
    assert thread.submit(lambda: "again").result(TIMEOUT) == "again"
    thread.close()


def test_a_closed_loop_takes_nothing_more():
    loop = EventLoop()
    done = threading.Event()
    loop.call(done.set)
    assert done.wait(TIMEOUT)
    loop.close()

    with pytest.raises(RuntimeError, match="the event loop is closed"):
        loop.call(done.set)
    loop.close()
