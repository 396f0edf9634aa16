"""A worker that was taken for lost, or can't know."""

import logging
import threading

import pytest
from django.db.utils import OperationalError
from django.utils import timezone

from django_jobs import current_job
from django_jobs.models import Job, Worker as WorkerModel
from django_jobs.worker import Pool, Worker, WorkerOptions, worker as module
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, rows
from tests.worker.worker.helping import heartbeat, job, states


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
