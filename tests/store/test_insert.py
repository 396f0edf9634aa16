"""Inserting jobs: what a new row holds, one at a time and many at once, in the caller's transaction."""

import datetime as dt
import json

import pytest
from django.db import DatabaseError, transaction

from django_jobs.store.rows import NewJob
from tests.store.builders import columns

# What breaks a hand-written array literal, a JSON text, or the order of characters.
AWKWARD = [
    '"',
    "\\",
    "\\\\",
    "{}",
    "a,b",
    "NULL",
    "'",
    "é",
    "\N{PILE OF POO}",
    "a\nb",
    "\t",
    "%s %(x)s",
    ":name",
    "",
]


def test_a_new_job(store, clock):
    new = NewJob("tests.job", "mail", 7, 3, args="[1, 1e22]", kwargs='{"a": -0.0}', timeout=1.5, tags='["a"]')

    job = store.insert(new, now=clock.now)

    assert (job.name, job.queue_name, job.priority, job.state) == ("tests.job", "mail", 7, "available")
    assert (job.attempt, job.max_attempts, job.claims) == (0, 3, 0)
    assert (job.created_at, job.run_after) == (clock.now, clock.now)
    assert (job.attempted_at, job.finalized_at, job.cancel_requested_at, job.worker_id) == (None,) * 4
    assert (job.unique_key, job.holds_key, job.error_class, job.result) == (None, False, None, None)
    assert (job.tags, job.timeout, job.errors, job.metadata) == (["a"], 1.5, [], {})
    assert (repr(job.args), repr(job.kwargs)) == ("[1, 1e+22]", "{'a': -0.0}")
    assert store.get([job.id]) == [job]


@pytest.mark.parametrize("awkward", AWKWARD)
def test_a_usual_job_is_told_as_it_is_stored(store, shared, awkward):
    args = json.dumps([awkward, 2**70], ensure_ascii=False)

    for each in (store, shared):
        job = each.insert(NewJob("tests.job", "mail", -7, 3, args=args, kwargs='{"a": -0.0}'))

        assert (job.name, job.queue_name, job.priority, job.max_attempts) == ("tests.job", "mail", -7, 3)
        assert (job.state, job.run_after, job.args) == ("available", job.created_at, [awkward, 2**70])
        assert store.get([job.id]) == [job]
        assert shared.get([job.id]) == [job]


@pytest.mark.parametrize("many", [False, True], ids=["insert", "insert_many"])
@pytest.mark.parametrize(
    ("when", "state", "seconds"),
    [
        ({}, "available", 0),
        ({"delay": 0.0}, "available", 0),
        ({"delay": -5.0}, "available", -5),
        ({"delay": 0.25}, "scheduled", 0.25),
        ({"run_after": 0}, "available", 0),
        ({"run_after": -60}, "available", -60),
        ({"run_after": 0.000001}, "scheduled", 0.000001),
        ({"run_after": 86400}, "scheduled", 86400),
    ],
)
def test_time_decides_the_state(store, clock, many, when, state, seconds):
    if "run_after" in when:
        when = {"run_after": clock.after(when["run_after"])}
    new = NewJob("tests.job", **when)

    job = store.insert_many([new], now=clock.now)[0] if many else store.insert(new, now=clock.now)

    assert (job.state, job.run_after) == (state, clock.after(seconds))
    assert store.get([job.id]) == [job]


def test_many_come_back_in_the_order_given_with_ascending_ids(store, clock):
    new = [NewJob("tests.job", args=f"[{number}]") for number in range(3000)]

    jobs = store.insert_many(new, now=clock.now)

    ids = [job.id for job in jobs]
    assert ids == sorted(set(ids))
    assert [job.args for job in store.get(ids)] == [[number] for number in range(3000)]


def test_many_of_mixed_options_are_each_stored_as_given(store, clock):
    whens = [{}, {"run_after": clock.after(60)}, {"delay": 5.0}, {"run_after": clock.after(-1)}]
    extras = [
        {},
        {"tags": '["a", "b"]'},
        {"timeout": 2.5, "kwargs": '{"a": 1}'},
        {"pending": True},
        {"tags": "[]"},
    ]
    new = [
        NewJob(
            f"tests.job{index % 3}",
            f"q{index % 2}",
            priority=index % 7,
            max_attempts=1 + index % 2,
            args=f"[{index}]",
            **whens[index % 4],
            **extras[index % 5],
        )
        for index in range(200)
    ]

    jobs = store.insert_many(new, now=clock.now)

    assert jobs == store.get(job.id for job in jobs)
    for job, given in zip(jobs, new, strict=True):
        assert (job.name, job.queue_name, job.priority, job.max_attempts) == given[:4]
        assert (job.args, job.kwargs) == (json.loads(given.args), json.loads(given.kwargs))
        assert (job.tags, job.timeout) == (json.loads(given.tags or "[]"), given.timeout)
        assert job.run_after == (given.run_after or clock.after(given.delay or 0))
        due = "scheduled" if job.run_after > clock.now else "available"
        assert job.state == ("pending" if given.pending else due)


@pytest.mark.parametrize("many", [False, True], ids=["insert", "insert_many"])
def test_a_pending_job_waits_whatever_its_time(store, make, clock, many):
    new = [
        NewJob("tests.job", pending=True, **when)
        for when in ({}, {"delay": 5.0}, {"run_after": clock.after(-5)})
    ]

    jobs = (
        store.insert_many(new, now=clock.now) if many else [store.insert(each, now=clock.now) for each in new]
    )

    assert [job.state for job in jobs] == ["pending"] * 3
    assert jobs == store.get(job.id for job in jobs)
    assert store.promote(now=clock.advance(60)) == []
    assert store.next_due(now=clock.now) is None
    assert store.claim(make.worker(), "default", 10, now=clock.now) == []


@pytest.mark.parametrize("text", AWKWARD)
def test_any_text_comes_back_as_it_went_in(store, clock, text):
    new = NewJob(f"name{text}", f"queue{text}", args=json.dumps([text]), kwargs=json.dumps({text: text}))

    one = store.insert(new, now=clock.now)
    (first, second) = store.insert_many([new, NewJob("tests.job")], now=clock.now)

    for job in (one, first):
        assert (job.name, job.queue_name, job.args, job.kwargs) == (
            new.name,
            new.queue_name,
            [text],
            {text: text},
        )
        assert store.get([job.id]) == [job]
    assert second.name == "tests.job"


def test_nothing_to_insert(store):
    assert store.insert_many([]) == []


def test_an_insert_belongs_to_the_callers_transaction(shared, store, clock):
    with transaction.atomic():
        job = shared.insert(NewJob("tests.job"), now=clock.now)
        assert store.get([job.id]) == []

    assert [columns(each) for each in store.get([job.id])] == [columns(job)]


def test_a_rollback_takes_the_jobs_with_it(shared, store, clock):
    with transaction.atomic():
        jobs = [
            shared.insert(NewJob("tests.job"), now=clock.now),
            *shared.insert_many([NewJob("tests.job")] * 3),
        ]
        transaction.set_rollback(True)

    assert store.get(job.id for job in jobs) == []


def test_a_savepoint_takes_only_its_own_jobs_with_it(shared, store, clock):
    with transaction.atomic():
        kept = shared.insert(NewJob("tests.job"), now=clock.now)
        with transaction.atomic():
            dropped = shared.insert(NewJob("tests.job"), now=clock.now)
            transaction.set_rollback(True)
        later = shared.insert(NewJob("tests.job"), now=clock.now)

    assert [job.id for job in store.get([kept.id, dropped.id, later.id])] == [kept.id, later.id]


def test_a_refused_insert_is_djangos_error_and_leaves_the_outer_transaction_whole(shared, store, clock):
    with transaction.atomic():
        job = shared.insert(NewJob("tests.job"), now=clock.now)
        with pytest.raises(DatabaseError), transaction.atomic():
            shared.insert(NewJob("tests.job", priority=101), now=clock.now)

    assert [columns(each) for each in store.get([job.id])] == [columns(job)]


class TwoHoursAhead(dt.datetime):
    """The clock of a host that nobody has set."""

    @classmethod
    def now(cls, tz=None):
        return now(tz) + dt.timedelta(hours=2)


now = dt.datetime.now


def test_without_a_given_time_the_databases_own_is_used(store, monkeypatch):
    """PostgreSQL's, whatever this host's clock says; SQLite is on this host."""
    delayed = NewJob("tests.job", delay=60.0)
    with monkeypatch.context() as patched:
        patched.setattr(dt, "datetime", TwoHoursAhead)
        jobs = [store.insert(NewJob("tests.job")), store.insert(delayed)]
        jobs += store.insert_many([NewJob("tests.job"), delayed])
        jobs += store.insert_many([delayed._replace(unique_key="a", unique_for=60)])

    hours = {round((job.created_at - now(dt.UTC)) / dt.timedelta(hours=1)) for job in jobs}
    assert hours == {2 if store.vendor == "sqlite" else 0}
    assert [job.state for job in jobs] == ["available", "scheduled"] * 2 + ["scheduled"]
    assert jobs[0].created_at <= jobs[1].created_at
    assert {(job.run_after - job.created_at).total_seconds() for job in jobs if job.state == "scheduled"} == {
        60
    }
