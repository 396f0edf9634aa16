"""Merging into a running job's metadata: by top-level keys, fenced, and no number changed."""

import json

import pytest
from django.db import transaction

from django_jobs.models import Job
from django_jobs.store.base import RETRY
from tests.store.builders import in_threads, outcome, write


@pytest.fixture
def merge(store, make):
    """Merge a patch into a job's metadata; what it has then, or None when nothing was stored."""

    def merge(job, patch, on=store):
        text = patch if isinstance(patch, str) else json.dumps(patch)
        rows = on.merge_metadata([(job.id, job.claims, text)])
        return rows[0].metadata if rows else None

    return merge


@pytest.fixture
def job(make):
    return make.running(make.worker())


def test_keys_are_added_and_replaced_and_the_others_stay(merge, job, make):
    assert merge(job, {"a": 1, "b": {"deep": 1}}) == {"a": 1, "b": {"deep": 1}}
    assert merge(job, {"b": {"other": None}, "c": [1]}) == {"a": 1, "b": {"other": None}, "c": [1]}
    assert list(make.again(job).metadata) == ["a", "b", "c"]


def test_null_is_a_value(merge, job):
    merge(job, {"a": 1})

    assert merge(job, {"a": None}) == {"a": None}


def test_nothing_merged_into_nothing(merge, job):
    assert merge(job, {}) == {}


VALUES = [
    1e22,
    2**70,
    -0.0,
    0.1 + 0.2,
    1e-300,
    123456789.123456789,
    True,
    "日本 \u2028",
    'a "quoted" \\ one',
    [[]],
    {},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_what_is_merged_and_what_was_there_comes_back_equal(merge, job, value):
    merge(job, {"before": value})
    metadata = merge(job, {"after": value})

    assert repr(metadata) == repr({"before": value, "after": value})


@pytest.mark.parametrize("key", ["", 'a"b', "a\\b", "a.b", "$", "[0]", "日本", "a'b", "{", "%s", ":now"])
def test_any_key_will_do(merge, job, key):
    merge(job, {key: 1, "other": 1})

    assert merge(job, {key: 2}) == {"other": 1, key: 2}


@pytest.mark.parametrize("before", ["null", "5", "[1]", '"text"'])
def test_what_is_no_object_counts_as_an_empty_one(merge, job, before):
    write(job, "metadata", before)

    assert merge(job, {"a": 1}) == {"a": 1}


@pytest.mark.sqlite
def test_what_is_no_json_counts_as_an_empty_one(merge, job):
    write(job, "metadata", "{no json")

    assert merge(job, {"a": 1}) == {"a": 1}


def test_many_in_one_statement_each_its_own(store, make):
    jobs = make.claimed(make.worker(), count=50)
    before = store.session.statements

    rows = store.merge_metadata([(job.id, job.claims, json.dumps({"id": job.id})) for job in reversed(jobs)])

    assert store.session.statements - before == 1
    assert [row.metadata for row in rows] == [{"id": job.id} for job in jobs]


def test_another_claim_s_job_is_not_touched_nor_one_that_is_over_or_gone(store, merge, make, clock):
    worker = make.worker()
    old, done, gone, mine = make.claimed(worker, count=4)
    store.finish([outcome(old, RETRY, delay=0.0), outcome(done)], now=clock.now)
    (again,) = store.claim(worker, "default", 1, now=clock.now)
    Job.objects.filter(pk=gone.id).delete()

    rows = store.merge_metadata([(job.id, job.claims, '{"a":1}') for job in (old, done, gone, mine)])

    assert [row.id for row in rows] == [mine.id]
    assert make.again(again).metadata == make.again(done).metadata == {}


def test_on_djangos_connection_it_is_in_the_callers_transaction(shared, merge, job, make):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        assert merge(job, {"a": 1}, on=shared) == {"a": 1}
        raise ZeroDivisionError

    assert make.again(job).metadata == {}


def test_two_at_once_lose_nothing(open_store, make):
    job = make.running(make.worker())
    stores = [open_store() for _ in range(4)]

    def merge(number):
        for count in range(10):
            assert stores[number].merge_metadata(
                [(job.id, job.claims, json.dumps({f"{number}.{count}": count}))]
            )

    in_threads(*[lambda number=number: merge(number) for number in range(4)])

    assert len(make.again(job).metadata) == 40


def test_cancel_requests_are_those_of_the_worker_that_run(store, make, clock):
    worker, other = make.worker(), make.worker()
    mine, left, done = make.claimed(worker, count=3)
    theirs = make.running(other)
    store.cancel([mine.id, done.id, theirs.id], now=clock.now)
    store.finish([outcome(done)], now=clock.now)

    assert store.cancel_requests(worker) == {mine.id}
    assert store.cancel_requests(other) == {theirs.id}
    assert store.cancel_requests(other + 1) == frozenset()
    assert left.id not in store.cancel_requests(worker)
