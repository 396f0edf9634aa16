"""The table of statistics: added to by the minute, folded into hours, purged; and what is read off it."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from django_jobs.models import Stat
from django_jobs.store.statistics import Fold, StatRow
from tests.store.builders import TIMEOUT, in_threads, wait_until

HOUR = dt.datetime(2031, 5, 6, 7, tzinfo=dt.UTC)


def at(minute, seconds=0.0):
    return HOUR + dt.timedelta(minutes=minute, seconds=seconds)


def rows():
    return list(Stat.objects.order_by("minute", "name").values_list("minute", "name", "count"))


def stat(number=1, **more):
    return StatRow(**{"queue_name": "q", "name": "n", "outcome": "completed", "number": number, **more})


def unfolded(store, after=None, *, now):
    """The hours that have minutes."""
    return store.unfolded_stats(Fold(0.0, 3600), after, now=now)


def test_what_comes_in_the_same_minute_is_added(store):
    store.record_stats([stat(2, run_total=3.0, run_max=2.0, wait_total=1.0, wait_max=0.5)], now=at(8, 0.0))
    store.record_stats([stat(3, run_total=1.0, run_max=1.0, wait_total=9.0, wait_max=9.0)], now=at(8, 59.9))
    store.record_stats([stat(4)], now=at(9, 0.0))

    assert rows() == [(at(8), "n", 5), (at(9), "n", 4)]
    first = Stat.objects.get(minute=at(8))
    assert (first.run_total, first.run_max, first.wait_total, first.wait_max) == (4.0, 2.0, 10.0, 9.0)


def test_kinds_are_told_apart(store, clock):
    kinds = [
        stat(), stat(queue_name="r"), stat(name="m"), stat(outcome="failed"),
        stat(outcome="failed", error_class="E"), stat(name='<"\\\'>', error_class="ü" * 200),
    ]  # fmt: skip
    store.record_stats(kinds, now=clock.now)
    store.record_stats(kinds[::-1], now=clock.now)

    kept = Stat.objects.values_list("queue_name", "name", "outcome", "error_class", "count")
    assert sorted(kept) == sorted((*kind[:4], 2) for kind in kinds)


def test_without_a_time_it_is_the_databases_minute(store):
    store.record_stats([stat()])

    moment = Stat.objects.get().minute
    assert (moment.second, moment.microsecond) == (0, 0)
    assert abs((dt.datetime.now(dt.UTC) - moment).total_seconds()) < 120


def test_nothing_to_record_is_no_statement(store):
    store.get([])
    before = store.session.statements
    store.record_stats([])

    assert store.session.statements == before


def test_many_at_once_lose_nothing(open_store):
    stores = [open_store() for _ in range(4)]
    kinds = [stat(name=f"job {number}") for number in range(20)]

    def write(store, order):
        for _ in range(10):
            store.record_stats(kinds[::order], now=HOUR)

    in_threads(*(lambda one=one, order=(-1) ** index: write(one, order) for index, one in enumerate(stores)))

    assert [row[2] for row in rows()] == [40] * 20


@pytest.mark.postgresql
def test_two_workers_that_write_the_same_kinds_do_not_wait_for_each_other_in_a_circle(open_store, shared):
    kinds = [stat(name=name) for name in "abcdefg"]
    shared.record_stats(kinds, now=HOUR)
    one, other = open_store(), open_store()

    def waiting(number):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            return cursor.fetchone() == (number,)

    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            shared.record_stats([stat(name="d")], now=HOUR)
            first = pool.submit(one.record_stats, kinds, now=HOUR)
            wait_until(lambda: waiting(1), "the first one waits")
            second = pool.submit(other.record_stats, kinds[::-1], now=HOUR)
            wait_until(lambda: waiting(2), "the second one waits")
        first.result(TIMEOUT)
        second.result(TIMEOUT)

    assert [row[2] for row in rows()] == [3, 3, 3, 4, 3, 3, 3]


def test_hours_that_are_over_are_folded(store):
    for minute in (0, 5, 59):
        store.record_stats(
            [stat(2, run_total=1.0, run_max=0.5, wait_total=2.0, wait_max=minute)], now=at(minute)
        )
    store.record_stats([stat(7, name="other", error_class="E", outcome="failed")], now=at(30))
    store.record_stats([stat()], now=at(60))
    store.record_stats([stat()], now=at(61))

    assert unfolded(store, now=at(59, 59)) == []
    assert unfolded(store, now=at(60, 1)) == [HOUR]
    assert store.fold_stats(HOUR, 3600) == 3

    assert rows() == [(at(0), "n", 6), (at(0), "other", 7), (at(60), "n", 1), (at(61), "n", 1)]
    folded = Stat.objects.get(minute=HOUR, name="n")
    assert (folded.run_total, folded.run_max, folded.wait_total, folded.wait_max) == (3.0, 0.5, 6.0, 59.0)
    assert unfolded(store, now=at(60, 1)) == []
    assert unfolded(store, now=at(180)) == [at(60)]
    assert store.fold_stats(HOUR, 3600) == 0


def test_hours_are_found_across_gaps_and_from_where_it_was(store):
    for minute in (1, 200, 2000, 90_001):
        store.record_stats([stat()], now=at(minute))
    store.record_stats([stat()], now=at(600))  # at the full hour: as if folded

    now = at(90_200)  # two months later
    hours = [at(0), at(180), at(1980), at(90_000)]
    assert unfolded(store, now=now) == hours
    assert unfolded(store, at(180), now=now) == hours[1:]
    assert store.unfolded_stats(Fold(200_000 * 60.0, 3600), now=now) == []


def test_spans_of_ten_minutes_and_then_hours(store):
    for minute in range(0, 60, 4):
        store.record_stats([stat()], now=at(minute))
    fine = Fold(0.0, 600)

    assert store.unfolded_stats(fine, now=at(29, 59)) == [at(0), at(10)]
    for start in store.unfolded_stats(fine, now=at(60)):
        store.fold_stats(start, 600)
    assert [(moment, number) for moment, _, number in rows()] == [
        (at(0), 3), (at(10), 2), (at(20), 3), (at(30), 2), (at(40), 3), (at(50), 2),
    ]  # fmt: skip
    assert store.unfolded_stats(fine, now=at(600)) == []

    assert unfolded(store, now=at(60)) == [HOUR]
    store.fold_stats(HOUR, 3600)
    assert [(moment, number) for moment, _, number in rows()] == [(at(0), 15)]


def test_a_fold_leaves_counts_over_history_as_they_are(store):
    for minute in range(0, 180, 7):
        store.record_stats([stat(minute + 1), stat(outcome="failed", error_class="E")], now=at(minute))
    before = store.history(at(0), at(180), 3600)

    for hour in unfolded(store, now=at(300)):
        store.fold_stats(hour, 3600)

    assert store.history(at(0), at(180), 3600) == before
    assert len(rows()) == 6


def test_a_purge_takes_the_oldest_up_to_its_limit(store):
    for minute in (1, 2, 3, 4):
        store.record_stats([stat()], now=at(minute))

    assert store.purge_stats(60.0, limit=2, now=at(4)) == 2
    assert [row[0] for row in rows()] == [at(3), at(4)]
    assert store.purge_stats(60.0, limit=2, now=at(4)) == 0
    assert store.purge_stats(60.0, limit=2, now=at(4, 1)) == 1


def test_history_begins_at_since_and_ends_before_until(store):
    for minute in (0, 1, 2, 3):
        store.record_stats([stat(10**minute)], now=at(minute))

    assert [(row.step * 60, row.number) for row in store.history(at(1), at(3), 60)] == [
        (at(1).timestamp(), 10),
        (at(2).timestamp(), 100),
    ]


def test_what_waits_is_told_by_queue_and_priority(store, make, clock):
    make.insert(3, queue_name="b", priority=5)
    clock.advance(10)
    make.insert(3, queue_name="b", priority=-5)
    make.insert(2, queue_name="a")
    make.insert(1, queue_name="c", delay=60.0)
    clock.advance(1)

    heads = store.waiting(100, now=clock.now)

    assert [(head.queue_name, head.priority, (head.now - head.due).total_seconds()) for head in heads] == [
        ("a", 0, 1.0), ("b", 5, 11.0), ("b", -5, 1.0),
    ]  # fmt: skip
    assert [head.queue_name for head in store.waiting(2, now=clock.now)] == ["a", "b"]


def test_live_workers(store, make, clock):
    assert store.live_workers(now=clock.now) == (clock.now, [])

    one, stopped, lost = make.worker(), make.worker(), make.worker()
    store.stop_worker(stopped, now=clock.now)
    store.lose_worker(lost, now=clock.now)
    store.heartbeat(one, 30.0, 3, 4, 5, 1.5, 77, now=clock.advance(2))

    now, (worker,) = store.live_workers(now=clock.advance(1))
    assert (now, worker.id, worker.running, worker.skew, worker.quiet_requested_at) == (
        clock.now,
        one,
        3,
        1.5,
        None,
    )
    assert (worker.heartbeat_at, worker.expires_at) == (clock.after(-1), clock.after(29))
