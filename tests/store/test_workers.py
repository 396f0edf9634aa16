"""Workers: their lease, what a heartbeat brings back, and how they end."""

import pytest

from django_jobs.models import Worker
from django_jobs.serialization import parse_timestamp


def row(worker):
    return Worker.objects.get(pk=worker)


def test_each_start_is_a_new_worker(store, clock):
    start = {
        "host": "host",
        "pid": 7,
        "queues": '["mail"]',
        "concurrency": 3,
        "version": "1.2",
        "lease": 30.0,
    }

    first, second = (store.register_worker(**start, now=clock.now) for _ in range(2))

    assert first.id < second.id
    assert (second.host, second.pid) == ("host", 7)
    assert (parse_timestamp(second.started_at), parse_timestamp(second.heartbeat_at)) == (
        clock.now,
        clock.now,
    )
    assert parse_timestamp(second.expires_at) == clock.after(30)
    assert (second.lost_at, second.stopped_at, second.stop_requested_at, second.quiet_requested_at) == (
        None,
    ) * 4
    assert (row(second.id).queues, row(second.id).concurrency, row(second.id).version) == (["mail"], 3, "1.2")


def test_an_id_is_never_used_again(store, make, clock):
    first = make.worker()
    store.stop_worker(first, now=clock.now)
    assert [worker.id for worker in store.purge_workers(0.0, now=clock.now)] == [first]

    assert make.worker() > first


def test_a_heartbeat_renews_the_lease(store, make, clock):
    worker = make.worker(lease=30)

    load = {"running": 2, "completed": 10, "failed": 1, "memory": 5_000_000_000, "leads": True}
    beat = store.heartbeat(worker, 45.0, **load, now=clock.advance(20))

    assert (beat.now, beat.worker.id) == (clock.now, worker)
    assert (parse_timestamp(beat.worker.heartbeat_at), parse_timestamp(beat.worker.expires_at)) == (
        clock.now,
        clock.after(45),
    )
    assert {name: getattr(row(worker), name) for name in load} == load


def test_a_heartbeat_tells_the_databases_own_time(store, make):
    worker = make.worker()
    first, second = store.heartbeat(worker, 30.0), store.heartbeat(worker, 30.0)

    assert first.now <= second.now
    assert (parse_timestamp(second.worker.expires_at) - second.now).total_seconds() == pytest.approx(
        30, abs=0.5
    )


def test_a_heartbeat_brings_paused_queues_and_its_own_cancel_requests(store, make, clock):
    worker, other = make.worker(), make.worker()
    assert store.heartbeat(worker, 30.0, now=clock.now)[2:] == (frozenset(), frozenset())

    mine, mine_too, unasked = make.claimed(worker, count=3)
    theirs = make.running(other)
    waiting = make.one()
    store.cancel([mine.id, mine_too.id, theirs.id, waiting.id], now=clock.now)
    for queue, pause in [("mail", True), ("a, \"b\" 'c' é", True), ("open", False), ("reopened", True)]:
        store.upsert_queue(queue, pause=pause, now=clock.now)
    store.upsert_queue("reopened", pause=False, now=clock.now)

    beat = store.heartbeat(worker, 30.0, now=clock.now)

    assert beat.paused == {"mail", "a, \"b\" 'c' é"}
    assert beat.cancelled == {mine.id, mine_too.id}
    assert unasked.id not in beat.cancelled
    assert store.heartbeat(other, 30.0, now=clock.now).cancelled == {theirs.id}


def test_a_heartbeat_brings_an_operators_requests(store, make, clock):
    worker = make.worker()
    Worker.objects.filter(pk=worker).update(stop_requested_at=clock.now, quiet_requested_at=clock.now)

    beat = store.heartbeat(worker, 30.0, now=clock.now)

    assert parse_timestamp(beat.worker.stop_requested_at) == clock.now
    assert parse_timestamp(beat.worker.quiet_requested_at) == clock.now


def test_an_operator_asks_a_worker_to_be_quiet_and_to_stop(store, make, clock):
    worker, other = make.worker(), make.worker()
    began = clock.now

    asked = store.ask_worker(worker, quiet=True, now=began)
    assert (parse_timestamp(asked.quiet_requested_at), asked.stop_requested_at) == (began, None)

    again = store.ask_worker(worker, quiet=True, stop=True, now=clock.advance(1))
    assert parse_timestamp(again.quiet_requested_at) == began, "the first request counts"
    assert parse_timestamp(again.stop_requested_at) == clock.now

    last = store.ask_worker(worker, quiet=False, now=clock.advance(1))
    assert last.quiet_requested_at is None
    assert last.stop_requested_at == again.stop_requested_at, "a stop is not taken back"
    assert row(other).quiet_requested_at is None


def test_a_worker_that_is_gone_is_asked_nothing(store, make, clock):
    stopped, lost = make.worker(), make.worker(lease=1.0)
    store.stop_worker(stopped, now=clock.now)
    store.lose_worker(lost, now=clock.now)

    for worker in (stopped, lost, 987_654_321):
        assert store.ask_worker(worker, quiet=True, stop=True, now=clock.now) is None
    assert row(stopped).stop_requested_at is None


@pytest.mark.parametrize(("seconds", "lost"), [(29, False), (30, False), (30.000001, True), (3600, True)])
def test_a_lease_holds_until_its_very_end(store, make, clock, seconds, lost):
    worker = make.worker(lease=30)
    clock.advance(seconds)

    given_up = store.lose_workers(now=clock.now)

    assert [each.id for each in given_up] == ([worker] if lost else [])
    assert [parse_timestamp(each.lost_at) for each in given_up] == ([clock.now] if lost else [])


def test_who_has_died_before_the_clock_was_set_back_is_lost(store, make, clock):
    """Its lease seems to last for hours. Who lives has renewed its own since."""
    alive = make.worker(lease=30)
    dead = store.register_worker("host", 2, '["*"]', 1, "1", 30.0, now=clock.after(7200)).id
    store.heartbeat(alive, 30.0, now=clock.advance(20))

    assert [each.id for each in store.lose_workers(now=clock.now, witness=alive)] == [dead]


def test_nobody_is_lost_on_the_word_of_a_worker_that_has_not_seen_the_clock_set_back(store, make, clock):
    witness, other = make.worker(lease=30), make.worker(lease=30)

    assert store.lose_workers(now=clock.after(-7200), witness=witness) == []
    assert [each.id for each in store.lose_workers(now=clock.after(-7200))] == [witness, other]


def test_a_claim_of_an_epoch_that_its_worker_has_given_up_takes_nothing(store, make, clock):
    """However late something between delivers it."""
    worker, other = make.worker(), make.worker()
    jobs = make.insert(3)
    assert [job.id for job in store.claim(worker, "default", 1, now=clock.now, epoch=0)] == [jobs[0].id]

    store.heartbeat(worker, 30.0, epoch=2, now=clock.now)
    store.heartbeat(worker, 30.0, epoch=1, now=clock.now)  # one that is late, too

    for epoch in (0, 1):
        assert store.claim(worker, "default", 1, now=clock.now, epoch=epoch) == []
    assert [job.id for job in store.claim(other, "default", 1, now=clock.now)] == [jobs[1].id]
    assert [job.id for job in store.claim(worker, "default", 1, now=clock.now, epoch=2)] == [jobs[2].id]


def test_nobody_is_lost_on_the_word_of_a_worker_whose_own_lease_is_over(store, make, clock):
    """The host, or the server, stood still while the statement was under way."""
    witness, silent = make.worker(lease=30), make.worker(lease=10)
    assert store.lose_workers(now=clock.advance(31), witness=witness) == []
    assert store.lose_workers(now=clock.now, witness=987_654_321) == []

    store.heartbeat(witness, 30.0, now=clock.now)
    assert [each.id for each in store.lose_workers(now=clock.now, witness=witness)] == [silent]
    store.lose_worker(witness, now=clock.now)
    make.worker(lease=-1)
    assert store.lose_workers(now=clock.now, witness=witness) == []


def test_a_heartbeat_in_time_keeps_the_worker(store, make, clock):
    worker, silent = make.worker(lease=30), make.worker(lease=30)
    store.heartbeat(worker, 30.0, now=clock.advance(20))

    assert [each.id for each in store.lose_workers(now=clock.advance(20))] == [silent]


def test_a_late_heartbeat_of_a_worker_that_nobody_gave_up_renews_its_lease(store, make, clock):
    worker = make.worker(lease=30)

    assert store.heartbeat(worker, 30.0, now=clock.advance(3600)) is not None
    assert store.lose_workers(now=clock.now) == []


def test_a_heartbeat_after_the_loss_finds_nothing_and_changes_nothing(store, make, clock):
    worker = make.worker(lease=30)
    store.lose_workers(now=clock.advance(31))
    before = row(worker).__dict__

    assert store.heartbeat(worker, 30.0, running=1, now=clock.advance(1)) is None
    after = row(worker).__dict__
    assert {**after, "_state": None} == {**before, "_state": None}


def test_a_worker_is_lost_once(store, make, clock):
    make.worker(lease=30)
    assert len(store.lose_workers(now=clock.advance(31))) == 1

    assert store.lose_workers(now=clock.advance(60)) == []


def test_a_stopped_worker_has_no_heartbeat_and_is_not_lost(store, make, clock):
    worker = make.worker(lease=30)

    stopped = store.stop_worker(worker, now=clock.advance(1))

    assert (stopped.id, parse_timestamp(stopped.stopped_at)) == (worker, clock.now)
    assert store.stop_worker(worker, now=clock.advance(1)) is None
    assert store.heartbeat(worker, 30.0, now=clock.now) is None
    assert store.lose_workers(now=clock.advance(3600)) == []


def test_a_worker_without_a_row(store, clock):
    assert store.heartbeat(987_654_321, 30.0, now=clock.now) is None
    assert store.stop_worker(987_654_321, now=clock.now) is None


@pytest.mark.parametrize(("age", "gone"), [(0, True), (59.999999, True), (60, True), (60.000001, False)])
def test_workers_are_forgotten_by_age_inclusive(store, make, clock, age, gone):
    stopped, lost, alive = make.worker(), make.worker(lease=1), make.worker(lease=3600)
    store.stop_worker(stopped, now=clock.advance(2))
    store.lose_workers(now=clock.now)

    forgotten = store.purge_workers(float(age), now=clock.advance(60))

    assert {worker.id for worker in forgotten} == ({stopped, lost} if gone else set())
    assert row(alive).lost_at is None


def test_a_worker_whose_jobs_were_not_rescued_yet_is_kept(store, make, clock):
    worker = make.worker()
    make.running(worker)
    store.stop_worker(worker, now=clock.now)
    assert store.purge_workers(0.0, now=clock.now) == []

    store.rescue(now=clock.now)
    assert [each.id for each in store.purge_workers(0.0, now=clock.now)] == [worker]
