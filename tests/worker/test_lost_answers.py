"""Claims whose answer was lost are told from all others by one moment, whatever queues there are."""

from types import SimpleNamespace

import pytest

from django_jobs.worker import lost_answers as module, parts
from django_jobs.worker.lost_answers import Epoch, LostAnswers
from tests.worker.fakes import WORKER, row


def claimed(number, queue_name, second):
    return row(number, queue_name=queue_name, attempted_at=f"2031-05-06 07:08:{second:02}.000000")


@pytest.fixture
def found():
    """Find, among jobs that run, those of lost answers; their ids."""

    def found(lost, *running):
        store = SimpleNamespace(
            outlives_client=False,
            running=lambda worker_id, after, most: [job for job in running if job.id > after],
        )
        return [job.id for job in lost.find(store, WORKER, at_once=True)]

    return found


def test_what_was_claimed_from_that_queue_after_the_last_answer_is_found(found):
    lost = LostAnswers(Epoch(30.0))
    before, other = claimed(1, "mail", 10), claimed(2, "default", 11)
    lost.answered([before])
    lost.answered([other])
    lost.failed(WORKER, "mail", 0)

    assert found(lost, before, other, claimed(3, "mail", 12), claimed(4, "default", 12)) == [3]


def test_what_a_later_claim_of_that_queue_was_answered_with_is_not(found):
    lost = LostAnswers(Epoch(30.0))
    lost.answered([claimed(1, "default", 11)])
    lost.failed(WORKER, "mail", 0)
    later = claimed(3, "mail", 13)
    lost.answered([later])

    assert found(lost, claimed(2, "mail", 12), later) == [2]


def test_before_the_first_answer_all_that_runs_of_that_queue_is(found):
    lost = LostAnswers(Epoch(30.0))
    lost.failed(WORKER, "mail", 0)

    assert found(lost, claimed(1, "mail", 10), claimed(2, "default", 10)) == [1]


def test_what_comes_late_is_found_when_no_more_can_come(monkeypatch):
    """Looked for at once, after a second, and when a heartbeat has ended the epoch for as long as a statement takes."""
    clock = SimpleNamespace(now=1000.0)
    for each in (module, parts):
        monkeypatch.setattr(each, "time", SimpleNamespace(monotonic=lambda: clock.now))
    epoch, running = Epoch(30.0), []
    lost = LostAnswers(epoch)
    store = SimpleNamespace(
        outlives_client=True,
        running=lambda worker_id, after, most: [job for job in running if job.id > after],
    )
    lost.answered([claimed(1, "mail", 10)])
    lost.failed(WORKER, "mail", 0)
    lost.failed(WORKER, "mail", 0)
    assert epoch.number == 1, "two claims of one epoch end it once"

    for _ in range(2):
        assert lost.seconds_until_look() == 0.0
        assert lost.awaited is True
        assert lost.find(store, WORKER) == []
        clock.now += 1.0
    assert not lost.awaited
    clock.now += 7200.0
    assert lost.seconds_until_look() == float("inf"), "while no heartbeat comes through, anything may come"
    epoch.stored(0)  # one that was sent before
    assert lost.seconds_until_look() == float("inf")
    epoch.stored(1)
    assert lost.seconds_until_look() == 30.0
    running.append(claimed(2, "mail", 11))
    clock.now += 30.0

    assert [job.id for job in lost.find(store, WORKER)] == [2]
    assert lost.seconds_until_look() is None
