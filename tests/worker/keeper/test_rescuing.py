"""What lost workers held comes back, and nothing that a living one holds."""

import time

import pytest
from django.db.utils import OperationalError

from django_jobs.models import Job, Stat, Worker
from django_jobs.worker import keeper as module, parts
from tests.waiting import eventually
from tests.worker.keeper.helping import insert, lost_worker, states


def test_the_jobs_of_a_lost_worker_are_made_available_again(make, store, started, caplog):
    ids = lost_worker(store, 3)
    keeper = started(make(lease=0.3))
    eventually(lambda: set(states().values()) == {"available"})

    assert Worker.objects.get().lost_at is not None
    for job in Job.objects.all():
        assert (job.attempt, job.claims) == (1, 1)
        assert [error["class"] for error in job.errors] == ["django_jobs.WorkerLost"]
    assert "is lost" in caplog.text
    assert f"Job {ids[0]} tests.job (attempt 1 of 5)" in caplog.text
    assert set(keeper.woken) == {"default"}


def test_those_that_have_no_attempt_left_are_dead_letters(make, store, started):
    lost_worker(store, max_attempts=1)
    started(make(lease=0.3))

    eventually(lambda: set(states().values()) == {"failed"})


def test_rescued_jobs_come_back_spread_over_part_of_a_lease(make, store):
    lost_worker(store, 30)
    keeper = make(lease=3000.0)
    keeper.rescue()

    due = list(Job.objects.values_list("run_after", flat=True))
    assert set(states().values()) == {"scheduled"}
    assert (max(due) - min(due)).total_seconds() > 100


@pytest.mark.parametrize("trusted", [0.0, 29.0])
def test_nobody_is_rescued_before_the_own_heartbeats_came_for_a_full_lease(make, store, started, trusted):
    """After an outage of the database every worker's lease looks expired."""
    lost_worker(store)
    keeper = started(make(lease=30.0, trusted=trusted))
    eventually(lambda: keeper.leads)
    for _ in range(5):
        keeper._rescue_at = 0.0
        keeper.wake()
        eventually(lambda: keeper._rescue_at > 0.0)
    assert set(states().values()) == {"running"}
    assert Worker.objects.get().lost_at is None

    keeper.trusted = 30.0
    keeper._rescue_at = 0.0
    keeper.wake()
    eventually(lambda: set(states().values()) == {"scheduled"})


def test_nobody_is_rescued_while_the_own_lease_is_over_by_the_database_s_time(make, store):
    """The host slept, or the server stood still, after the keeper had asked how its heartbeats are."""
    own = store.register_worker("host", 2, "[]", 4, "1", -1.0)
    lost_worker(store)
    keeper = make()
    keeper._worker_id = lambda: own.id
    keeper.rescue()
    assert set(states().values()) == {"running"}

    store.heartbeat(own.id, 30.0)
    keeper.rescue()
    assert set(states().values()) == {"scheduled"}


def test_a_worker_that_lives_keeps_its_jobs(make, store, started):
    worker = store.register_worker("host", 1, "[]", 4, "1", 3600.0)
    insert(store)
    store.claim(worker.id, "default", 1)
    lost_worker(store)
    started(make(lease=0.3))

    eventually(lambda: set(states().values()) == {"running", "available"})
    assert Worker.objects.get(id=worker.id).lost_at is None


def test_the_jobs_of_a_worker_without_a_row_are_rescued(make, store, started):
    lost_worker(store)
    Worker.objects.all().delete()
    started(make(lease=0.3))

    eventually(lambda: set(states().values()) == {"available"})


def test_where_that_takes_long_it_is_done_in_a_part_of_the_time_unless_somebody_is_lost(
    make, store, monkeypatch
):
    clock = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    keeper = make(lease=30.0)
    rescue, calls = keeper.store.rescue, []

    def slow(*args, **kwargs):
        clock[0] += 1.0
        calls.append(args)
        return rescue(*args, **kwargs)

    keeper.store.rescue = slow
    keeper.rescue()
    keeper.rescue()
    assert len(calls) == 1
    lost_worker(store)
    keeper.rescue()
    assert set(states().values()) == {"scheduled"}

    keeper.rescue()
    (orphan,) = lost_worker(store)
    Worker.objects.all().delete()
    keeper.rescue()
    assert states()[orphan] == "running"
    clock[0] += 1.0 / module.SEARCH_PART
    keeper.rescue()
    assert states()[orphan] == "scheduled"


def test_whom_a_statement_took_for_lost_whose_answer_was_lost_is_rescued_next_time(make, store):
    keeper = make(lease=30.0)
    keeper._search_at = time.monotonic() + 3600
    lost_worker(store)
    lose_workers = keeper.store.lose_workers

    def unanswered(**options):
        lose_workers(**options)
        raise OperationalError("the line was cut")

    keeper.store.lose_workers = unanswered
    with pytest.raises(OperationalError):
        keeper.rescue()
    keeper.store.lose_workers = lose_workers
    keeper.rescue()

    assert set(states().values()) == {"scheduled"}


def test_a_rescue_that_failed_is_tried_again_soon_and_holds_up_nothing(make, store, started, caplog):
    """Not after a third of a lease, which here is more than a test lasts."""
    lost_worker(store)
    keeper = make(lease=3600.0)
    real, errors = keeper.store.rescue, [OperationalError("away"), ValueError("ours")]
    purges = []

    def fail(*args, **kwargs):
        if errors:
            raise errors.pop(0)
        return real(*args, **kwargs)

    keeper.store.rescue = fail
    keeper.purge = lambda: purges.append(len(errors))
    started(keeper)

    eventually(lambda: set(states().values()) == {"scheduled"})
    assert purges == [1]
    assert "The rescue of lost jobs has a database error (1 in a row): OperationalError: away" in caplog.text
    assert "The rescue of lost jobs failed (2 in a row)" in caplog.text


@pytest.mark.parametrize(("failures", "pause"), [(1, 0.1), (2, 0.2), (30, 1.0)])
def test_failed_rescues_back_off_up_to_their_interval(make, monkeypatch, failures, pause):
    monkeypatch.setattr(parts.random, "uniform", lambda low, high: high)
    keeper = make(lease=3.0)
    keeper._failed_rescues = failures - 1

    def fail():
        raise OperationalError("away")

    keeper.rescue = fail
    before = time.monotonic()
    keeper._rescue_or_back_off(before - 100.0)  # what failed took long

    assert before <= keeper._rescue_at - pause <= time.monotonic()


def test_a_thousand_jobs_and_one_are_rescued(make, store, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 10)
    lost_worker(store, 25)
    make().rescue()

    assert set(states().values()) == {"scheduled"}


def test_what_becomes_of_rescued_jobs_is_counted(make, store, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    lost_worker(store, 2, name="tests.again")
    lost_worker(store, 3, name="tests.dead", max_attempts=1)
    store.cancel(lost_worker(store, name="tests.cancelled"))
    make().rescue()

    assert set(Stat.objects.values_list("name", "outcome", "error_class", "count")) == {
        ("tests.again", "retried", "django_jobs.WorkerLost", 2),
        ("tests.dead", "failed", "django_jobs.WorkerLost", 3),
        ("tests.cancelled", "cancelled", "", 1),
    }
