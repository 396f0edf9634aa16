"""Claims whose answer was lost are told from all others by one moment, whatever queues there are."""

from types import SimpleNamespace

import pytest

from django_jobs.worker.lost_answers import LostAnswers
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
    lost = LostAnswers()
    before, other = claimed(1, "mail", 10), claimed(2, "default", 11)
    lost.answered([before])
    lost.answered([other])
    lost.failed(WORKER, "mail")

    assert found(lost, before, other, claimed(3, "mail", 12), claimed(4, "default", 12)) == [3]


def test_what_a_later_claim_of_that_queue_was_answered_with_is_not(found):
    lost = LostAnswers()
    lost.answered([claimed(1, "default", 11)])
    lost.failed(WORKER, "mail")
    later = claimed(3, "mail", 13)
    lost.answered([later])

    assert found(lost, claimed(2, "mail", 12), later) == [2]


def test_before_the_first_answer_all_that_runs_of_that_queue_is(found):
    lost = LostAnswers()
    lost.failed(WORKER, "mail")

    assert found(lost, claimed(1, "mail", 10), claimed(2, "default", 10)) == [1]
