"""As many effects as completed jobs, whatever happens to the processes: real workers, SIGKILLs, forced rescues."""

import signal
from collections import Counter
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from django_jobs.models import Job, Worker
from django_jobs.store import Store, django_store
from tests.conftest import ManageProcess
from tests.waiting import eventually
from tests.workload import jobs
from tests.workload.models import Effect

RunManage = Callable[..., ManageProcess]

SHORT = {"DJANGO_JOBS": '{"LEASE": 2, "HEARTBEAT_INTERVAL": 0.5, "POLL_INTERVAL": 0.2}'}
# Heartbeats that come too seldom to tell anything in time.
SELDOM = {"DJANGO_JOBS": '{"LEASE": 3600, "HEARTBEAT_INTERVAL": 600}'}


def rescue_all() -> int:
    """Take all claims away, from whoever holds them, and let them run again at once: a rescue that was wrong."""
    if connection.vendor == "postgresql":
        # In a transaction that stays open a moment, so that completions wait for these very rows.
        with transaction.atomic():
            return _rescue(django_store("default"))
    return _rescue(django_store("default"))


def _rescue(store: Store) -> int:
    workers = set(Job.objects.filter(state="running").values_list("worker_id", flat=True))
    return sum(len(store.rescue(limit=50, spread=0.0, worker_id=worker)) for worker in workers if worker)


@pytest.mark.parametrize("function", [jobs.effect_in_its_transaction, jobs.effect_with_its_completion])
def test_effects_are_as_many_as_completed_jobs(run_manage: RunManage, function: object) -> None:
    count = 600
    ids = [job.id for job in function.enqueue_many([()] * count)]  # type: ignore[attr-defined]

    def completed() -> int:
        return Job.objects.filter(state="completed").count()

    rescued = 0

    def take_away() -> bool:
        nonlocal rescued
        rescued += rescue_all()
        return True

    for kill_at in (100, 200, 300):
        workers = [run_manage("runjobs", "--concurrency", "4", env=SHORT) for _ in range(2)]
        eventually(lambda: take_away() and completed() >= kill_at, 90, 0.02)  # noqa: B023
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.wait()
    assert rescued, "no claim was taken away, and nothing was tested"

    before = Worker.objects.count()
    last = run_manage("runjobs", env=SHORT)
    # All may be completed before it works; a signal that comes before that would just end it.
    eventually(lambda: completed() == count and Worker.objects.count() > before, 90)
    last.send_signal(signal.SIGTERM)
    assert last.wait() == 0

    effects = Counter(Effect.objects.values_list("job_id", flat=True))
    assert set(effects.values()) == {1}
    assert set(effects) == set(ids)
    # Each effect is of the very claim that completed the job.
    claims = dict(Job.objects.values_list("id", "claims"))
    assert all(claims[job_id] == of for job_id, of in Effect.objects.values_list("job_id", "claims"))
    assert max(claims.values()) > 1


@pytest.mark.parametrize("function", [jobs.wait_until_told, jobs.wait_until_cancelled])
def test_a_cancellation_by_another_process_is_heard_long_before_the_next_heartbeat(
    run_manage: RunManage, function: object
) -> None:
    job = function.enqueue()  # type: ignore[attr-defined]
    worker = run_manage("runjobs", env=SELDOM)
    eventually(lambda: Job.objects.get(pk=job.id).state == "running")

    django_store("default").cancel([job.id])

    job.wait(20)
    assert job.state == "cancelled"
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert Worker.objects.get().stopped_at is not None
