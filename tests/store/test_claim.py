"""Claiming: whose jobs, which ones, in what order, how many, and what changes in the row."""

import datetime as dt

import pytest

from tests.store.builders import columns, update, write


def names(jobs):
    return [job.name for job in jobs]


def test_a_claim_counts_one_attempt_and_one_claim(store, make, clock):
    worker = make.worker()
    job = make.one()
    clock.advance(5)

    (claimed,) = store.claim(worker, "default", 10, now=clock.now)

    assert claimed.id == job.id
    assert (claimed.state, claimed.worker_id) == ("running", worker)
    assert (claimed.attempt, claimed.claims, claimed.attempted_at) == (1, 1, clock.now)
    assert (claimed.run_after, claimed.created_at, claimed.finalized_at) == (
        job.run_after,
        job.created_at,
        None,
    )
    assert make.again(job) == claimed


def test_a_claim_brings_each_column_as_it_is_stored(store, make, clock):
    job = make.one(
        queue_name="mail",
        priority=-3,
        max_attempts=9,
        args="[1]",
        kwargs='{"a": 2}',
        timeout=0.1,
        tags='["red"]',
        metadata='{"b": 3}',
        unique_key="only",
        unique_for=3600,
    )
    update([job.id], claims=6, attempt=5, error_class="ValueError", errors=[{"number": 1}], result=[4])
    make.one(queue_name="mail")

    claimed = store.claim(make.worker(), "mail", 2, now=clock.now)

    assert claimed == [make.again(each) for each in claimed]
    assert len(claimed) == 2
    values = next(columns(each) for each in claimed if each.id == job.id)
    assert [name for name, value in values.items() if value is None] == [
        "cancel_requested_at",
        "finalized_at",
    ]


def test_a_claimed_job_is_not_claimed_again(store, make, clock):
    first, second = make.worker(), make.worker()
    make.one()

    assert len(store.claim(first, "default", 10, now=clock.now)) == 1
    assert store.claim(second, "default", 10, now=clock.now) == []
    assert store.claim(first, "default", 10, now=clock.now) == []


def test_only_jobs_of_the_queue_are_claimed(store, make, clock):
    worker = make.worker()
    make.insert(2, queue_name="mail")
    make.insert(1, queue_name="mai")
    make.insert(1, queue_name="mail2")

    assert {job.queue_name for job in store.claim(worker, "mail", 10, now=clock.now)} == {"mail"}
    assert [job.queue_name for job in store.claim(worker, "mai", 10, now=clock.now)] == ["mai"]


@pytest.mark.parametrize("state", ["pending", "scheduled", "running", "completed", "failed", "cancelled"])
def test_only_available_jobs_are_claimed(store, make, clock, state):
    worker = make.worker()
    job = make.one()
    finished = state in ("completed", "failed", "cancelled")
    update([job.id], state=state, worker=worker, finalized_at=clock.now if finished else None)

    assert store.claim(worker, "default", 10, now=clock.now) == []
    assert make.again(job).state == state


def test_the_order_is_priority_then_time_then_id(store, make, clock):
    worker = make.worker()
    for name, priority, seconds in [
        ("e", 0, -1), ("f", 0, -1), ("d", 0, -5), ("a", 100, 0),
        ("b", 5, -2), ("c", 5, -1), ("h", -100, -9), ("g", 0, 0),
    ]:  # fmt: skip
        make.one(name=name, priority=priority, run_after=clock.after(seconds))

    one_by_one = [names(store.claim(worker, "default", 1, now=clock.now)) for _ in range(3)]

    assert one_by_one == [["a"], ["b"], ["c"]]
    assert names(store.claim(worker, "default", 3, now=clock.now)) == ["d", "e", "f"]
    assert names(store.claim(worker, "default", 10, now=clock.now)) == ["g", "h"]


def test_whole_seconds_and_fractions_are_ordered_as_times(store, make, clock):
    worker = make.worker()
    second = dt.datetime(2031, 1, 1, tzinfo=dt.UTC)
    times = [
        second + dt.timedelta(microseconds=fraction)
        for fraction in (999_999, 500_000, 10, 0, -1, 1_000_000, 20)
    ]
    for moment in times:
        make.one(run_after=moment)

    one_by_one = [store.claim(worker, "default", 1, now=clock.now)[0].run_after for _ in range(3)]

    assert one_by_one == sorted(times)[:3]
    assert [job.run_after for job in store.claim(worker, "default", 9, now=clock.now)] == sorted(times)[3:]


def test_a_time_that_somebody_wrote_without_a_fraction_is_still_a_time(store, make, clock):
    worker = make.worker()
    later, whole, earlier = make.insert(3)
    write(later, "run_after", "2031-01-01 00:00:00.000001")
    write(whole, "run_after", "2031-01-01 00:00:00")
    write(earlier, "run_after", "2030-12-31 23:59:59.999999")

    claimed = store.claim(worker, "default", 9, now=clock.now)

    assert [job.id for job in claimed] == [earlier.id, whole.id, later.id]
    assert claimed[1].run_after == dt.datetime(2031, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize("limit", [1, 2, 9, 10, 11])
def test_the_limit_is_never_exceeded(store, make, clock, limit):
    worker = make.worker()
    make.insert(10)

    assert len(store.claim(worker, "default", limit, now=clock.now)) == min(limit, 10)
    assert len(store.claim(worker, "default", 100, now=clock.now)) == 10 - min(limit, 10)


def test_a_lost_worker_claims_nothing(store, make, clock):
    worker = make.worker(lease=30)
    make.one()
    store.lose_workers(now=clock.advance(31))

    assert store.claim(worker, "default", 10, now=clock.now) == []


def test_a_stopped_worker_claims_nothing(store, make, clock):
    worker = make.worker()
    make.one()
    store.stop_worker(worker, now=clock.now)

    assert store.claim(worker, "default", 10, now=clock.now) == []


def test_a_worker_without_a_row_claims_nothing(store, make, clock):
    make.one()

    assert store.claim(987_654_321, "default", 10, now=clock.now) == []


def test_a_late_worker_that_nobody_gave_up_claims_on(store, make, clock):
    worker = make.worker(lease=30)
    make.one()

    assert len(store.claim(worker, "default", 10, now=clock.advance(3600))) == 1


def test_each_claim_of_a_row_has_a_number_of_its_own(store, make, clock):
    worker = make.worker()
    job = make.running(worker)
    numbers = [job.claims]
    for _ in range(3):
        store.release([job], now=clock.now)
        (job,) = store.claim(worker, "default", 1, now=clock.now)
        numbers.append(job.claims)

    assert numbers == [1, 2, 3, 4]
    assert job.attempt == 1


def test_a_row_with_one_attempt_left_can_be_claimed_beside_others(store, make, clock):
    worker = make.worker()
    last, other = make.one(max_attempts=3), make.one(max_attempts=3)
    update([last.id], attempt=2)

    claimed = {job.id: job.attempt for job in store.claim(worker, "default", 10, now=clock.now)}

    assert claimed == {last.id: 3, other.id: 1}


def test_waiting_queues(store, make, clock):
    assert store.waiting_queues() == []
    for queue in ("b", "a", "c", "b"):
        make.one(queue_name=queue)
    make.one(queue_name="later", delay=60.0)
    store.claim(make.worker(), "c", 1, now=clock.now)

    assert sorted(store.waiting_queues()) == ["a", "b"]
