"""What the producer gives back, unstarted."""

import pytest
from django.db.utils import OperationalError

from django_jobs.worker import parts, producer as module
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, WORKER, Gate, rows
from tests.worker.producer.helping import Scene, ids, mixed


def test_what_is_buffered_of_a_queue_that_is_paused_is_given_back():
    scene = Scene("a", "b", jobs=mixed(2, 2))
    scene.buffer.waiting = 4
    scene.step()
    scene.situation.paused = frozenset({"a"})
    scene.step()

    assert scene.released == [1000, 1001]
    assert ids(scene.buffer.jobs) == [2000, 2001]
    assert [job.attempt for job in scene.store.waiting["a"]] == [0, 0]


def test_what_is_claimed_while_a_stop_arrives_is_given_back(started):
    scene = Scene(jobs=rows(10))
    scene.buffer.waiting = 4
    scene.store.after["claim"] = lambda *args: scene.producer.stop()
    started(scene.producer)

    assert scene.producer.join(TIMEOUT)
    assert scene.released == [1, 2, 3, 4]
    assert not scene.buffer.jobs
    assert scene.producer.returning == []
    assert scene.store.closed == 1


@pytest.mark.parametrize("change", [{"may_claim": False}, {"may_claim": False, "trusts_claims": False}])
def test_what_is_claimed_while_claiming_is_forbidden_is_given_back(change):
    scene = Scene(jobs=rows(10))
    scene.buffer.waiting = 4
    scene.store.after["claim"] = lambda *args: scene.situation.__dict__.update(change)
    scene.step()

    assert scene.released == [1, 2, 3, 4]
    assert not scene.buffer.jobs


def test_what_can_not_be_given_back_as_it_stops_is_left_for_the_worker_to_give_back(started):
    scene = Scene(jobs=rows(10))
    scene.buffer.waiting = 4
    scene.store.after["claim"] = lambda *args: scene.producer.stop()
    scene.store.faults["release"] = [OperationalError("away")]
    started(scene.producer)

    assert scene.producer.join(TIMEOUT)
    assert ids(scene.producer.returning) == [1, 2, 3, 4]


def test_what_can_not_be_given_back_is_given_back_before_the_next_claim(started, monkeypatch):
    monkeypatch.setattr(parts, "pause_after", lambda *args: 0.0)
    scene = Scene("a", "b", jobs=mixed(2, 2))
    scene.buffer.waiting = 4
    scene.step()
    scene.store.faults["release"] = [OperationalError("away")] * 3
    scene.situation.paused = frozenset({"a"})
    scene.store.add(mixed(0, 5)[2:])
    scene.buffer.waiting = 8
    scene.producer.look()
    started(scene.producer)

    eventually(lambda: len(scene.store.waiting["a"]) == 2)
    methods = [call[0] for call in scene.store.calls]
    assert "claim" not in methods[methods.index("release") : methods.index("release") + 4]


def test_jobs_that_wait_behind_slow_ones_are_given_back(monkeypatch):
    monkeypatch.setattr(module, "STALE_SECONDS", 0.0)
    scene = Scene(jobs=rows(10))
    scene.have_done(100, 0.05)  # quick ones so far: 20 ahead
    scene.step()
    assert len(scene.buffer.jobs) == 10

    scene.step()
    scene.step()

    assert scene.released == list(range(1, 11))
    assert [job.attempt for job in scene.store.waiting["default"]] == [0] * 10


def test_they_are_not_claimed_again_by_the_same_worker_at_once():
    scene = Scene(jobs=rows(10))
    scene.have_done(100, 0.05)
    scene.step()
    scene.step()
    scene.producer._moved_at -= module.STALE_SECONDS
    scene.step()
    assert len(scene.released) == 10

    for _ in range(3):
        scene.producer.look()
        scene.step()

    assert len(scene.claims) == 1


def test_jobs_that_are_being_worked_off_are_not_stale(monkeypatch):
    monkeypatch.setattr(module, "STALE_SECONDS", 0.0)
    scene = Scene(jobs=rows(10))
    scene.have_done(100, 0.05)
    scene.step()
    for _ in range(5):
        scene.have_done(1, 0.05)
        scene.step()
        scene.take(1)

    assert scene.released == []


def test_a_stale_buffer_is_noticed_without_any_wake_up(started, monkeypatch):
    monkeypatch.setattr(module, "STALE_SECONDS", 0.05)
    scene = Scene(jobs=rows(10))
    scene.have_done(100, 0.05)
    started(scene.producer)

    eventually(lambda: scene.released == list(range(1, 11)))


def test_in_doubt_about_its_lease_it_claims_nothing_and_takes_back_what_is_buffered():
    scene = Scene(jobs=rows(10))
    scene.buffer.waiting = 4
    scene.step()
    scene.situation.may_claim = scene.situation.trusts_claims = False
    scene.step()
    scene.step()

    assert not scene.buffer.jobs
    assert scene.released == [], "whether they are still this worker's is not known"
    assert ids(scene.producer.returning) == [1, 2, 3, 4]
    assert len(scene.claims) == 1

    scene.situation.may_claim = scene.situation.trusts_claims = True
    scene.producer.look()
    scene.step()
    assert scene.released == [1, 2, 3, 4]


def test_what_was_claimed_under_an_id_that_was_given_up_is_neither_run_nor_given_back():
    scene = Scene(jobs=rows(10))
    scene.buffer.waiting = 4
    scene.step()

    scene.situation.worker_id = WORKER + 1
    scene.producer.withdraw()
    assert not scene.buffer.jobs, "an executor could have begun one"
    scene.step()

    assert scene.released == []
    assert scene.producer.returning == []
    assert {job.worker_id for job in scene.buffer.jobs} <= {WORKER + 1}


def test_what_is_claimed_while_the_id_is_given_up_does_not_reach_an_executor():
    scene = Scene(jobs=rows(4))
    scene.buffer.waiting = 4

    def give_up(*args):
        scene.situation.worker_id = WORKER + 1
        scene.producer.withdraw()
        scene.producer.look()

    scene.store.after["claim"] = give_up
    scene.step()
    scene.store.after.clear()
    scene.step()

    assert not scene.buffer.jobs
    assert scene.released == []


def test_what_another_thread_withdraws_is_taken_at_once_and_given_back_by_the_producer(started):
    scene = Scene(jobs=rows(10))
    scene.buffer.waiting = 4
    gate = Gate()
    scene.store.after["claim"] = gate
    started(scene.producer)
    gate.wait()
    gate.open()
    eventually(lambda: len(scene.buffer.jobs) == 4)
    scene.buffer.waiting = 0
    scene.producer.withdraw()
    assert not scene.buffer.jobs

    eventually(lambda: scene.released == [1, 2, 3, 4])


def test_a_claim_whose_answer_is_lost_is_found_and_given_back(started, monkeypatch):
    monkeypatch.setattr(parts, "pause_after", lambda *args: 0.0)
    scene = Scene(jobs=rows(6))
    scene.buffer.waiting = 2
    scene.step()
    taken = scene.take()
    scene.store.late_faults["claim"] = [OperationalError("the answer is lost")]
    scene.producer.look()
    started(scene.producer)

    # Those it knows of run on; the others are claimed once more, and no attempt is spent.
    eventually(lambda: len(scene.buffer.jobs) == 2)
    assert ids(taken) == [1, 2]
    assert scene.released == [3, 4]
    assert [(job.id, job.attempt) for job in scene.buffer.jobs] == [(5, 1), (6, 1)]


def test_where_a_server_goes_on_alone_a_lost_claim_is_looked_for_again_and_later_claims_are_not_taken_for_it():
    scene = Scene(jobs=rows(2))
    scene.store.outlives_client = True
    scene.buffer.waiting = 1
    scene.store.faults["claim"] = [OperationalError("the answer is lost")]
    with pytest.raises(OperationalError):
        scene.step()
    scene.step()
    assert ids(scene.take()) == [1]
    late = scene.store.claim(WORKER, "default", 1)  # the server has come to it now

    assert not scene.producer.found_nothing
    assert ids(scene.producer.unanswered(scene.store, at_once=True)) == ids(late) == [2]
