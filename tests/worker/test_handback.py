"""What a dead child held, handed back: uncharged where it had not started."""

import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from django_jobs.models import Stat, Worker
from django_jobs.store.rows import NewJob
from django_jobs.worker import handback
from django_jobs.worker.handback import Estate, HandBack
from tests.store.builders import columns
from tests.worker.fakes import TIMEOUT

LEASE = 30.0


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(handback, "SETTLE_SECONDS", 0.05)


@pytest.fixture
def worker(store):
    return store.register_worker("host", 1, "[]", 1, "1", LEASE).id


@pytest.fixture
def claim(store, worker):
    """Jobs that the worker holds, in the order of their ids."""

    def claimed(count, **options):
        store.insert_many([NewJob("tests.job", **options)] * count)
        return sorted(store.claim(worker, "default", count), key=lambda job: job.id)

    return claimed


def estate(worker, started):
    notes: Any = SimpleNamespace(worker_ids=[worker], started=lambda: started)
    return Estate("Process 5 was killed by signal SIGKILL", notes)


@pytest.fixture
def hand_back(open_store, started):
    return started(HandBack(open_store, LEASE))


def claims_of(jobs, completed=False):
    return {(job.id, job.claims): completed for job in jobs}


def test_only_what_was_running_is_charged(store, worker, claim, hand_back):
    jobs = claim(500)
    running, completed, ahead = jobs[:2], jobs[2:5], jobs[5:]
    hand_back.add(estate(worker, {**claims_of(running), **claims_of(completed, True)}))

    assert hand_back.wait(TIMEOUT)

    for job in store.get([job.id for job in ahead]):
        assert (job.state, job.attempt, job.attempted_at, job.errors) == ("available", 0, None, [])
    for job in store.get([job.id for job in completed]):
        assert (job.state, job.attempt, job.errors) == ("completed", 1, [])
    for job in store.get([job.id for job in running]):
        assert (job.state, job.attempt, job.error_class) == ("scheduled", 1, "django_jobs.WorkerLost")
        assert job.errors[0]["message"] == "Process 5 was killed by signal SIGKILL."
        assert 0 <= (job.run_after - job.attempted_at).total_seconds() <= LEASE / 3 + TIMEOUT
    row = Worker.objects.get(pk=worker)
    assert row.lost_at is not None
    assert row.stopped_at is None
    assert set(Stat.objects.values_list("outcome", "error_class", "count")) == {
        ("completed", "", len(completed)),
        ("retried", "django_jobs.WorkerLost", len(running)),
    }


def test_what_is_released_is_as_it_was_before_the_claim(store, worker, hand_back):
    store.insert(NewJob("tests.job", priority=5))
    (first,) = store.claim(worker, "default", 1)
    store.rescue(worker_id=worker, spread=0.0)
    before = store.get([first.id])[0]
    store.claim(worker, "default", 1)

    hand_back.add(estate(worker, claims_of([first])))  # an older claim of the same job had started

    assert hand_back.wait(TIMEOUT)
    after = columns(store.get([first.id])[0])
    assert after == {**columns(before), "claims": 2}


def test_a_poison_jobs_last_attempt_makes_it_a_dead_letter(store, worker, claim, hand_back):
    (job,) = claim(1, max_attempts=1)
    hand_back.add(estate(worker, claims_of([job])))
    assert hand_back.wait(TIMEOUT)
    assert store.get([job.id])[0].state == "failed"


def test_a_job_with_a_cancel_request_is_cancelled(store, worker, claim, hand_back):
    jobs = claim(2)
    store.cancel([job.id for job in jobs])
    hand_back.add(estate(worker, claims_of(jobs[:1])))
    assert hand_back.wait(TIMEOUT)
    assert {job.state for job in store.get([job.id for job in jobs])} == {"cancelled"}


def test_when_nothing_is_known_everything_is_rescued(store, worker, claim, hand_back):
    jobs = claim(3)
    hand_back.add(estate(worker, None))
    assert hand_back.wait(TIMEOUT)
    assert [(job.state, job.attempt) for job in store.get([job.id for job in jobs])] == [("scheduled", 1)] * 3


def test_more_than_one_batch(store, worker, claim, hand_back, monkeypatch):
    monkeypatch.setattr(handback, "BATCH", 10)
    jobs = claim(35)
    hand_back.add(estate(worker, claims_of(jobs[::5])))
    assert hand_back.wait(TIMEOUT)
    states = [job.state for job in store.get([job.id for job in jobs])]
    assert states == ["scheduled", *["available"] * 4] * 7


def test_the_jobs_of_other_workers_are_let_be(store, worker, claim, hand_back):
    other = store.register_worker("host", 2, "[]", 1, "1", LEASE).id
    store.insert(NewJob("tests.job"))
    (kept,) = store.claim(other, "default", 1)
    claim(1)
    hand_back.add(estate(worker, {}))
    assert hand_back.wait(TIMEOUT)
    assert store.get([kept.id])[0] == kept
    assert Worker.objects.get(pk=other).lost_at is None


@pytest.mark.postgresql
def test_a_claim_that_arrives_during_the_first_look_is_not_rescued(
    store, worker, claim, open_store, started, monkeypatch
):
    monkeypatch.setattr(handback, "SETTLE_SECONDS", 2.0)
    late, running = claim(2)
    store.release([late])

    def open_one():
        one = open_store()
        rescue = one.rescue
        one.rescue = lambda **options: store.claim(worker, "default", 1) and rescue(**options)
        return one

    part = started(HandBack(open_one, LEASE))
    part.add(estate(worker, claims_of([running])))
    assert part.wait(TIMEOUT)

    assert [(job.state, job.attempt) for job in store.get([late.id, running.id])] == [
        ("available", 0),
        ("scheduled", 1),
    ]


@pytest.mark.postgresql
def test_a_claim_that_arrives_after_the_death_is_released_too(store, worker, claim, hand_back, monkeypatch):
    monkeypatch.setattr(handback, "SETTLE_SECONDS", 2.0)
    # The server goes on with a statement whose client has died. Until the second look the worker's row stays, so that
    # no keeper charges what such a claim has brought.
    left = estate(worker, {})
    first_look = hand_back_looks(hand_back)
    hand_back.add(left)
    first_look.wait(TIMEOUT)
    (late,) = claim(1)

    assert hand_back.wait(TIMEOUT)

    job = store.get([late.id])[0]
    assert (job.state, job.attempt) == ("available", 0)
    assert Worker.objects.get(pk=worker).lost_at is not None


def hand_back_looks(hand_back):
    """An event that is set when the claims have been looked at once."""
    looked = threading.Event()
    look = hand_back._hand_back_claims

    def looking(*args):
        look(*args)
        looked.set()

    hand_back._hand_back_claims = looking
    return looked


def test_after_an_error_it_is_tried_again_and_another_estate_comes_first(
    store, worker, claim, open_store, started, caplog
):
    other = store.register_worker("host", 2, "[]", 1, "1", LEASE).id
    (job,) = claim(1)
    faults = [OSError("away")] * 2
    looked = []

    def open_failing():
        real = open_store()
        running = real.running

        def failing(worker_id, *args):
            looked.append(worker_id)
            if worker_id == worker and faults:
                raise faults.pop()
            return running(worker_id, *args)

        real.running = failing
        return real

    part = HandBack(open_failing, LEASE)
    part.add(estate(worker, {}))
    part.add(estate(other, {}))
    started(part)
    assert part.wait(TIMEOUT)
    assert looked[:2] == [worker, other]
    assert store.get([job.id])[0].state == "available"


def test_the_connection_is_open_only_while_there_is_something_to_hand_back(
    store, worker, open_store, started
):
    opened = []

    def open_one():
        opened.append(open_store())
        return opened[-1]

    part = started(HandBack(open_one, LEASE))
    assert opened == []
    part.add(estate(worker, {}))
    assert part.wait(TIMEOUT)
    part.stop()
    assert part.join(TIMEOUT)
    (one,) = opened
    assert one.session._connection is None


def test_what_was_done_is_told(worker, claim, hand_back, caplog):
    jobs = claim(3)
    with caplog.at_level(logging.WARNING, "django_jobs.supervisor"):
        hand_back.add(estate(worker, claims_of(jobs[:1])))
        assert hand_back.wait(TIMEOUT)
    assert (
        "Process 5 was killed by signal SIGKILL; of its jobs 2 had not started and are released, 0 had completed, "
        "1 were running and are rescued" in caplog.text
    )
