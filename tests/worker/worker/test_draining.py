"""A worker that drains."""

import asyncio
import logging

from django.utils import timezone

from django_jobs import Cancel, Fail, Snooze, current_job
from django_jobs.models import Job, Worker as WorkerModel
from django_jobs.store.rows import NewJob
from django_jobs.worker import Pool
from tests.waiting import eventually
from tests.worker.worker.helping import NEVER, job, states


def test_a_drain_completes_all_that_is_due_and_leaves_the_rest(drain, define, store):
    seen = []
    nothing = define(seen.append)
    fails_once = define(lambda: None if current_job().attempt > 1 else 1 / 0, backoff=0)
    snoozes_once = define(lambda: None if current_job().job.claims > 1 else Snooze(0))
    enqueues = define(lambda number: nothing.enqueue(number + 1000) and None)
    later = define(lambda: None)

    nothing.enqueue_many([(number,) for number in range(100)])
    retried, snoozed = fails_once.enqueue(), snoozes_once.enqueue()
    enqueues.enqueue_many([(number,) for number in range(10)])
    (scheduled,) = store.insert_many([NewJob(later.name, delay=NEVER)])
    (due,) = store.insert_many([NewJob(later.name, delay=0.05)])
    eventually(lambda: store.next_due() <= 0)
    worker = drain()

    assert sorted(seen) == [*range(100), *range(1000, 1010)]
    assert states().pop(scheduled.id) == "scheduled"
    assert {state for id_, state in states().items() if id_ != scheduled.id} == {"completed"}
    assert job(retried).attempt == 2
    assert (job(snoozed).attempt, job(snoozed).claims) == (1, 2)
    assert job(due).state == "completed"
    assert (worker.statistics.completed, worker.statistics.retried, worker.statistics.snoozed) == (123, 1, 1)


def test_a_drain_of_nothing_ends(drain):
    assert drain().statistics.attempts == 0


def test_every_kind_of_end_is_recorded_and_the_worker_lives(drain, define):
    def raising(error):
        def fail():
            raise error

        return define(fail, max_attempts=1)

    async def coroutine():
        await asyncio.sleep(0)
        raise ValueError("async")

    ends = {
        raising(ValueError("no")).enqueue().id: "failed",
        raising(SystemExit(3)).enqueue().id: "failed",
        raising(KeyboardInterrupt()).enqueue().id: "failed",
        raising(ValueError("\0\ud800" * 1_000_000)).enqueue().id: "failed",
        raising(Fail("at once")).enqueue().id: "failed",
        raising(Cancel("no")).enqueue().id: "cancelled",
        raising(Snooze(NEVER)).enqueue().id: "scheduled",
        define(lambda: float("nan"), max_attempts=1).enqueue().id: "failed",
        define(lambda: "\0", max_attempts=1).enqueue().id: "failed",
        define(coroutine, max_attempts=1).enqueue().id: "failed",
        define(lambda: 1 / 0).enqueue().id: "scheduled",
        define(lambda: {"a": [1e22, None]}).enqueue().id: "completed",
    }
    drain()

    assert states() == ends
    assert all(row.errors[0]["class"] for row in Job.objects.filter(state="failed"))


def test_a_name_that_is_not_registered_waits_a_minute_and_spends_no_attempt(drain, store):
    (row,) = store.insert_many([NewJob("tests.nowhere")])
    drain()

    assert (job(row).state, job(row).attempt) == ("scheduled", 0)
    assert job(row).errors[0]["class"] == "django_jobs.NotRegistered"
    assert "add its app" in job(row).errors[0]["message"]


def test_two_workers_that_drain_run_every_job_once(run, define):
    seen = []
    definition = define(seen.append)
    definition.enqueue_many([(number,) for number in range(1000)])
    runs = [run(drain=True), run(drain=True)]
    for one in runs:
        assert one.end() == 0

    assert sorted(seen) == list(range(1000))
    assert sum(one.worker.statistics.completed for one in runs) == 1000
    assert sum(one.worker.statistics.dropped for one in runs) == 0
    assert set(Job.objects.values_list("attempt", "claims")) == {(1, 1)}


def test_a_drain_works_on_its_own_queues_alone(drain, define):
    definition = define(lambda: None)
    mine = definition.using(queue_name="mail").enqueue()
    other = definition.enqueue()
    drain(pools=[Pool(("mail",), 1)])

    assert states() == {mine.id: "completed", other.id: "available"}


def test_a_drain_of_a_worker_that_was_asked_to_be_quiet_ends_and_leaves_the_rest(run, define, gate, caplog):
    caplog.set_level(logging.INFO, "django_jobs")
    running = define(gate.enter).enqueue()
    one = run(drain=True, pools=[Pool(("*",), 1, ahead=False)])
    gate.wait()
    waiting = define(lambda: None).enqueue()
    WorkerModel.objects.update(quiet_requested_at=timezone.now())
    one.beat()
    eventually(lambda: one.worker.quiet)
    assert one.thread.is_alive(), "what runs is waited for"
    gate.open()

    assert one.end() == 0
    assert (states()[running.id], states()[waiting.id]) == ("completed", "available")
    assert (job(waiting).claims, job(waiting).attempt) == (0, 0)
    assert "was asked to be quiet, so its drain ends here" in caplog.text


def test_the_row_of_a_worker_that_has_ended_says_what_it_did(drain, define):
    define(lambda: None).enqueue_many([()] * 3)
    worker = drain()

    row = WorkerModel.objects.get()
    assert row.id == worker.worker_id
    assert row.stopped_at is not None
    assert (row.queues, row.concurrency) == (["*"], 2)
