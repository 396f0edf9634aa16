"""Jobs that are cancelled while they run: told soon, by a wake-up, and cancelled in the end whatever they do."""

import asyncio
import threading

import pytest

from django_jobs import Retry, Snooze, current_job, operations, registry
from django_jobs.models import Job
from django_jobs.worker.attempt import Runner
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, Gate, row


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()


# -- one attempt ------------------------------------------------------------------------------------------------------


def test_one_that_returns_because_it_was_told_is_cancelled_and_its_result_kept(define, signs):
    def work():
        assert not current_job().should_stop()
        signs.cancelled = frozenset({1})
        assert current_job().should_stop()
        return "half"

    ended = Runner(registry, signs).run(row(name=define(work).name))

    assert (ended.outcome.kind, ended.outcome.result) == ("cancelled", '"half"')
    assert "Cancelled by request." in ended.outcome.errors


def test_one_that_did_not_look_is_completed(define, signs):
    def work():
        signs.cancelled = frozenset({1})

    assert Runner(registry, signs).run(row(name=define(work).name)).outcome.kind == "completed"


def test_another_job_s_cancellation_and_a_stop_are_no_reason(define, signs):
    def work():
        signs.cancelled = frozenset({2})
        signs.stopping = True
        return current_job().should_stop()

    ended = Runner(registry, signs).run(row(name=define(work).name))

    assert (ended.outcome.kind, ended.outcome.result) == ("completed", "true")


@pytest.mark.parametrize("word", [Snooze(5), Retry(5)])
def test_its_own_word_and_its_error_are_told_as_they_are(define, signs, word):
    """What the row becomes is the finish's business: cancelled."""

    def work():
        signs.cancelled = frozenset({1})
        assert current_job().should_stop()
        raise word

    assert Runner(registry, signs).run(row(name=define(work).name)).outcome.kind in ("snoozed", "retry")


@pytest.mark.parametrize("is_async", [False, True])
def test_one_that_was_cancelled_between_claim_and_start_never_starts(define, signs, is_async):
    ran = []

    async def awork():
        ran.append(1)

    signs.cancelled = frozenset({1})
    definition = define(awork if is_async else lambda: ran.append(1))
    ended = Runner(registry, signs).run(row(name=definition.name))

    assert (ended.outcome.kind, ran) == ("cancelled", [])
    assert "before it started" in ended.outcome.errors


# -- a whole worker: its heartbeats come once a minute, so it is the wake-up that tells -------------------------------


def test_a_thread_is_told(live, define, gate):
    def work():
        gate.reached.set()
        eventually(current_job().should_stop)
        return "told"

    job = define(work).enqueue()
    live(size=1)
    gate.wait()
    operations.cancel([job.id])

    assert job.wait(TIMEOUT).state == "cancelled"
    assert (job.result, job.error_class) == ("told", "django_jobs.exceptions.Cancel")


def test_a_coroutine_is_cancelled(live, define, gate):
    seen = []

    async def work():
        gate.reached.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append(current_job().should_stop())
            raise

    job = define(work).enqueue()
    live(size=1)
    gate.wait()
    operations.cancel([job.id])

    assert job.wait(TIMEOUT).state == "cancelled"
    assert seen == [True]
    assert [error["message"] for error in job.errors] == ["Cancelled by request."]


def test_a_coroutine_that_ends_well_when_it_is_cancelled_is_cancelled_too(live, define, gate):
    async def work():
        gate.reached.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "tidied up"

    job = define(work).enqueue()
    live(size=1)
    gate.wait()
    operations.cancel([job.id])

    assert (job.wait(TIMEOUT).state, job.result) == ("cancelled", "tidied up")


def test_only_the_one_that_is_meant_is_told(live, define):
    told, gates = [], {number: Gate() for number in range(3)}

    def work(number):
        gates[number].reached.set()
        while not gates[number].opened.wait(0.01):
            if current_job().should_stop():
                told.append(number)
                return

    jobs = [define(work).enqueue(number) for number in gates]
    live(size=3)
    for gate in gates.values():
        gate.wait()
    operations.cancel([jobs[1].id])
    assert jobs[1].wait(TIMEOUT).state == "cancelled"
    for gate in gates.values():
        gate.open()

    assert [job.wait(TIMEOUT).state for job in jobs] == ["completed", "cancelled", "completed"]
    assert told == [1]


@pytest.mark.parametrize("how", ["snooze", "retry", "fail", "last"])
def test_against_whatever_the_job_does_at_that_moment(live, define, gate, how):
    """A short snooze or retry, a failure of the last attempt: never run again, and cancelled."""
    runs = []

    def work():
        runs.append(1)
        gate()
        if how == "snooze":
            raise Snooze(0)
        if how == "retry":
            raise Retry(0)
        raise ValueError("no")

    job = define(work, backoff=0, max_attempts=1 if how == "last" else 5).enqueue()
    live(size=1)
    gate.wait()
    operations.cancel([job.id])
    gate.open()

    eventually(lambda: job.refresh().is_finished or len(runs) > 1)
    assert (job.state, runs) == ("cancelled", [1])


def test_one_that_never_looks_completes(live, define, gate):
    job = define(lambda: gate() or 5).enqueue()
    worker = live(size=1)
    gate.wait()
    operations.cancel([job.id])
    eventually(lambda: worker.signs.cancelled)
    gate.open()

    assert (job.wait(TIMEOUT).state, job.result) == ("completed", 5)


def test_a_timeout_and_a_cancellation_of_one_job_end_as_cancelled(live, define, gate, settings):
    settings.DJANGO_JOBS = {"TIMEOUT_GRACE": 0.05}
    job = define(gate.__call__, timeout=0.3).enqueue()
    live(size=1)
    gate.wait()
    operations.cancel([job.id])

    assert job.wait(TIMEOUT).state == "cancelled"


@pytest.mark.sqlite
def test_the_file_s_commits_cause_no_storm_of_looks_nor_any_heartbeat(live, define, gate):
    """Each commit is a wake-up; cancel requests are read a few times a second at most, and never when nothing runs."""
    job = define(gate.__call__).enqueue()
    worker = live(size=1)
    gate.wait()
    looks, beats = [], []
    store = worker.reporter._store
    read, beat = store.cancel_requests, store.heartbeat
    store.cancel_requests = lambda *args: looks.append(1) or read(*args)
    store.heartbeat = lambda *args: beats.append(1) or beat(*args)
    pause = threading.Event()
    for _ in range(200):
        Job.objects.filter(pk=job.id).update(tags=[])
        worker.hint("")
        pause.wait(0.002)
    eventually(lambda: looks)

    assert len(looks) <= 20
    assert beats == []
    gate.open()
    job.wait(TIMEOUT)


@pytest.mark.sqlite
def test_a_worker_with_nothing_running_looks_for_no_cancel_requests(live, define, monkeypatch):
    worker = live(size=1)
    define(lambda: None).enqueue().wait(TIMEOUT)
    eventually(lambda: not worker.pools[0].executors.running())
    asked = []
    heard = []
    with monkeypatch.context() as patch:
        patch.setattr(worker.reporter, "look", lambda: asked.append(1))
        patch.setattr(worker.keeper, "wake", lambda: heard.append(1))
        for _ in range(3):
            worker.hint("")

    assert (asked, len(heard)) == ([], 3)
