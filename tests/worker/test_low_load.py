"""What a worker asks of the database, counted where it is asked: one job at a time, and in a burst."""

import datetime as dt
import threading

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models.signals import pre_init

from django_jobs.models import Job
from django_jobs.store import low_water
from django_jobs.store.sessions import OwnSession
from django_jobs.worker import Pool, Worker, WorkerOptions, parts
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, Gate

NEVER = 3600.0
READS = {"listen", "waiting_queues", "next_due", "cancel_requests", "due_schedules"}


@pytest.fixture
def asked(monkeypatch):
    """The names of the statements that all of the worker's own connections have run."""
    monkeypatch.setattr(low_water, "SLOW_SECONDS", NEVER)  # a busy machine is not a table full of old entries
    names = []
    fetch = OwnSession.fetch

    def noting(self, statement, parameters):
        names.append(statement.name)
        return fetch(self, statement, parameters)

    monkeypatch.setattr(OwnSession, "fetch", noting)
    return names


@pytest.fixture
def work(transactional_db):
    """Start a worker that nothing but wake-ups makes look."""
    running = []

    def start(*queues, size=2):
        options = WorkerOptions(
            pools=[Pool(queues or ("*",), size)],
            poll_interval=NEVER,
            heartbeat_interval=NEVER,
            lease=2 * NEVER,
        )
        worker = Worker(options)
        thread = threading.Thread(target=worker.run, daemon=True)
        running.append((worker, thread))
        thread.start()
        eventually(lambda: worker.listener.healthy and worker.keeper.leads)
        eventually(lambda: all(each.producer.found_nothing for each in worker.pools))
        return worker

    yield start
    for worker, thread in running:
        worker.stop_now()
        thread.join(TIMEOUT)
        assert not thread.is_alive(), "the worker did not end"


def completed():
    return Job.objects.filter(state="completed").count()


@pytest.mark.parametrize("queues", [("*",), ("default",), ("default", "mail")])
def test_one_job_at_a_time_is_two_statements(work, define, asked, queues, database_name):
    nothing = define(lambda: None, name="tests.nothing")
    worker = work(*queues)
    nothing.enqueue()
    eventually(lambda: completed() == 1)
    eventually(lambda: worker.completer.idle)
    eventually(lambda: all(each.producer.found_nothing for each in worker.pools))
    asked.clear()
    for number in range(2, 12):
        nothing.enqueue()
        eventually(lambda number=number: completed() == number)
        eventually(lambda: worker.completer.idle)
        eventually(lambda: all(each.producer.found_nothing for each in worker.pools))

    # On SQLite a commit tells nothing of itself, so it is asked what there is: reads, which lock nobody out.
    told = [name for name in asked if name not in (READS if database_name == "sqlite" else {"listen"})]
    # A pool that names several queues looks at each.
    claims = ["claim"] * (len(queues) if database_name == "postgresql" else 1)
    assert sorted(told) == sorted([*claims, "complete"] * 10)


def test_no_model_is_made_for_a_job(work, define, settings):
    made = []

    def note(sender, **more):
        if sender._meta.app_label == "django_jobs":
            made.append(sender)

    ran = threading.Semaphore(0)
    run = define(ran.release, name="tests.run")
    pre_init.connect(note)
    try:
        worker = work()
        for _ in range(5):
            run.enqueue()
        run.enqueue_many([() for _ in range(5)])
        for _ in range(10):
            assert ran.acquire(timeout=TIMEOUT)
        eventually(lambda: worker.completer.idle)
    finally:
        pre_init.disconnect(note)

    assert made == []
    assert completed() == 10


@pytest.mark.postgresql
def test_a_burst_is_few_notifications_and_fewer_claims_and_none_is_lost(work, define, asked, monkeypatch):
    """While one claim is under way, 200 transactions commit two jobs each: 200 notifications are heard."""
    nothing = define(lambda: None, name="tests.nothing")
    worker = work(size=4)
    store, gate, hints = worker.pools[0].producer.store, Gate(), []
    claim, hint = store.claim, worker.hint

    def gated(*args, **options):
        gate.enter()
        return claim(*args, **options)

    store.claim = gated
    worker.listener._on_hint = lambda text: (hint(text), hints.append(text))
    nothing.enqueue()
    gate.wait()
    for _ in range(200):
        with transaction.atomic():
            nothing.enqueue()
            nothing.enqueue()
    eventually(lambda: len(hints) == 201)
    asked.clear()
    gate.open()
    eventually(lambda: completed() == 401)

    # Of four at first; then, with what is known of the jobs, of many. And one that finds nothing.
    assert asked.count("claim") <= 401 / 4
    assert asked.count("claim") < 200
    assert hints == ["+default"] * 201


def test_no_wake_up_of_many_enqueuers_is_lost(work, define):
    """Each waits for its job before it enqueues the next, so a wake-up that is lost is a job that never runs."""
    done = {}

    def run(name, number):
        done[name, number].set()

    run = define(run, name="tests.run")
    work(size=4)

    def enqueue(name):
        try:
            for number in range(25):
                done[name, number] = threading.Event()
                run.enqueue(name, number)
                assert done[name, number].wait(TIMEOUT), f"job {number} of {name} never ran"
            ended.append(name)
        finally:
            connection.close()

    ended = []
    threads = [threading.Thread(target=enqueue, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * TIMEOUT)

    assert sorted(ended) == ["a", "b", "c", "d"]


def test_wake_ups_do_not_bypass_the_back_off_of_maintenance(work, define, monkeypatch):
    """Whatever is committed meanwhile: scheduled jobs, each of which wakes the keeper."""
    later = define(lambda: None, name="tests.later").using(run_after=dt.timedelta(hours=1))
    worker = work()
    monkeypatch.setattr(parts, "pause_after", lambda failures: TIMEOUT)
    tries, woken = [], []
    wake = worker.keeper.wake

    def fail(*args):
        tries.append(1)
        raise OperationalError("away")

    monkeypatch.setattr(worker.keeper.store, "next_due", fail)
    monkeypatch.setattr(worker.keeper, "wake", lambda: (woken.append(1), wake()))
    later.enqueue()
    eventually(lambda: tries)
    heard = len(woken)
    for number in range(1, 11):
        later.enqueue()
        eventually(lambda number=number: len(woken) >= heard + number)

    assert len(tries) == 1


@pytest.mark.postgresql
@pytest.mark.parametrize("queues", [("*",), ("default",)])
def test_what_becomes_available_again_behind_the_marks_is_run_in_time(work, define, monkeypatch, queues):
    # Each claim is a slow one, so from the second on there are marks; they stand for a second.
    monkeypatch.setattr(low_water, "SLOW_SECONDS", -1.0)
    monkeypatch.setattr(low_water, "BEGINNINGS_PART", 1e-12)
    monkeypatch.setattr(low_water, "BEGINNINGS_SECONDS", 1.0)
    nothing = define(lambda: None, name="tests.nothing")
    work(*queues)
    jobs = []
    for number in range(1, 5):
        jobs.append(nothing.enqueue())
        eventually(lambda number=number: completed() == number)

    # As if its transaction, which began early, had committed only now.
    first = Job.objects.filter(pk=jobs[0].id)
    first.update(state="available", finalized_at=None, attempt=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify('django_jobs', '+default')")

    eventually(lambda: completed() == 4)
    assert first.get().claims == 2
