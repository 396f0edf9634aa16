"""Order and limits, where the database returns rows in another order whenever a statement does not ask for one.

The index that a statement goes by has its rows in the right order, so that a forgotten ORDER BY would show only on
the day that another plan is chosen.
"""

import pytest
from django.db import connection

from tests.store.builders import update

UPSIDE_DOWN = {
    "sqlite": ["PRAGMA reverse_unordered_selects = ON"],
    "postgresql": [f"SET enable_{way} = off" for way in ("indexscan", "indexonlyscan", "bitmapscan")],
}
USUAL = {
    "sqlite": ["PRAGMA reverse_unordered_selects = OFF"],
    "postgresql": [f"RESET enable_{way}" for way in ("indexscan", "indexonlyscan", "bitmapscan")],
}


def run(statements):
    with connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)


@pytest.fixture(autouse=True)
def no_order_by_itself(transactional_db):
    run(UPSIDE_DOWN[connection.vendor])
    yield
    run(USUAL[connection.vendor])


def ids(jobs):
    return [job.id for job in jobs]


def test_claims_by_priority(shared, make, clock):
    worker = make.worker()
    middle, first, last, second = (make.one(priority=priority) for priority in (0, 9, -9, 5))

    assert [ids(shared.claim(worker, "default", 1, now=clock.now)) for _ in range(4)] == [
        [first.id], [second.id], [middle.id], [last.id]
    ]  # fmt: skip


def test_claims_by_time(shared, make, clock):
    worker = make.worker()
    second, first, last = (make.one(run_after=clock.after(-age)) for age in (5, 9, 1))

    assert [ids(shared.claim(worker, "default", 1, now=clock.now)) for _ in range(3)] == [
        [first.id], [second.id], [last.id]
    ]  # fmt: skip


def test_claims_by_id(shared, make, clock):
    worker = make.worker()
    jobs = make.insert(6)
    update(ids(jobs[:3]), name="moved.behind.the.others")

    assert ids(shared.claim(worker, "default", 2, now=clock.now)) == ids(jobs[:2])
    assert ids(shared.claim(worker, "default", 9, now=clock.now)) == ids(jobs[2:])


def test_promotes_the_longest_due_first(shared, make, clock):
    second, first, last = (make.one(delay=delay) for delay in (5.0, 1.0, 9.0))
    clock.advance(60)

    assert [ids(shared.promote(limit=1, now=clock.now)) for _ in range(3)] == [
        [first.id],
        [second.id],
        [last.id],
    ]


def test_the_next_due_is_the_first(shared, make, clock):
    for delay in (5.0, 1.0, 9.0):
        make.one(delay=delay)

    assert shared.next_due(now=clock.now) == 1


def test_purges_the_oldest_first(shared, make, clock):
    jobs = make.finished("failed", count=3)
    for job, age in zip(jobs, (5, 9, 1), strict=True):
        update([job.id], finalized_at=clock.after(-age))

    assert [shared.purge("failed", 0.0, limit=1, now=clock.now) for _ in range(3)] == [
        [jobs[1].id], [jobs[0].id], [jobs[2].id]
    ]  # fmt: skip


def test_rescues_by_id(shared, make, clock):
    worker = make.worker()
    jobs = make.claimed(worker, count=6)
    update(ids(jobs[:3]), name="moved.behind.the.others")

    assert ids(shared.rescue(worker_id=worker, limit=2, now=clock.now)) == ids(jobs[:2])
    assert ids(shared.rescue(worker_id=worker, limit=9, now=clock.now)) == ids(jobs[2:])


def test_many_inserted_have_ascending_ids(shared, make, clock):
    jobs = make.insert(50)

    assert ids(shared.get(reversed(ids(jobs)))) == ids(jobs)
    assert ids(jobs) == sorted(ids(jobs))
