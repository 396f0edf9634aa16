"""What operators ask of a running worker, and what they are told."""

import json
import logging
import threading

import pytest
from django.utils import timezone

from django_jobs import current_job, operations
from django_jobs.models import Job, Worker as WorkerModel
from tests.waiting import eventually
from tests.worker.worker.helping import job, states

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
