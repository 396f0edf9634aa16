"""Unique keys: one live job for a key, and what a second one is told."""

import datetime as dt

import pytest
from django.db import transaction

from django_jobs.store.outcomes import CANCELLED, COMPLETED, FAILED, RELEASED, RETRY, SNOOZED
from django_jobs.store.rows import NewJob
from django_jobs.store.unique import asked_for, in_period
from tests.store.builders import Recorder, columns, outcome, update

KEYED = NewJob("tests.job", unique_key="key")
HOUR = NewJob("tests.job", unique_key="key", unique_for=3600)


def keyed(number, **more):
    return NewJob("tests.job", args=f"[{number}]", unique_key=f"key {number}", **more)


@pytest.fixture(params=["insert", "insert_many"])
def insert(request, clock):
    """Insert one job by that operation."""

    def one(store, new, now=None):
        now = now or clock.now
        return (
            store.insert(new, now=now) if request.param == "insert" else store.insert_many([new], now=now)[0]
        )

    return one


# One


def test_a_new_job_holds_its_key(store, insert):
    job = insert(store, KEYED)

    assert (job.unique_key, job.holds_key, job.key_until, job.is_duplicate) == ("key", True, None, False)
    assert store.get([job.id]) == [job]


@pytest.mark.parametrize("state", ["pending", "scheduled", "available", "running"])
def test_a_second_one_is_told_of_the_live_job(store, make, insert, clock, state):
    first = insert(store, KEYED._replace(args="[1]"))
    update([first.id], state=state, worker=make.worker())
    before = make.again(first)

    second = insert(store, KEYED._replace(args="[2]", priority=5), now=clock.advance(60))

    assert second.is_duplicate
    assert second == before == make.again(first)


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_a_finished_job_holds_no_key(store, make, insert, state):
    worker = make.worker()
    first = make.running(worker, unique_key="key")
    kind = {"completed": COMPLETED, "failed": FAILED, "cancelled": CANCELLED}[state]
    store.finish([outcome(first, kind)], now=first.attempted_at)

    second = insert(store, KEYED)

    assert (second.is_duplicate, second.id == first.id) == (False, False)
    assert (make.again(first).state, make.again(first).holds_key) == (state, False)


@pytest.mark.parametrize("kind", [RETRY, SNOOZED, RELEASED])
def test_a_job_that_runs_again_keeps_its_key(store, make, insert, kind):
    first = make.running(make.worker(), unique_key="key")
    store.finish([outcome(first, kind, delay=60.0)], now=first.attempted_at)

    assert insert(store, KEYED).id == first.id


def test_without_a_given_time(store, insert):
    first, second = store.insert(HOUR), store.insert(HOUR)

    assert (first.is_duplicate, second.is_duplicate, second.id) == (False, True, first.id)


@pytest.mark.parametrize("new", [KEYED, HOUR], ids=["live", "in a period"])
def test_one_statement_for_a_new_job_and_for_a_duplicate(store, insert, new):
    before = store.session.statements
    assert not insert(store, new).is_duplicate
    assert insert(store, new).is_duplicate

    assert store.session.statements - before == 2


def test_in_the_callers_transaction(shared, store, clock):
    with transaction.atomic():
        first = shared.insert(KEYED, now=clock.now)
        second = shared.insert(KEYED, now=clock.now)
        (third, fourth) = shared.insert_many([KEYED, keyed(1)], now=clock.now)

    assert [job.is_duplicate for job in (first, second, third, fourth)] == [False, True, True, False]
    assert first.id == second.id == third.id
    assert [columns(job) for job in store.get([first.id])] == [columns(first)]


def test_the_transaction_goes_on_after_a_duplicate(shared, store, clock):
    store.insert(KEYED, now=clock.now)
    with transaction.atomic():
        assert shared.insert(KEYED, now=clock.now).is_duplicate
        other = shared.insert(NewJob("tests.job"), now=clock.now)

    assert len(store.get([other.id])) == 1


def test_a_rollback_frees_the_key(shared, store, clock):
    with transaction.atomic():
        shared.insert(KEYED, now=clock.now)
        transaction.set_rollback(True)

    assert not store.insert(KEYED, now=clock.now).is_duplicate


@pytest.mark.parametrize("key", ['"', "\\", "{a,b}", "NULL", "é😀", "%s :now", "a" * 255, "😀" * 255])
def test_any_key_is_told_apart(store, clock, key):
    jobs = [KEYED._replace(unique_key=key), KEYED._replace(unique_key=key[:-1] + "'")]

    first = store.insert_many(jobs, now=clock.now)
    again = [store.insert(job, now=clock.now) for job in jobs]

    assert again == first == store.insert_many(jobs, now=clock.now)
    assert [job.unique_key for job in first] == [job.unique_key for job in jobs]
    assert len({job.id for job in first}) == 2


# Many


def test_many_in_the_order_given(store, clock):
    held = store.insert_many([keyed(3), keyed(1)], now=clock.now)
    new = [
        keyed(5),
        NewJob("tests.job"),
        keyed(3),
        keyed(0, priority=7),
        NewJob("tests.other"),
        keyed(1),
        keyed(2),
    ]

    jobs = store.insert_many(new, now=clock.advance(1))

    assert [job.is_duplicate for job in jobs] == [False, False, True, False, False, True, False]
    assert [jobs[2], jobs[5]] == held
    inserted = [job for job in jobs if not job.is_duplicate]
    assert [job.id for job in inserted] == sorted(job.id for job in inserted)
    assert [job.unique_key for job in jobs] == [job.unique_key for job in new]
    assert store.get([job.id for job in inserted]) == inserted
    assert (jobs[3].priority, jobs[4].name, jobs[4].holds_key) == (7, "tests.other", False)


def test_ids_go_on_after_those_of_many(store, clock):
    many = store.insert_many([keyed(number) for number in range(10)], now=clock.now)

    assert store.insert(NewJob("tests.job"), now=clock.now).id > max(job.id for job in many)
    assert store.insert_many([NewJob("tests.job")], now=clock.now)[0].id > max(job.id for job in many)


def test_of_two_with_one_key_in_one_call_the_second_is_a_duplicate_of_the_first(store, clock):
    jobs = store.insert_many([keyed(1), keyed(2), keyed(1, priority=5), keyed(1)], now=clock.now)

    assert [job.is_duplicate for job in jobs] == [False, False, True, True]
    assert jobs[0] == jobs[2] == jobs[3]
    assert store.count_available(["default"], 10) == {"default": 2}


def test_all_of_one_key(store, clock):
    jobs = store.insert_many([KEYED] * 3, now=clock.now)

    assert [job.is_duplicate for job in jobs] == [False, True, True]
    assert [job.is_duplicate for job in store.insert_many([KEYED] * 3, now=clock.now)] == [True] * 3


def test_what_many_jobs_are_stored_as(store, clock):
    new = [
        keyed(1, kwargs='{"a": "\\u00e9"}', pending=True, tags='["x"]', timeout=2.5),
        keyed(2, delay=60.0),
        keyed(3, run_after=clock.after(60), queue_name="mail", max_attempts=2),
        keyed(4, unique_for=60),
    ]

    jobs = store.insert_many(new, now=clock.now)

    assert store.get([job.id for job in jobs]) == jobs
    assert [job.state for job in jobs] == ["pending", "scheduled", "scheduled", "available"]
    assert (jobs[0].kwargs, jobs[0].tags, jobs[0].timeout) == ({"a": "é"}, ["x"], 2.5)
    assert (jobs[2].queue_name, jobs[2].max_attempts) == ("mail", 2)


def test_5000_twice_are_two_statements(store, clock):
    new = [keyed(number) for number in range(5000)]
    before = store.session.statements

    first = store.insert_many(new, now=clock.now)
    second = store.insert_many(new[::-1], now=clock.advance(1))

    assert store.session.statements - before == 2
    assert second == first[::-1]
    assert {job.is_duplicate for job in first} == {False}
    assert {job.is_duplicate for job in second} == {True}


# Once in a period


def test_the_key_is_that_of_the_period(store, clock, insert):
    job = insert(store, HOUR)

    assert job.unique_key == "key@2031-05-06T07:00:00Z/3600"
    assert job.key_until == dt.datetime(2031, 5, 6, 8, tzinfo=dt.UTC)
    assert store.get([job.id]) == [job]
    assert (job.unique_key, job.key_until) == in_period("key", 3600, clock.now)
    assert asked_for(job.unique_key) == ("key", 3600)


def test_once_in_a_period_also_after_completion(store, make, insert, clock):
    worker = make.worker()
    first = insert(store, HOUR)
    (claimed,) = store.claim(worker, "default", 1, now=clock.now)
    store.finish([outcome(claimed)], now=clock.now)

    last_moment = dt.datetime(2031, 5, 6, 7, 59, 59, 999_999, tzinfo=dt.UTC)
    second = insert(store, HOUR, now=last_moment)
    third = insert(store, HOUR, now=last_moment + dt.timedelta(microseconds=1))

    assert (second.is_duplicate, second.id, second.state) == (True, first.id, "completed")
    assert (third.is_duplicate, third.unique_key) == (False, "key@2031-05-06T08:00:00Z/3600")


def test_a_live_job_does_not_stand_in_the_next_periods_way(store, insert, clock):
    first = insert(store, HOUR)

    assert insert(store, HOUR, now=clock.after(3600)).id != first.id


@pytest.mark.parametrize("kind", [FAILED, CANCELLED])
def test_a_dead_letter_never_holds_a_key_of_a_period(store, make, insert, clock, kind):
    job = make.running(make.worker(), unique_key="key", unique_for=3600)
    store.finish([outcome(job, kind)], now=clock.now)

    assert not insert(store, HOUR).is_duplicate


def test_a_cancelled_waiting_job_neither(store, insert, clock):
    job = insert(store, HOUR)
    store.cancel([job.id], now=clock.now)

    assert not insert(store, HOUR).is_duplicate


@pytest.mark.parametrize(
    ("seconds", "start", "end"),
    [
        (1, (2031, 5, 6, 7, 8, 9), (2031, 5, 6, 7, 8, 10)),
        (86_400, (2031, 5, 6), (2031, 5, 7)),
        (7 * 86_400, (2031, 5, 1), (2031, 5, 8)),  # multiples since 1970 begin on a Thursday
        (36_600 * 86_400, (1970, 1, 1), (2070, 3, 17)),
    ],
)
def test_periods_are_multiples_since_1970(store, clock, insert, seconds, start, end):
    job = insert(store, HOUR._replace(unique_for=seconds))

    assert job.unique_key == f"key@{dt.datetime(*start):%Y-%m-%dT%H:%M:%S}Z/{seconds}"
    assert job.key_until == dt.datetime(*end, tzinfo=dt.UTC)


def test_many_of_different_periods_in_one_call(store, clock):
    new = [KEYED, HOUR, HOUR._replace(unique_for=60), KEYED, HOUR, KEYED._replace(unique_key="key@2")]

    jobs = store.insert_many(new, now=clock.now)
    again = store.insert_many(new, now=clock.now)

    assert [job.is_duplicate for job in jobs] == [False, False, False, True, True, False]
    assert again == jobs
    assert {job.is_duplicate for job in again} == {True}


def test_a_key_that_looks_like_one_of_a_period(store, clock):
    job = store.insert(HOUR, now=clock.now)

    (same,) = store.insert_many([KEYED._replace(unique_key=job.unique_key)], now=clock.now)
    (alone,) = store.insert_many([KEYED._replace(unique_key="x@2031-05-06T07:00:00Z/3600")], now=clock.now)
    many = store.insert_many(
        [KEYED._replace(unique_key=key) for key in ("@", "a@b", "y@2031-05-06T07:00:00Z/3600")]
    )

    assert (same.is_duplicate, same.id, alone.is_duplicate) == (True, job.id, False)
    assert [job.is_duplicate for job in many] == [False] * 3


# What else a held key means


def test_purging_spares_a_job_that_holds_its_period(store, make, clock):
    worker = make.worker()
    jobs = make.claimed(worker, unique_key="key", unique_for=3600) + make.claimed(worker)
    store.finish([outcome(job) for job in jobs], now=clock.now)

    assert store.purge("completed", 0.0, now=clock.now) == [jobs[1].id]
    end = jobs[0].key_until
    assert store.purge("completed", 0.0, now=end - dt.timedelta(microseconds=1)) == []
    assert store.purge("completed", 0.0, now=end) == [jobs[0].id]


def test_a_finish_may_write_any_mix(store, make, clock):
    worker = make.worker()
    (plain,) = make.claimed(worker)
    (live,) = make.claimed(worker, unique_key="a")
    (hour,) = make.claimed(worker, unique_key="b", unique_for=3600)
    (dead,) = make.claimed(worker, unique_key="c", unique_for=3600)
    store.finish(
        [outcome(plain), outcome(live), outcome(hour), outcome(dead, RETRY, delay=5.0)], now=clock.now
    )

    held = [job.holds_key for job in store.get([plain.id, live.id, hour.id, dead.id])]
    assert held == [False, False, True, True]


def test_a_job_retried_by_an_operator_keeps_the_key_of_its_period(store, make, clock):
    job = make.running(make.worker(), unique_key="key", unique_for=3600)
    store.finish([outcome(job)], now=clock.now)

    (within,) = store.retry([job.id], now=clock.advance(60))
    assert (within.done, within.job.holds_key) == (True, True)
    assert store.insert(HOUR, now=clock.now).id == job.id


def test_a_job_retried_after_its_period_is_in_nobodys_way(store, make, clock):
    job = make.running(make.worker(), unique_key="key", unique_for=3600)
    store.finish([outcome(job)], now=clock.now)
    twin = store.insert(HOUR, now=clock.advance(3600))

    (answer,) = store.retry([job.id], now=clock.now)

    assert (answer.done, twin.is_duplicate) == (True, False)


def test_a_dead_letter_whose_period_another_job_completed_is_refused(store, make, clock):
    worker = make.worker()
    dead = make.running(worker, unique_key="key", unique_for=3600)
    store.finish([outcome(dead, FAILED)], now=clock.now)
    store.finish([outcome(make.running(worker, unique_key="key", unique_for=3600))], now=clock.now)

    (answer,) = store.retry([dead.id], now=clock.now)

    assert (answer.done, answer.job.state) == (False, "failed")
    assert answer.reason == "Another job holds its unique key 'key@2031-05-06T07:00:00Z/3600'."


def test_a_refused_retry_says_why(store, make, clock):
    (dead,) = make.finished("failed", unique_key="key")
    update([dead.id], holds_key=False)
    live = make.one(unique_key="key")

    refused, waiting = store.retry([dead.id, live.id], now=clock.advance(1))

    assert refused.reason == "Another job holds its unique key 'key'."
    assert waiting.reason == "It is available, not finished."


def test_promoting_beside_a_live_twin_breaks_no_batch(store, make, clock):
    """A scheduled job holds its key, so there is no twin; somebody's own SQL may make one."""
    twin, due, other = (
        make.one(unique_key="twin", delay=1.0),
        make.one(unique_key="x", delay=1.0),
        make.one(delay=1.0),
    )
    update([twin.id], holds_key=False)
    make.one(unique_key="twin")

    promoted = store.promote(now=clock.advance(5))

    assert [(job.id, job.holds_key) for job in promoted] == [
        (twin.id, False),
        (due.id, True),
        (other.id, False),
    ]


# Replacing


def test_a_waiting_job_takes_the_new_arguments_and_time(store, make, insert, clock):
    first = insert(store, KEYED._replace(args="[1]", delay=60.0, priority=3))

    second = insert(
        store, KEYED._replace(args="[2]", kwargs='{"a": 1}', delay=60.0, replace=True), now=clock.advance(30)
    )

    assert (second.is_duplicate, second.id, second.state) == (True, first.id, "scheduled")
    assert (second.args, second.kwargs, second.run_after, second.priority) == (
        [2],
        {"a": 1},
        clock.after(60),
        3,
    )
    assert make.again(first) == second


@pytest.mark.parametrize(
    ("state", "when", "after"),
    [
        ("scheduled", {}, "available"),
        ("available", {"delay": 60.0}, "scheduled"),
        ("available", {"run_after": 60}, "scheduled"),
        ("scheduled", {"run_after": -60}, "available"),
        ("pending", {}, "pending"),
    ],
)
def test_the_state_follows_the_new_time(store, make, insert, clock, state, when, after):
    if "run_after" in when:
        when = {"run_after": clock.after(when["run_after"])}
    first = insert(
        store, KEYED._replace(delay=5.0 if state == "scheduled" else None, pending=state == "pending")
    )
    assert first.state == state

    assert insert(store, KEYED._replace(replace=True, **when)).state == after


@pytest.mark.parametrize("state", ["running", "completed"])
def test_a_job_that_waits_no_longer_is_returned_as_it_is(store, make, insert, clock, state):
    job = make.running(make.worker(), unique_key="key", unique_for=3600, args="[1]")
    if state == "completed":
        store.finish([outcome(job)], now=clock.now)

    second = insert(store, HOUR._replace(args="[2]", replace=True))

    assert (second.is_duplicate, second.args, second.state) == (True, [1], state)


def test_many_are_replaced_by_one_more_statement_and_the_last_arguments_win(store, make, clock):
    make.insert(1, unique_key="key 1", args="[0]")
    make.insert(1, unique_key="key 2", args="[0]")
    recorder = store.session = Recorder(store.session)

    jobs = store.insert_many(
        [
            keyed(2, replace=True),
            keyed(1, replace=True),
            keyed(3, replace=True),
            keyed(3, replace=True)._replace(args="[33]"),
            keyed(1)._replace(args="[11]"),
        ],
        now=clock.now,
    )

    assert [statement.name for statement, _ in recorder.seen] == ["insert_many_unique", "replace"]
    assert [job.args for job in jobs] == [[2], [1], [33], [33], [1]]
    assert [job.is_duplicate for job in jobs] == [True, True, False, True, True]


def test_replacing_what_is_gone_or_waits_no_longer(store, make, clock):
    waiting, running = make.one(unique_key="a"), make.running(make.worker(), unique_key="b", queue_name="b")
    new = NewJob("tests.job", args="[2]")

    replaced = store.replace({running.id: new, waiting.id: new, 987_654_321: new}, now=clock.now)

    assert [(job.id, job.args) for job in replaced] == [(waiting.id, [2])]
    assert make.again(running) == running
