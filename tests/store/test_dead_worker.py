"""What a supervisor does with a worker whose process has ended: read its claims, rescue some of them, mark its row."""

from django_jobs.models import Worker
from django_jobs.serialization import parse_timestamp
from tests.store.builders import outcome


def ids(jobs):
    return [job.id for job in jobs]


def test_the_claims_that_a_worker_holds_in_pages(store, make, clock):
    worker, other = make.worker(), make.worker()
    held = make.claimed(worker, count=7)
    make.claimed(other, count=2)
    store.finish([outcome(held[0])], now=clock.now)
    make.insert(2)

    assert store.running(worker) == held[1:]
    assert ids(store.running(worker, limit=3)) == ids(held[1:4])
    assert ids(store.running(worker, after=held[3].id, limit=3)) == ids(held[4:7])
    assert store.running(worker, after=held[6].id) == []
    assert store.running(987_654_321) == []


def test_a_rescue_of_some_leaves_the_others(store, make, clock):
    worker, other = make.worker(), make.worker()
    held = make.claimed(worker, count=5)
    foreign = make.running(other)

    rescued = store.rescue(worker_id=worker, ids=[held[3].id, held[1].id, foreign.id], now=clock.now)

    assert ids(rescued) == [held[1].id, held[3].id]
    assert ids(store.running(worker)) == [held[0].id, held[2].id, held[4].id]
    assert store.running(other) == [foreign]
    assert store.rescue(worker_id=worker, ids=[], now=clock.now) == []


def test_one_worker_is_lost_before_its_lease_ends(store, make, clock):
    worker, other = make.worker(lease=3600), make.worker(lease=3600)

    lost = store.lose_worker(worker, now=clock.advance(1))

    assert (lost.id, parse_timestamp(lost.lost_at)) == (worker, clock.now)
    assert store.lose_worker(worker, now=clock.advance(1)) is None
    assert store.heartbeat(worker, 30.0, now=clock.now) is None
    assert Worker.objects.get(pk=other).lost_at is None


def test_a_worker_that_has_stopped_is_not_lost(store, make, clock):
    worker = make.worker()
    store.stop_worker(worker, now=clock.now)

    assert store.lose_worker(worker, now=clock.advance(1)) is None
    assert store.lose_worker(987_654_321, now=clock.now) is None
    assert Worker.objects.get(pk=worker).lost_at is None
