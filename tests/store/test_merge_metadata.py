"""Merging into a running job's metadata: by top-level keys, fenced, and no number changed."""

import json

import pytest
from django.db import transaction

from django_jobs.models import Job
from django_jobs.store.outcomes import RETRY
from tests.store.builders import in_threads, outcome, write


@pytest.fixture
def merge(store, make):
    """Merge a patch into a job's metadata; what it has then, or None when nothing was stored."""

    def merge(job, patch, on=store):
        text = patch if isinstance(patch, str) else json.dumps(patch)
        merged = on.merge_metadata([(job.id, job.claims, text)])
        assert all(done for _, done in merged)
        return merged[0].job.metadata if merged else None

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

    merged = store.merge_metadata(
        [(job.id, job.claims, json.dumps({"id": job.id})) for job in reversed(jobs)]
    )

    assert store.session.statements - before == 1
    assert [row.metadata for row, _ in merged] == [{"id": job.id} for job in jobs]


def test_another_claim_s_job_is_not_touched_nor_one_that_is_over_or_gone(store, merge, make, clock):
    worker = make.worker()
    old, done, gone, mine = make.claimed(worker, count=4)
    store.finish([outcome(old, RETRY, delay=0.0), outcome(done)], now=clock.now)
    (again,) = store.claim(worker, "default", 1, now=clock.now)
    Job.objects.filter(pk=gone.id).delete()

    merged = store.merge_metadata([(job.id, job.claims, '{"a":1}') for job in (old, done, gone, mine)])

    assert [(row.id, fits) for row, fits in merged] == [(mine.id, True)]
    assert make.again(again).metadata == make.again(done).metadata == {}


def size(metadata):
    return len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    "value", ["x" * 50, '日本 \u2028\n\x01\x7f"\\', [1.5, {"deep": None}], 2**70], ids=repr
)
@pytest.mark.parametrize("key", ["b", '日"\\\n'])
def test_what_all_would_have_is_counted_to_the_byte(store, make, key, value):
    fits, small = make.claimed(make.worker(), count=2)
    before = {"a": "é", key: "what is replaced does not count" * 10}
    after = {"a": "é", key: value}
    texts = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in (before, {key: value})]

    for job, most in ((fits, size(after)), (small, size(after) - 1)):
        store.merge_metadata([(job.id, job.claims, texts[0])])
        ((row, done),) = store.merge_metadata([(job.id, job.claims, texts[1])], most)
        expected = after if job is fits else before
        assert (done, row.metadata, make.again(job).metadata) == (job is fits, expected, expected)


def test_one_that_is_too_much_harms_none_beside_it(store, make):
    jobs = make.claimed(make.worker(), count=3)
    patches = [
        (job.id, job.claims, text) for job, text in zip(jobs, ['{"a":1}', '{"a":12345}', "{}"], strict=True)
    ]
    before = store.session.statements

    merged = store.merge_metadata(patches, 8)

    assert store.session.statements - before == 1
    assert [(row.metadata, done) for row, done in merged] == [({"a": 1}, True), ({}, False), ({}, True)]


def test_two_at_once_do_not_exceed_it_together(open_store, make):
    job = make.running(make.worker())
    stores = [open_store() for _ in range(4)]
    most = size({f"key {number}": "x" * 100 for number in range(2)})

    def merge(number):
        return (
            stores[number]
            .merge_metadata([(job.id, job.claims, json.dumps({f"key {number}": "x" * 100}))], most)[0]
            .done
        )

    done = in_threads(*[lambda number=number: merge(number) for number in range(4)])

    assert sorted(done) == [False, False, True, True]
    assert len(make.again(job).metadata) == 2


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
