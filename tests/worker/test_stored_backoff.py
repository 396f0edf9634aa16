"""A backoff of one job's own: what using() takes, what the row carries, and which one counts after a failure."""

import datetime as dt
import json
import logging
import math

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_jobs import InvalidJob, Retry, current_job, enqueue_many, registry
from django_jobs.backoff import Exponential, Fixed, Linear, Polynomial
from django_jobs.models import Job
from django_jobs.serialization import NotStorable
from django_jobs.store import django_store
from django_jobs.store.rows import ATTEMPT
from django_jobs.stored_backoff import KEY
from django_jobs.testing import run_jobs
from django_jobs.worker.attempt import Runner
from django_jobs.worker.signs import Signs

pytestmark = pytest.mark.django_db


class Doubling(Exponential):
    """A site's own policy."""


def after(attempt, exception, job):
    return 5


def fail():
    raise ValueError("no")


@pytest.fixture
def failing(define):
    """A job function that fails; its own backoff is 7 seconds."""
    return define(fail, name="tests.failing", backoff=7)


def delays(job, *attempts):
    """How long the job, as its row tells it, waits after each of these attempts."""
    (row,) = django_store("default").get([job.id])
    runner = Runner(registry, Signs(), ())
    waits = []
    for attempt in attempts:
        values = list(row.values)
        values[ATTEMPT] = attempt
        waits.append(runner.run(type(row)(tuple(values))).outcome.delay)
    return waits


# -- what counts after a failure --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (30, [30, 30, 30]),
        (0, [0, 0, 0]),
        (dt.timedelta(minutes=1), [60, 60, 60]),
        ([1, 2.5, dt.timedelta(hours=1)], [1, 2.5, 3600]),
        (range(3, 5), [3, 4, 4]),
        (Fixed(15), [15, 15, 15]),
        (Linear(step=20, jitter=0), [20, 40, 60]),
        (Exponential(base=2, factor=3, jitter=0, cap=10), [2, 6, 10]),
        (Polynomial(exponent=2, jitter=0), [1, 4, 9]),
        (Linear(dt.timedelta(minutes=1), jitter=0), [60, 120, 180]),
    ],
    ids=repr,
)
def test_the_jobs_own_counts(failing, backoff, expected):
    job = failing.using(backoff=backoff).enqueue()

    assert delays(job, 1, 2, 3) == expected


def test_one_that_has_none_has_its_functions_and_carries_nothing(failing):
    failing.using(backoff=30)
    job = failing.using(priority=3).enqueue()

    assert delays(job, 1, 2) == [7, 7]
    assert Job.objects.get(pk=job.id).metadata is None


def test_it_holds_for_a_retry_that_names_no_delay(define):
    def again():
        raise Retry

    assert delays(define(again, backoff=7).using(backoff=30).enqueue(), 1) == [30]


def test_another_option_leaves_it_and_another_backoff_replaces_it(failing):
    slow = failing.using(backoff=30)

    assert delays(slow.using(priority=3).enqueue(), 1) == [30]
    assert delays(slow.using(backoff=[40]).enqueue(), 1) == [40]


def test_when_it_is_run(failing):
    job = failing.using(backoff=[7200]).enqueue()
    run_jobs()
    job.refresh()

    assert (job.state, job.attempt) == ("scheduled", 1)
    assert job.run_after - job.attempted_at >= dt.timedelta(hours=2)


# -- how it gets there ------------------------------------------------------------------------------------------------


def test_the_insert_carries_it(failing):
    with CaptureQueriesContext(connection) as queries:
        job = failing.using(backoff=[1, 60]).enqueue()

    assert len(queries) == 1
    assert job.metadata == Job.objects.get(pk=job.id).metadata == {KEY: [1, 60]}


@pytest.mark.parametrize("options", [{}, {"unique_key": "k"}, {"unique": True, "tags": ["a"], "timeout": 5}])
def test_every_way_to_enqueue(failing, options):
    one = failing.using(backoff=30, **options)
    jobs = [one.enqueue(), *failing.using(backoff=[40]).enqueue_many([(), ()]), failing.enqueue()]
    jobs += enqueue_many([failing.using(backoff=Fixed(50)).prepare(), failing.prepare()])

    assert [delays(job, 1) for job in jobs] == [[30], [40], [40], [7], [50], [7]]


def test_what_else_the_metadata_gets_leaves_it(failing):
    job = failing.using(backoff=30).enqueue()
    store = django_store("default")
    worker = store.register_worker("host", 1, "[]", 1, "1", 300.0)
    (claimed,) = store.claim(worker.id, "default", 1)

    store.merge_metadata([(claimed.id, claimed.claims, '{"progress": 1}')], 1000)

    assert Job.objects.get(pk=job.id).metadata == {KEY: 30, "progress": 1}
    assert delays(job, 1) == [30]


def test_a_handler_can_not_write_over_it(define):
    refusals = []

    def merge(later):
        try:
            current_job().merge_metadata({"a": 1, KEY: 5}, later=later)
        except NotStorable as refusal:
            refusals.append(str(refusal))

    jobs = define(merge).using(backoff=30).enqueue_many([(False,), (True,)])
    run_jobs()

    assert [Job.objects.get(pk=job.id).metadata for job in jobs] == [{KEY: 30}] * 2
    assert len(refusals) == 2
    assert refusals[0] == (
        "the metadata has the key 'django_jobs.backoff', under which a job carries the backoff that it was enqueued "
        "with; use another key"
    )


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backoff", [after, lambda *_: 5, Doubling()], ids=["function", "lambda", "subclass"])
def test_what_has_to_be_called_is_the_functions(failing, backoff):
    with pytest.raises(InvalidJob) as refusal:
        failing.using(backoff=backoff)

    assert str(refusal.value).startswith(f"backoff of tests.failing is {str(backoff)[:8]}")
    assert str(refusal.value).endswith(
        "which can't be written into a job's row. Give using() seconds, a timedelta, a sequence of those, or a policy "
        "of django_jobs.backoff; a callable of your own goes on the function: @job(backoff=...)."
    )


@pytest.mark.parametrize(
    ("backoff", "message"),
    [
        (-1, "backoff of tests.failing: backoff has the negative delay -1."),
        (math.nan, "backoff of tests.failing: a delay must be finite"),
        (100_000, "backoff of tests.failing: backoff has the delay 100000; the longest is a day"),
        ([], "backoff of tests.failing: backoff is an empty sequence"),
        ([1, "2"], "backoff of tests.failing: a delay is a number of seconds or a timedelta, not str"),
        ("60", "backoff of tests.failing: backoff is '60'; it must be seconds"),
        (True, "backoff of tests.failing: backoff is True; it must be seconds"),
        (Linear, "backoff of tests.failing: backoff is the class Linear; make an instance"),
        ({KEY: 5}, "backoff of tests.failing: backoff is {'django_jobs.backoff': 5}; it must be seconds"),
        ([1] * 101, "backoff of tests.failing has 101 delays, and a job's row takes 100 at most"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_wrong_ones_are_refused_where_they_are_said(failing, backoff, message):
    with CaptureQueriesContext(connection) as queries, pytest.raises(InvalidJob) as refusal:
        failing.using(backoff=backoff)

    assert str(refusal.value).startswith(message)
    assert len(queries) == 0


# -- what somebody's SQL, or other code, has written ------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        None,
        -5,
        10**400,
        "30",
        True,
        [],
        [None],
        {},
        {"policy": "Cubic"},
        {"policy": ["Fixed"]},
        {"policy": "Fixed", "delay": -1},
        {"policy": "Fixed", "delay": 1, "more": 1},
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_a_broken_one_falls_back_to_the_functions_and_is_logged(failing, value, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("django_jobs"), "propagate", True)
    job = failing.enqueue()
    Job.objects.filter(pk=job.id).update(metadata={KEY: value})

    assert delays(job, 1) == [7]
    (message,) = [record.getMessage() for record in caplog.records if record.name == "django_jobs.backoff"]
    assert message.startswith(
        f"The backoff that job {job.id} carries can't be read, and its function's is used: "
    )


@pytest.mark.parametrize("metadata", [[], "text", 5, {}, {"progress": 1}, [KEY]], ids=json.dumps)
def test_metadata_without_one_is_no_fault(failing, metadata, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("django_jobs"), "propagate", True)
    job = failing.enqueue()
    Job.objects.filter(pk=job.id).update(metadata=metadata)

    assert delays(job, 1) == [7]
    assert not [record for record in caplog.records if record.name == "django_jobs.backoff"]
