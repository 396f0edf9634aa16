"""Whatever is enqueued is stored and comes back equal, or is refused before any SQL: so alike on both databases."""

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, strategies as st

from django_jobs import InvalidJob, enqueue_many, job, registry
from django_jobs.backoff import Exponential, Fixed, Linear, Polynomial
from django_jobs.models import Job
from tests.hostile.strategies import names, texts, values, wild
from tests.hostile.trying import longer

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def anything():
    """A job function that takes any arguments."""
    made = job(name="tests.hostile.anything")(lambda first=None, *args, **kwargs: None)
    yield made
    registry.remove(made)


def tried(enqueue: Callable[[], Any]) -> list[Any]:
    """What was enqueued, or nothing where it was refused: before any SQL, and the transaction goes on."""
    with CaptureQueriesContext(connection) as queries:
        try:
            found = enqueue()
            refusal = ""
        except InvalidJob as error:
            found, refusal = [], str(error)
    if refusal:
        refusal.encode()  # it can be written anywhere
        assert len(refusal) < 2000, "it can be read"
        assert not queries, "it was refused by Python, not by a database"
    assert not connection.needs_rollback
    ids = {row.id for row in found}
    assert Job.objects.filter(pk__in=ids).count() == len(ids)
    return found


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types all the way down: 1 is no True, 1.0 no 1, and -0.0 not 0.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return isinstance(other, type(one)) and isinstance(one, bool) == isinstance(other, bool) and one == other


@longer(80)
@given(args=st.lists(values, max_size=3), kwargs=st.dictionaries(texts, values, max_size=3))
def test_any_arguments(anything, args, kwargs):
    for row in tried(lambda: [anything.enqueue(*args, **kwargs)]):
        read = Job.objects.get(pk=row.id)
        assert same([read.args, read.kwargs], [args, kwargs])
        assert same([row.args, row.kwargs], [args, kwargs])


@longer(40)
@given(
    calls=st.lists(
        st.one_of(st.lists(values, max_size=2), st.dictionaries(texts, values, max_size=2), wild), max_size=4
    )
)
def test_any_list_of_calls(anything, calls):
    for row, call in zip(tried(lambda: anything.enqueue_many(calls)), calls, strict=False):
        args, kwargs = ([], call) if isinstance(call, dict) else (list(call), {})
        assert same([row.args, row.kwargs], [args, kwargs])


moments = st.one_of(
    st.datetimes(
        timezones=st.one_of(
            st.none(),
            st.timezones(),
            st.just(dt.UTC),
            st.builds(dt.timezone, st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23))),
        )
    ),
    st.timedeltas(),
    st.sampled_from(
        [
            dt.datetime.max,  # noqa: DTZ901 - without a zone, on purpose
            dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))),
            dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-14))),
            dt.timedelta.max,
            dt.timedelta.min,
        ]
    ),
)
numbers = st.one_of(
    st.integers(),
    st.integers(-200, 200),
    st.floats(),
    st.booleans(),
    st.sampled_from([2**15, 2**31, 2**63, 2**64, 10**400, -(10**400)]),
)
spans = st.one_of(
    st.timedeltas(), st.integers(0, 10**7).map(lambda seconds: dt.timedelta(seconds=seconds)), numbers
)
policies = st.one_of(
    spans,
    st.lists(spans, max_size=4),
    st.builds(
        lambda kind, number, jitter: kind(number, jitter=jitter),
        st.sampled_from([Fixed, Linear, Exponential, Polynomial]),
        st.floats(0, 1000),
        st.floats(0, 1),
    ),
)
OPTIONS = {
    "queue_name": names,
    "priority": numbers,
    "max_attempts": numbers,
    "run_after": moments,
    "using": st.one_of(st.just("default"), texts),
    "unique": st.one_of(
        st.booleans(),
        texts,
        st.sampled_from(["{first}", "{first.x}", "{first!r:>300}", "{args[0]}", "{", "{{}}", "{kwargs[a]}"]),
    ),
    "unique_key": names,
    "unique_for": spans,
    "on_duplicate": st.one_of(st.sampled_from(["return", "replace"]), texts),
    "pending": st.booleans(),
    "tags": st.one_of(st.lists(texts, max_size=25), texts),
    "timeout": spans,
    "backoff": policies,
}


@longer(100)
@given(
    options=st.fixed_dictionaries(
        {}, optional={name: st.one_of(kind, kind, kind, wild) for name, kind in OPTIONS.items()}
    ),
    args=st.lists(values, max_size=1),
)
def test_any_options(anything, options, args):
    tried(lambda: [anything.using(**options).enqueue(*args)])
    tried(lambda: anything.using(**options).enqueue_many([args, args]))
    tried(lambda: enqueue_many([anything.using(**options).prepare(*args), anything.prepare()]))


@longer(60)
@given(option=st.sampled_from(sorted(OPTIONS)), data=st.data())
def test_any_value_of_one_option(anything, option, data):
    """Alone, so that others don't have it refused first."""
    value = data.draw(OPTIONS[option])
    tried(lambda: [anything.using(**{option: value}).enqueue()])


@longer(40)
@given(name=st.one_of(names, wild))
def test_any_name_of_a_job_function(name):
    made = None
    try:
        made = job(name=name)(lambda: None)
    except InvalidJob as refused:
        str(refused).encode()
        return
    try:
        (row,) = tried(lambda: [made.enqueue()])
        assert Job.objects.get(pk=row.id).name == made.name
    finally:
        registry.remove(made)
