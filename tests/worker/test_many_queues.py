"""What a worker remembers does not grow with the number of queues that it has ever claimed from."""

import tracemalloc

import pytest

from django_jobs.store import low_water
from django_jobs.store.low_water import LowWater
from django_jobs.store.outcomes import COMPLETED
from django_jobs.store.rows import JobRow, Outcome
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.lost_answers import Epoch, LostAnswers
from django_jobs.worker.retention import Retention
from tests.worker.fakes import row

QUEUES = 2000
FEW_BYTES = 10_000


def job_of(number: int) -> JobRow:
    """A claimed job of that number's own queue."""
    return row(
        number, queue_name=f"customer-{number}", attempted_at=f"2031-05-06 07:08:{10 + number / 1000:.6f}"
    )


def answer():
    lost = LostAnswers(Epoch(30.0))
    return lambda job: lost.answered([job])


def claim_quickly():
    marks = LowWater()
    return lambda job: marks.began(job.queue_name, 0.0001, [job])


def claim_slowly():
    marks = LowWater()

    def claim(job: JobRow) -> None:
        for _ in range(2):
            marks.began(job.queue_name, 1.0, [job])
        assert marks.parts(job.queue_name)

    return claim


def end():
    retention = Retention()
    return lambda job: retention.unkept(Attempted(Outcome(job.id, job.claims, COMPLETED), job, 0.001))


@pytest.mark.parametrize("make", [answer, claim_quickly, claim_slowly, end])
def test_no_queue_is_remembered_for_ever(make, settings, monkeypatch):
    monkeypatch.setattr(low_water, "MOST_QUEUES", 10)
    settings.DJANGO_JOBS = {"RETENTION": {"failed": 0, "queues": {"mail": {"completed": 0}}}}
    meet = make()
    meet(job_of(0))
    tracemalloc.start()
    try:
        for number in range(1, QUEUES):
            meet(job_of(number))
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert grown < FEW_BYTES
