"""A stop in order, whatever is under way."""

from unittest.mock import Mock

import pytest
from django.db.utils import OperationalError

from django_jobs import current_job
from django_jobs.models import Job, Worker as WorkerModel
from django_jobs.worker import Pool, worker as module
from django_jobs.worker.shared_notes import Notes
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT
from tests.worker.worker.helping import NEVER, Run, job, states


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


def test_the_lease_is_renewed_while_the_jobs_are_waited_for(busy, gate, patient):
    """Else others would take it for lost, and run again what it still runs."""
    one, _, behind = busy()
    one.worker.stop()
    eventually(lambda: {states()[id_] for id_ in behind} == {"available"})
    for _ in range(2):
        before = one.row.heartbeat_at
        one.beat()
        eventually(lambda: one.row.heartbeat_at > before)  # noqa: B023

    gate.open()
    assert one.end() == 0


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
    one.worker.notes = notes = Mock(spec=Notes)
    one.worker.stop()
    eventually(lambda: "could not be given back: OperationalError: away" in caplog.text)
    gate.open()
    assert one.end() == 0

    assert "could not be stored before the end" in caplog.text
    assert "can't say that it has stopped" in caplog.text
    assert not notes.leave.called
    assert notes.count.called, "what it did is told all the same"
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
