"""The worker as a whole, in threads of this process, on the database."""

import asyncio
import datetime as dt
import json
import logging
import threading

import pytest
from django.db.utils import OperationalError
from django.utils import timezone

from django_jobs import Cancel, Fail, Snooze, current_job, operations
from django_jobs.models import Job, Worker as WorkerModel
from django_jobs.store.answers import Heartbeat
from django_jobs.store.rows import NewJob
from django_jobs.worker import Pool, Worker, WorkerOptions, producer, worker as module
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, Gate, rows

NEVER = 3600.0


class Run:
    """A worker in a thread."""

    def __init__(self, **options):
        options = {
            "pools": [Pool(("*",), 2)],
            "poll_interval": NEVER,  # wake-ups must do
            "heartbeat_interval": NEVER,
            "lease": 2 * NEVER,
            "shutdown_timeout": TIMEOUT,
            **options,
        }
        self.worker = Worker(WorkerOptions(**options))
        self.code = None
        self.error = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            self.code = self.worker.run()
        except BaseException as error:
            self.error = error

    def start(self):
        self.thread.start()
        return self

    def end(self):
        """Wait for the end."""
        self.thread.join(TIMEOUT)
        assert not self.thread.is_alive(), "the worker did not end"
        if self.error is not None:
            raise self.error
        return self.code

    def stop(self):
        self.worker.stop()
        return self.end()

    @property
    def row(self):
        return WorkerModel.objects.get(id=self.worker.worker_id)

    def beat(self):
        """Make the worker hear what its heartbeat brings, now."""
        self.worker.reporter.wake()


@pytest.fixture
def run(transactional_db):
    """Start a worker; it has ended when the test ends."""
    runs = []

    def run(**options):
        runs.append(Run(**options))
        return runs[-1].start()

    yield run
    for one in runs:
        one.worker.stop_now()
    for one in runs:
        one.thread.join(TIMEOUT)
        assert not one.thread.is_alive(), "a worker did not end"


@pytest.fixture
def drain(run):
    """Run a worker until nothing is due."""

    def drain(**options):
        one = run(drain=True, **options)
        assert one.end() == 0
        return one.worker

    return drain


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()


def states():
    return dict(Job.objects.values_list("id", "state"))


def job(row):
    return Job.objects.get(id=row.id)


# -- draining ---------------------------------------------------------------------------------------------------------


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


# -- waking up --------------------------------------------------------------------------------------------------------


def test_a_job_that_is_enqueued_wakes_an_idle_worker(run, define):
    """Polling would take an hour."""
    definition = define(lambda: None)
    one = run()
    eventually(lambda: one.worker.pools and one.worker.pools[0].producer.found_nothing)
    for _ in range(5):
        row = definition.enqueue()
        eventually(lambda row=row: job(row).state == "completed")


def test_a_scheduled_job_wakes_the_worker_when_it_is_due(run, define):
    definition = define(lambda: None)
    one = run()
    eventually(lambda: one.worker.keeper.leads)
    row = definition.using(run_after=dt.timedelta(seconds=0.2)).enqueue()
    assert job(row).state == "scheduled"

    eventually(lambda: job(row).state == "completed")


def test_a_retry_comes_after_its_backoff(run, define):
    definition = define(lambda: None if current_job().attempt == 3 else 1 / 0, backoff=0.1)
    run()
    row = definition.enqueue()

    eventually(lambda: job(row).state == "completed")
    assert [error["attempt"] for error in job(row).errors] == [1, 2]


@pytest.mark.postgresql
def test_without_notifications_it_polls(run, define):
    definition = define(lambda: None)
    one = run(notify=False, poll_interval=0.02)
    assert one.worker.listener is None
    row = definition.enqueue()

    eventually(lambda: job(row).state == "completed")


def test_while_wake_ups_can_be_missed_it_polls_as_often_as_it_was_told(run):
    one = run(poll_interval=5.0)
    eventually(lambda: one.worker.listener.healthy)
    assert one.worker.poll_interval == 50.0

    one.worker.listener.healthy = False
    assert one.worker.poll_interval == 5.0


@pytest.mark.parametrize(
    ("hint", "woken"),
    [
        ("+mail", {"look mail"}),
        ("@", {"keeper"}),
        ("!5", {"heartbeat"}),
        ("!6", set()),
        ("", {"look None", "keeper"}),
    ],
)
def test_what_a_hint_wakes(transactional_db, monkeypatch, hint, woken):
    worker = Worker(WorkerOptions(pools=[Pool(("*",), 1)]))
    worker.signs.worker_id = 5
    seen = set()
    monkeypatch.setattr(worker.pools[0].producer, "look", lambda name: seen.add(f"look {name}"))
    monkeypatch.setattr(worker.keeper, "wake", lambda: seen.add("keeper"))
    monkeypatch.setattr(worker.reporter, "wake", lambda: seen.add("heartbeat"))
    worker.hint(hint)
    worker.store.close()

    assert seen == woken


# -- pools ------------------------------------------------------------------------------------------------------------


def test_slow_jobs_of_one_pool_do_not_hold_up_another(run, define, gate):
    slow = define(gate.enter, queue_name="slow")
    fast = define(lambda: None)
    slow.enqueue_many([()] * 20)
    run(pools=[Pool(("slow",), 2), Pool(("*",), 2)])
    gate.wait()
    rows = fast.enqueue_many([()] * 50)

    eventually(lambda: {states()[row.id] for row in rows} == {"completed"})
    running = [id_ for id_, state in states().items() if state == "running"]
    assert len(running) == 2, "it has claimed slow jobs ahead"


# -- stopping ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def busy(run, define, gate):
    """A worker of one executor, at a job that waits for the gate, with ten quick jobs buffered behind it."""

    def busy(function=None, **options):
        quick = define(lambda: None)
        slow = define(function or (gate.enter), max_attempts=3)
        quick.enqueue_many([()] * 200)
        running = slow.enqueue()
        behind = quick.enqueue_many([()] * 10)
        one = run(pools=[Pool(("*",), 1)], **options)
        gate.wait()
        eventually(lambda: len(one.worker.pools[0].buffer.jobs) == 10)
        return one, running, [row.id for row in behind]

    return busy


@pytest.fixture
def patient(monkeypatch):
    """What waits behind a slow job is not given back for that."""
    monkeypatch.setattr(producer, "STALE_SECONDS", NEVER)


def test_a_stop_gives_back_what_never_started_and_waits_for_what_runs(busy, gate, patient):
    one, running, behind = busy()
    one.worker.stop()
    eventually(lambda: {states()[id_] for id_ in behind} == {"available"})
    assert job(running).state == "running"
    for row in Job.objects.filter(id__in=behind):
        assert (row.attempt, row.attempted_at, row.errors) == (0, None, None)
        assert row.run_after <= row.created_at

    gate.open()
    assert one.end() == 0
    assert job(running).state == "completed"
    assert one.row.stopped_at is not None


def test_what_does_not_end_in_time_is_made_available_with_its_attempt_spent(busy, gate, patient, caplog):
    one, running, behind = busy(shutdown_timeout=0.05)
    assert one.stop() == 0

    row = job(running)
    assert (row.state, row.attempt) == ("available", 1)
    assert row.errors[0]["message"] == "The worker stopped before the job had ended."
    assert "did not end in time; it is available now" in caplog.text
    assert {states()[id_] for id_ in behind} == {"available"}
    assert one.row.stopped_at is not None


def test_stopping_now_waits_for_nothing(busy, gate, patient):
    one, running, _ = busy(shutdown_timeout=NEVER)
    one.worker.stop()
    eventually(lambda: one.worker.signs.stopping)
    one.worker.stop_now()
    assert one.end() == 0

    assert (job(running).state, job(running).attempt) == ("available", 1)


def test_the_late_result_of_a_job_that_was_handed_back_changes_nothing(busy, gate, patient):
    one, running, _ = busy(shutdown_timeout=0.0)
    assert one.stop() == 0
    gate.open()
    assert all(parts.executors.join(TIMEOUT) for parts in one.worker.pools)

    assert (job(running).state, job(running).attempt) == ("available", 1)


def test_a_stop_tells_the_jobs(busy, gate, patient):
    seen = []

    def heedful():
        here = current_job()
        seen.append(here.should_stop())
        gate.reached.set()
        eventually(here.should_stop)
        return "stopped early"

    one, running, _ = busy(heedful)
    assert one.stop() == 0

    assert seen == [False]
    assert (job(running).state, job(running).result) == ("completed", "stopped early")


def test_a_stop_before_the_start_is_one_too(run, transactional_db):
    one = Run()
    one.worker.stop()
    one.start()

    assert one.end() == 0
    assert not WorkerModel.objects.exists()


def test_a_stop_in_the_middle_of_a_flood_loses_nothing(run, define):
    seen = []
    definition = define(seen.append)
    definition.enqueue_many([(number,) for number in range(3000)])
    one = run()
    eventually(lambda: len(seen) > 300, interval=0.001)
    assert one.stop() == 0

    done = set(Job.objects.filter(state="completed").values_list("id", flat=True))
    assert len(done) == len(seen)
    assert set(states().values()) == {"completed", "available"}
    for row in Job.objects.filter(state="available"):
        assert (row.attempt, row.errors) == (0, None)


def test_a_stop_while_the_database_refuses_everything_has_an_end(busy, gate, patient, monkeypatch, caplog):
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0.1)
    one, running, behind = busy()

    def refuse(*args, **kwargs):
        raise OperationalError("away")

    for store in one.worker.statistics.stores:
        monkeypatch.setattr(store.session, "fetch", refuse)
    one.worker.stop()
    eventually(lambda: "could not be given back: OperationalError: away" in caplog.text)
    gate.open()
    assert one.end() == 0

    assert "could not be stored before the end" in caplog.text
    assert "can't say that it has stopped" in caplog.text
    assert {states()[id_] for id_ in [running.id, *behind]} == {"running"}, "rescued after the lease"


def test_the_last_outcomes_are_tried_again_when_they_are_refused_at_first(busy, gate, patient, monkeypatch):
    one, running, _ = busy()
    refusals = []
    for store in one.worker.statistics.stores:

        def refuse(outcomes, finish=store.finish):
            if len(refusals) < 3:
                refusals.append(1)
                raise OperationalError("away")
            return finish(outcomes)

        monkeypatch.setattr(store, "finish", refuse)
    one.worker.stop()
    gate.open()
    assert one.end() == 0

    assert len(refusals) == 3
    assert job(running).state == "completed"


def test_a_completer_that_hangs_at_the_end_is_told(run, define, gate, monkeypatch, caplog):
    monkeypatch.setattr(module, "FLUSH_SECONDS", -0.9)
    definition = define(lambda: None)
    one = run(pools=[Pool(("*",), 1)])
    eventually(lambda: len(one.worker.statistics.stores) > 1)
    monkeypatch.setattr(one.worker.completer.writing, "write", gate)
    row = definition.enqueue()
    gate.wait()
    assert one.stop() == 0

    assert "The last outcomes could not be stored" in caplog.text
    assert (job(row).state, job(row).attempt) == ("available", 1)


def test_a_part_that_can_not_start_stops_the_others(run, monkeypatch):
    one = Run()

    def fail():
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(one.worker.keeper, "start", fail)
    one.start()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        one.end()

    assert one.row.stopped_at is not None
    assert not one.worker.completer.is_alive()
    assert not one.worker.reporter.is_alive()


def test_no_part_is_left_when_it_has_ended(busy, gate, patient):
    one, *_ = busy()
    gate.open()
    assert one.stop() == 0

    worker = one.worker
    parts = [worker.completer, worker.reporter, worker.keeper, worker.listener]
    parts += [part for pool in worker.pools for part in (pool.producer, pool.executors)]
    for part in parts:
        assert part.join(TIMEOUT), part.name
    for store in worker.statistics.stores:
        assert store.session._connection is None


# -- the database at the start ----------------------------------------------------------------------------------------


def test_a_worker_waits_for_a_database_that_is_away(transactional_db, monkeypatch, define, run):
    monkeypatch.setattr(module, "pause_after", lambda failures: 0.0)
    row = define(lambda: None).enqueue()
    one = Run()
    tries = []
    register = one.worker.store.register_worker

    def refuse(*args):
        tries.append(1)
        if len(tries) < 5:
            raise OperationalError("away")
        return register(*args)

    one.worker.store.register_worker = refuse
    one.start()
    eventually(lambda: job(row).state == "completed")
    assert one.stop() == 0
    assert len(tries) == 5


def test_it_can_be_stopped_while_it_waits(transactional_db, monkeypatch):
    monkeypatch.setattr(module, "pause_after", lambda failures: NEVER)
    one = Run()
    tried = threading.Event()

    def refuse(*args):
        tried.set()
        raise OperationalError("away")

    one.worker.store.register_worker = refuse
    one.start()
    assert tried.wait(TIMEOUT)

    assert one.stop() == 0


def test_a_drain_does_not_wait_for_it(transactional_db):
    one = Run(drain=True)

    def refuse(*args):
        raise OperationalError("away")

    one.worker.store.register_worker = refuse
    one.start()
    with pytest.raises(OperationalError):
        one.end()


# -- what operators ask for -------------------------------------------------------------------------------------------


def test_a_cancel_request_reaches_the_job(run, define, gate):
    def heedful():
        gate.reached.set()
        eventually(current_job().should_stop)

    row = define(heedful).enqueue()
    one = run()
    gate.wait()
    operations.cancel([row.id])
    one.beat()  # the request wakes it as well, but this test is about the heartbeat

    eventually(lambda: job(row).state == "cancelled")


@pytest.mark.postgresql
def test_a_cancel_request_wakes_the_heartbeat(run, define, gate):
    def heedful():
        gate.reached.set()
        eventually(current_job().should_stop)
        raise ValueError("given up")

    row = define(heedful).enqueue()
    one = run()
    eventually(lambda: one.worker.listener.healthy)
    gate.wait()
    operations.cancel([row.id])

    eventually(lambda: job(row).state == "cancelled")
    assert job(row).attempt == 1


def test_a_job_that_is_cancelled_while_it_is_buffered_does_not_begin(busy, gate, patient):
    one, _, behind = busy()
    operations.cancel([behind[3]])
    one.beat()
    eventually(lambda: states()[behind[3]] == "cancelled")
    row = Job.objects.get(id=behind[3])
    assert (row.attempt, row.claims, row.attempted_at) == (0, 1, None)

    gate.open()
    eventually(lambda: {states()[id_] for id_ in behind} == {"completed", "cancelled"})
    assert [id_ for id_ in behind if states()[id_] == "cancelled"] == [behind[3]]
    assert one.worker.statistics.dropped == 0


def test_a_queue_that_was_paused_before_the_start_is_not_touched(drain, define):
    """The worker must know before its first claim."""
    definition = define(lambda: None)
    for _ in range(5):
        operations.pause("mail")
        paused = definition.using(queue_name="mail").enqueue()
        other = definition.enqueue()
        drain()
        assert (states()[paused.id], states()[other.id]) == ("available", "completed")
        assert job(paused).claims == 0


def test_a_queue_is_paused_and_resumed_while_the_worker_runs(busy, gate, patient):
    one, running, behind = busy()
    operations.pause("default")
    one.beat()
    eventually(lambda: {states()[id_] for id_ in behind} == {"available"})
    gate.open()
    eventually(lambda: job(running).state == "completed")
    assert {row.attempt for row in Job.objects.filter(id__in=behind)} == {0}

    operations.resume("default")
    one.beat()
    eventually(lambda: {states()[id_] for id_ in behind} == {"completed"})


def test_a_worker_that_was_asked_to_be_quiet_claims_nothing_until_it_may_again(run, define):
    definition = define(lambda: None)
    one = run()
    first = definition.enqueue()
    eventually(lambda: job(first).state == "completed")
    WorkerModel.objects.update(quiet_requested_at=timezone.now())
    one.beat()
    eventually(lambda: one.worker.quiet)
    second = definition.enqueue()
    threading.Event().wait(0.1)
    assert job(second).state == "available"

    WorkerModel.objects.update(quiet_requested_at=None)
    one.beat()
    eventually(lambda: job(second).state == "completed")


def test_a_worker_that_was_asked_to_stop_by_its_row_does(run, define, caplog):
    caplog.set_level(logging.INFO, "django_jobs")
    one = run()
    eventually(WorkerModel.objects.exists)
    WorkerModel.objects.update(stop_requested_at=timezone.now())
    one.beat()

    assert one.end() == 0
    assert "was asked to stop" in caplog.text


def test_the_heartbeat_tells_what_the_worker_does(run, define, gate):
    slow = define(gate.enter)
    define(lambda: None).enqueue_many([()] * 5)
    define(lambda: 1 / 0, max_attempts=1).enqueue()
    one = run()
    eventually(lambda: one.worker.statistics.attempts == 6)
    slow.enqueue()
    gate.wait()
    one.beat()

    eventually(lambda: (one.row.running, one.row.completed, one.row.failed) == (1, 5, 1))
    assert one.row.memory > 1_000_000


def test_the_heartbeat_tells_who_leads(run):
    first = run()
    eventually(lambda: first.worker.keeper.leads)
    second = run()
    eventually(lambda: WorkerModel.objects.count() == 2)
    for one in (first, second):
        one.beat()
    eventually(lambda: first.row.leads)
    eventually(lambda: second.row.memory is not None)
    assert not second.row.leads


# -- taken for lost, and in doubt -------------------------------------------------------------------------------------


def test_a_worker_that_was_taken_for_lost_goes_on_under_a_new_id(busy, gate, patient, store, caplog):
    seen = []

    def heedful():
        here = current_job()
        gate.reached.set()
        if here.attempt == 1:
            eventually(here.should_stop)
            seen.append("told")
            gate.opened.wait(TIMEOUT)

    one, running, behind = busy(heedful)
    before = one.worker.worker_id
    WorkerModel.objects.filter(id=before).update(lost_at=timezone.now())
    one.beat()
    eventually(lambda: seen == ["told"])
    assert one.worker.worker_id != before
    # What was buffered under the old id is not run under it: it is somebody's to rescue.
    eventually(lambda: not one.worker.pools[0].buffer.jobs)
    assert set(Job.objects.filter(id__in=behind).values_list("worker_id", "state")) == {(before, "running")}

    store.rescue(spread=0.0)  # as the keeper does that leads
    gate.open()
    eventually(lambda: {states()[id_] for id_ in behind} == {"completed"})
    assert {row.attempt for row in Job.objects.filter(id__in=behind)} == {2}
    eventually(lambda: job(running).state == "completed")
    # The first run's late result was dropped: the second one is what counts.
    assert (job(running).attempt, job(running).claims) == (2, 2)
    assert f"Worker {before} was taken for lost" in caplog.text
    assert one.worker.statistics.dropped == 1


def test_a_worker_whose_heartbeats_fail_past_the_lease_starts_nothing_and_goes_on_afterwards(
    busy, gate, patient, monkeypatch, caplog
):
    caplog.set_level(logging.INFO, "django_jobs")
    seen = []

    def heedful():
        here = current_job()
        gate.reached.set()
        eventually(here.should_stop)
        seen.append("told")
        eventually(lambda: not here.should_stop())
        seen.append("goes on")

    one, running, behind = busy(heedful, lease=0.5, heartbeat_interval=0.05)
    away = threading.Event()
    away.set()
    store = one.worker.reporter._store
    heartbeat = store.heartbeat

    def refuse(*args):
        if away.is_set():
            raise OperationalError("away")
        return heartbeat(*args)

    monkeypatch.setattr(store, "heartbeat", refuse)
    eventually(lambda: seen == ["told"])
    assert not one.worker.may_claim
    eventually(lambda: not one.worker.pools[0].buffer.jobs)
    assert set(Job.objects.filter(id__in=behind).values_list("state", flat=True)) == {"running"}
    assert one.worker.reporter.healthy_for == 0.0, "it would rescue others"

    away.clear()
    eventually(lambda: seen == ["told", "goes on"])
    eventually(lambda: {states()[id_] for id_ in [running.id, *behind]} == {"completed"})
    assert {row.attempt for row in Job.objects.filter(id__in=behind)} == {1}
    assert "starts no job until it can" in caplog.text
    assert "has renewed its lease and goes on" in caplog.text


@pytest.fixture
def still(transactional_db, monkeypatch):
    """A worker of which nothing runs, with two jobs buffered; ``looks`` counts how often it was to look for work."""
    worker = Worker(WorkerOptions(pools=[Pool(("*",), 1)]))
    worker._register(worker.store)
    worker.pools[0].buffer.put(rows(2, worker_id=worker.worker_id))
    worker.looks = []
    monkeypatch.setattr(worker.pools[0].producer, "look", worker.looks.append)
    yield worker
    worker.store.close()


def heartbeat(worker, paused=(), cancelled=()):
    return Heartbeat(worker.row, timezone.now(), frozenset(paused), frozenset(cancelled))


def test_what_is_buffered_is_withdrawn_at_once_when_the_lease_is_in_doubt(still):
    """Not when the producer comes to it: it waits for a database that is away."""
    still.doubt()

    assert not still.pools[0].buffer.jobs
    assert [job.id for job in still.pools[0].producer.returning] == [1, 2]


def test_what_is_buffered_is_withdrawn_at_once_when_the_worker_was_given_up(still):
    before = still.worker_id
    still.given_up(still.store)

    assert not still.pools[0].buffer.jobs
    assert still.worker_id != before
    assert still.looks == [None]


def test_it_looks_for_work_when_it_knows_what_is_paused_and_whenever_that_changes(still):
    assert not still.may_claim
    still.heard(heartbeat(still))
    assert (still.may_claim, len(still.looks)) == (True, 1)
    still.heard(heartbeat(still))
    assert len(still.looks) == 1

    still.heard(heartbeat(still, paused=["mail"]))
    assert (still.paused, len(still.looks)) == ({"mail"}, 2)
    still.doubt()
    still.heard(heartbeat(still, paused=["mail"]))
    assert (still.may_claim, len(still.looks)) == (True, 3)


def test_while_there_is_no_new_id_to_be_had_nothing_is_started(busy, gate, patient, monkeypatch):
    one, _, behind = busy()
    monkeypatch.setattr(module, "pause_after", lambda failures: 0.0)

    def refuse(store):
        raise OperationalError("away")

    monkeypatch.setattr(one.worker, "_register", refuse)
    WorkerModel.objects.update(lost_at=timezone.now())
    one.beat()
    eventually(lambda: one.worker.signs.doubtful)
    gate.open()
    eventually(lambda: one.worker.pools[0].executors.idle)

    assert set(Job.objects.filter(id__in=behind).values_list("state", flat=True)) == {"running"}
    monkeypatch.undo()


# -- what is told and counted -----------------------------------------------------------------------------------------


def test_there_is_exactly_one_line_for_each_attempt(drain, define, caplog):
    caplog.set_level(logging.INFO, "django_jobs.attempts")
    definition = define(
        lambda: None if current_job().attempt > 2 else 1 / 0, backoff=0, name="tests.flaky", queue_name="mail"
    )
    row = definition.enqueue()
    others = define(lambda: None).enqueue_many([()] * 20)
    drain()

    records = [record for record in caplog.records if record.name == "django_jobs.attempts"]
    assert len(records) == 23
    mine = [record for record in records if record.job_id == row.id]
    assert [(record.attempt, record.outcome, record.job_name, record.queue_name) for record in mine] == [
        (1, "available", "tests.flaky", "mail"),
        (2, "available", "tests.flaky", "mail"),
        (3, "completed", "tests.flaky", "mail"),
    ]
    assert all(record.duration >= 0 for record in records)
    assert sorted(record.job_id for record in records if record.job_id != row.id) == [
        other.id for other in others
    ]


def test_a_flood_of_jobs_takes_few_statements_and_connections(drain, define, database_name):
    define(lambda: None).enqueue_many([()] * 3000)
    worker = drain()

    assert worker.statistics.completed == 3000
    assert worker.statistics.statements <= 150
    # The main thread, the heartbeat, the producer, the completer, the keeper and the listener; and a second writer.
    assert worker.statistics.connects <= 7


def test_middleware_of_the_settings_is_around_every_job(drain, define, settings):
    settings.DJANGO_JOBS = {"MIDDLEWARE": [f"{__name__}.doubling"]}
    row = define(lambda: 21).enqueue()
    drain()

    assert job(row).result == 42


def doubling(step):
    return lambda context: step(context) * 2


def test_the_arguments_and_the_result_are_what_they_were(drain, define):
    value = {"a": [1e22, -0.0, 2**70, None, "日本\u2028", {"b": []}]}
    row = define(lambda *args, **kwargs: [list(args), kwargs]).enqueue(value, key=value)
    drain()

    assert json.dumps(job(row).result) == json.dumps([[value], {"key": value}])
