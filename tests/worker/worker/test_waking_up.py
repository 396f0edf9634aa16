"""What wakes a worker, and its pools."""

import datetime as dt

import pytest

from django_jobs import current_job
from django_jobs.worker import Pool, Worker, WorkerOptions
from tests.waiting import eventually
from tests.worker.worker.helping import job, states

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
