"""The executors of a pool: they run what is buffered, hand on how it ended, and nothing that a job does ends them."""

import threading

import pytest

from django_jobs import current_job
from django_jobs.worker import executor
from tests.waiting import eventually
from tests.worker.executor.helping import kinds
from tests.worker.fakes import TIMEOUT, Gate, row, rows
from tests.worker.test_failures import Unreadable


def test_every_buffered_job_is_run_once_and_handed_on(executors, define):
    ran = []
    definition = define(ran.append)
    pool = executors(4)

    pool.buffer.put([row(number, name=definition.name, args=f"[{number}]") for number in range(200)])
    eventually(lambda: len(pool.ended) == 200)

    assert sorted(ran) == list(range(200))
    assert sorted(attempted.outcome.id for attempted in pool.ended) == list(range(200))
    assert pool.totals()[0] == 200
    assert pool.totals()[1] > 0
    eventually(lambda: pool.idle)
    assert pool.running() == []


def test_jobs_run_at_once_as_many_as_there_are_threads(executors, define):
    barrier = threading.Barrier(3)
    definition = define(lambda: barrier.wait(TIMEOUT) and None)
    pool = executors(3)

    pool.buffer.put(rows(3, name=definition.name))
    eventually(lambda: len(pool.ended) == 3)

    assert kinds(pool) == ["completed"] * 3


def test_who_runs_a_job_is_not_idle_and_is_told_as_running(executors, define):
    gate = Gate()
    definition = define(gate.enter)
    pool = executors(2)
    eventually(lambda: pool.idle)

    pool.buffer.put([row(5, name=definition.name)])
    gate.wait()
    assert not pool.idle
    assert [job.id for job in pool.running()] == [5]

    gate.open()
    eventually(lambda: pool.idle)
    assert pool.running() == []


def test_a_job_counts_as_running_until_its_outcome_is_handed_over(executors, define):
    """Else a draining worker finds nobody at work and nothing to store, and ends."""
    gate = Gate()
    definition = define(lambda: None)
    pool = executors(1, emit=gate)

    pool.buffer.put([row(name=definition.name)])
    gate.wait()
    assert not pool.idle
    assert pool.running() == [row(name=definition.name)]
    gate.open()


class NameOf(type):
    @property
    def __module__(cls):
        raise ValueError("it has no module")


class Nameless(Exception, metaclass=NameOf):
    """Fails at being told, in logging too."""


class Untold(Exception):
    """Fails at being asked what it is, and what it came of."""

    @property
    def __class__(self):
        raise ValueError("it has no class")

    @property
    def __cause__(self):
        raise ValueError("it has no cause")


ERRORS = [
    ValueError("no"),
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    Unreadable(SystemExit(3)),
    BaseException("bare"),
    Nameless(),
    Untold(),
]


@pytest.mark.parametrize("is_async", [False, True])
def test_no_exception_of_a_job_ends_its_thread(executors, define, is_async):
    errors = list(ERRORS)

    def fail():
        raise errors.pop(0)

    async def afail():
        fail()

    definition = define(afail if is_async else fail)
    pool = executors(1)
    thread = pool.slots[0].thread

    for count in range(1, len(ERRORS) + 1):
        pool.buffer.put([row(count, name=definition.name)])
        eventually(lambda count=count: len(pool.ended) == count)

    assert kinds(pool) == ["retry"] * len(ERRORS)
    assert pool.slots[0].thread is thread
    assert thread.is_alive()


@pytest.mark.parametrize(
    "error", [ValueError("ours"), SystemExit(3), Nameless()], ids=lambda error: type(error).__name__
)
def test_a_fault_of_the_worker_s_own_is_an_outcome_too(executors, define, caplog, error):
    class Failing:
        def run(self, job, give_up):
            raise error

    pool = executors(1, runner=Failing())
    pool.buffer.put(rows(2))
    eventually(lambda: len(pool.ended) == 2)

    assert kinds(pool) == ["retry", "retry"]
    assert pool.ended[0].outcome.error_class == "django_jobs.WorkerError"
    assert "The executor failed at job 1" in caplog.text


def test_a_failure_beside_the_jobs_does_not_end_the_thread(executors, define, monkeypatch, caplog):
    monkeypatch.setattr(executor, "RECOVERY_SECONDS", 0.0)
    errors = [RuntimeError("can't start new thread"), SystemExit(3), MemoryError()]
    ended = []

    def emit(attempted):
        ended.append(attempted)
        if errors:
            raise errors.pop(0)

    definition = define(lambda: None)
    pool = executors(1, emit=emit)
    pool.buffer.put(rows(5, name=definition.name))
    eventually(lambda: len(ended) == 5)
    eventually(lambda: pool.idle)

    assert pool.running() == []
    assert caplog.text.count("An executor failed beside its jobs, and goes on") == 3


def test_a_stop_lets_the_running_job_end_and_leaves_the_buffered_ones(executors, define):
    gate = Gate()
    definition = define(gate.enter)
    pool = executors(1)
    pool.buffer.put(rows(3, name=definition.name))
    gate.wait()

    pool.stop()
    assert not pool.join(0.01)
    gate.open()
    assert pool.join(TIMEOUT)

    assert [attempted.outcome.id for attempted in pool.ended] == [1]
    assert [job.id for job in pool.buffer.take_back()] == [2, 3]


def test_executors_can_be_started_again(executors, define):
    definition = define(lambda: None)
    pool = executors(2)
    pool.stop()
    assert pool.join(TIMEOUT)
    pool.buffer.put([row(name=definition.name)])

    pool.start()
    eventually(lambda: kinds(pool) == ["completed"])


def test_a_start_replaces_only_the_threads_that_have_ended(executors):
    pool = executors(2)
    before = [slot.thread for slot in pool.slots]

    pool.start()

    assert [slot.thread for slot in pool.slots] == before


def test_executors_that_nobody_waits_for_do_not_keep_the_process(executors):
    assert all(slot.thread.daemon for slot in executors(2).slots)


def test_the_producer_is_told_once_when_the_buffer_runs_low(executors, define):
    gate = Gate()
    first = define(gate.enter)
    other = define(lambda: None)
    pool = executors(1)
    eventually(lambda: pool.idle)
    told = []
    pool.buffer.on_low = lambda: told.append(len(pool.buffer.jobs))
    pool.buffer.low, pool.buffer.low_told = 3, False

    pool.buffer.put([row(1, name=first.name), *rows(5, first=2, name=other.name)])
    gate.wait()
    assert told == []
    gate.open()
    eventually(lambda: pool.idle)

    # Once as it ran low, and once when there was nothing left.
    assert told == [2, 0]


def test_a_job_with_a_context_variable_of_its_own_does_not_leave_it_to_the_next(executors, define):
    definition = define(lambda: [current_job().job.id, current_job().attempt])
    pool = executors(1)

    pool.buffer.put([row(1, name=definition.name, attempt=1), row(2, name=definition.name, attempt=3)])
    eventually(lambda: len(pool.ended) == 2)

    assert [attempted.outcome.result for attempted in pool.ended] == ["[1,1]", "[2,3]"]


def test_tidying_up_is_part_of_every_job_and_its_failure_of_none(executors, define, monkeypatch):
    """A job that has completed stays completed, whatever state it left its connections in."""
    tidied = []
    monkeypatch.setattr(executor.connections, "tidy", lambda: tidied.append(1) and False)
    definition = define(lambda: None)
    pool = executors(1)

    pool.buffer.put(rows(3, name=definition.name))
    eventually(lambda: len(pool.ended) == 3)

    assert tidied == [1, 1, 1]
