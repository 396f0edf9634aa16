"""Enqueueing: what is stored, in which statement, and in the caller's transaction."""

import datetime as dt
import math
import sys
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.db import DatabaseError, connections, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings, strategies as st

from django_jobs import InvalidArguments, InvalidJob, aenqueue_many, enqueue_many, enqueueing, job
from django_jobs.enqueueing import Prepared
from django_jobs.models import Job
from django_jobs.store import django_store
from django_jobs.store.rows import NewJob

pytestmark = pytest.mark.django_db


@job
def send(user_id=0, text="", *more, **named): ...


@job(queue_name="reports", priority=7, max_attempts=2)
def report(year): ...


# Options that no column, no enum's way of writing itself, and no range allows; what the error says.
NOT_ALLOWED = [
    ({"queue_name": ""}, "queue_name of {name} is ''; it must be a string that is not empty."),
    ({"queue_name": 5}, "queue_name of {name} is 5; it must be a string that is not empty."),
    ({"queue_name": "q" * 101}, "queue_name of {name} has 101 characters, over the limit of 100: "),
    (
        {"queue_name": "a\0"},
        "queue_name of {name} has a NUL character at position 1, which a database's text can't",
    ),
    (
        {"queue_name": "\ud800"},
        "queue_name of {name} has a lone surrogate (U+D800) at position 0, which is not text.",
    ),
    (
        {"queue_name": "a,b"},
        "queue_name='a,b' of {name} can't be written in runjobs --queues: leave out commas, ",
    ),
    (
        {"priority": 101},
        "priority of {name} is 101; it must be a whole number from -100 to 100; higher runs first.",
    ),
    ({"priority": -101}, "priority of {name} is -101; it must be a whole number from -100 to 100"),
    ({"priority": 1.0}, "priority of {name} is 1.0; it must be a whole number"),
    ({"priority": True}, "priority of {name} is True; it must be a whole number"),
    ({"max_attempts": 0}, "max_attempts of {name} is 0; it must be a whole number from 1 to 32767."),
    ({"max_attempts": 32_768}, "max_attempts of {name} is 32768; it must be a whole number from 1 to 32767."),
    (
        {"run_after": 60},
        "run_after of {name} is 60, of type int; it must be an aware datetime or a timedelta from",
    ),
    (
        {"run_after": dt.datetime(2031, 1, 1)},
        "run_after=datetime.datetime(2031, 1, 1, 0, 0) of {name} has no time zo",
    ),
    (
        {"run_after": dt.datetime(1969, 1, 1, tzinfo=dt.UTC)},
        "run_after=datetime.datetime(1969, 1, 1, 0, 0, tzinfo=",
    ),
    (
        {"run_after": dt.timedelta(days=40_000)},
        "run_after=datetime.timedelta(days=40000) of {name} is more than a hu",
    ),
    ({"using": "nowhere"}, "using='nowhere' of {name} is no database; DATABASES has default."),
]


class TestEnqueue:
    def test_stores_the_job(self):
        before = timezone.now()

        row = report.enqueue(2031)

        stored = Job.objects.get()
        assert row.id == stored.pk
        assert (stored.name, stored.queue_name, stored.priority) == (report.name, "reports", 7)
        assert (stored.args, stored.kwargs) == ([2031], {})
        assert (stored.state, stored.attempt, stored.max_attempts, stored.claims) == ("available", 0, 2, 0)
        assert stored.run_after == stored.created_at == row.created_at
        assert abs(stored.created_at - before) < dt.timedelta(minutes=1)
        assert (stored.attempted_at, stored.finalized_at, stored.worker_id) == (None, None, None)

    def test_returns_the_job_as_stored(self):
        row = send.enqueue(1, text="two")

        assert (row.args, row.kwargs, row.state) == ([1], {"text": "two"}, "available")
        assert django_store("default").get([row.id]) == [row]

    def test_positional_arguments_stay_positional(self):
        assert send.enqueue(1, "two", 3, 4).args == [1, "two", 3, 4]

    def test_takes_the_setting_when_the_function_says_nothing(self, settings):
        settings.DJANGO_JOBS = {"MAX_ATTEMPTS": 9}

        assert send.enqueue().max_attempts == 9
        assert report.enqueue(1).max_attempts == 2

    def test_from_async_code(self):
        row = async_to_sync(send.aenqueue)(1, text="two")

        assert (row.args, row.kwargs) == ([1], {"text": "two"})
        assert Job.objects.get().pk == row.id

    def test_with_other_options(self):
        row = send.using(queue_name="mail", priority=-100, max_attempts=32_767, using="default").enqueue(1)

        assert (row.queue_name, row.priority, row.max_attempts) == ("mail", -100, 32_767)

    def test_names_of_the_greatest_length(self):
        long = job(name="é" * 200)(lambda: None)

        row = long.using(queue_name="😀" * 100).enqueue()

        stored = Job.objects.get(pk=row.id)
        assert (stored.name, stored.queue_name) == ("é" * 200, "😀" * 100)

    @pytest.mark.parametrize(("options", "message"), NOT_ALLOWED)
    def test_options_that_are_not_allowed(self, options, message, django_assert_num_queries):
        with django_assert_num_queries(0), pytest.raises(InvalidJob) as refusal:
            send.using(**options).enqueue(1)
        assert str(refusal.value).startswith(message.format(name=send.name))

    @pytest.mark.parametrize(
        "value",
        [
            "\0",
            "\ud800",
            math.nan,
            math.inf,
            {1: 2},
            {1},
            (1, 2),
            b"x",
            timezone.now(),
            "x" * 1_000_001,
            [[10**4300]],
        ],
        ids=[
            "NUL",
            "surrogate",
            "NaN",
            "infinity",
            "int key",
            "set",
            "tuple",
            "bytes",
            "datetime",
            "1 MB",
            "4301 digits",
        ],
    )
    def test_arguments_that_are_not_allowed(self, value, django_assert_num_queries):
        named = r"^tests\.test_enqueueing\.send: .*argument '{}'"
        with django_assert_num_queries(0):
            for enqueue in (send.enqueue, send.prepare, async_to_sync(send.aenqueue)):
                with pytest.raises(InvalidArguments, match=named.format("user_id")):
                    enqueue(value)
                with pytest.raises(InvalidArguments, match=named.format("text")):
                    enqueue(text=value)
        assert not Job.objects.exists()

    def test_arguments_that_do_not_fit(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            with pytest.raises(
                InvalidArguments, match=r"report: missing a required argument: 'year'.*\(year\)$"
            ):
                report.enqueue()  # type: ignore[call-arg]
            with pytest.raises(InvalidArguments, match=r"report: too many positional arguments"):
                report.enqueue(1, 2)  # type: ignore[call-arg]

    def test_the_size_limit_is_a_setting(self, settings):
        settings.DJANGO_JOBS = {"MAX_ARGUMENT_BYTES": 20}

        send.enqueue("x" * 14)
        with pytest.raises(
            InvalidArguments, match=r"are 21 bytes as JSON, over the limit of 20 .*MAX_ARGUMENT_BYTES"
        ):
            send.enqueue("x" * 15)

    def test_as_much_as_the_limit_allows(self):
        text = "ä" * 499_997

        assert len(Job.objects.get(pk=send.enqueue(text).id).args[0]) == 499_997


class TestRunAfter:
    def test_a_timedelta_is_from_now(self):
        row = send.using(run_after=dt.timedelta(minutes=5)).enqueue()

        assert row.state == "scheduled"
        assert row.run_after - row.created_at == dt.timedelta(minutes=5)
        assert Job.objects.get().run_after == row.run_after

    def test_a_timedelta_counts_from_each_enqueue(self):
        later = send.using(run_after=dt.timedelta(hours=1))

        first, second = later.enqueue(), later.enqueue()

        assert (
            first.run_after - first.created_at
            == second.run_after - second.created_at
            == dt.timedelta(hours=1)
        )

    def test_an_aware_datetime(self):
        moment = dt.datetime(
            2500, 6, 1, 12, 30, 15, 123456, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=45))
        )

        row = send.using(run_after=moment).enqueue()

        assert (row.state, row.run_after) == ("scheduled", moment)
        assert Job.objects.get().run_after == moment

    @pytest.mark.parametrize(
        "run_after", [dt.timedelta(), dt.timedelta(seconds=-5), dt.datetime(2001, 1, 1, tzinfo=dt.UTC)]
    )
    def test_a_time_that_has_come(self, run_after):
        assert send.using(run_after=run_after).enqueue().state == "available"

    @pytest.mark.parametrize(
        "run_after",
        [
            dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
            dt.datetime(9000, 1, 1, tzinfo=dt.UTC),
            dt.timedelta(days=36_600),
            dt.timedelta(days=-36_600),
        ],
    )
    def test_the_bounds_can_be_stored(self, run_after):
        row = send.using(run_after=run_after).enqueue()

        moment = run_after if isinstance(run_after, dt.datetime) else row.created_at + run_after
        assert Job.objects.get().run_after == row.run_after == moment

    def test_a_naive_datetime_where_the_site_has_no_time_zones(self, settings):
        settings.USE_TZ = False
        settings.TIME_ZONE = "Europe/Berlin"

        row = send.using(run_after=dt.datetime(2031, 7, 1, 12)).enqueue()

        assert row.run_after == dt.datetime(2031, 7, 1, 10, tzinfo=dt.UTC)

    def test_of_many(self):
        rows = send.using(run_after=dt.timedelta(minutes=5)).enqueue_many([(1,), (2,)])

        assert {(row.state, row.run_after - row.created_at) for row in rows} == {
            ("scheduled", dt.timedelta(minutes=5))
        }


class TestEnqueueMany:
    def test_returns_the_jobs_in_the_order_given(self):
        rows = send.enqueue_many([(1, "a"), [2], {"text": "c"}, (), {}])

        assert [(row.args, row.kwargs) for row in rows] == [
            ([1, "a"], {}),
            ([2], {}),
            ([], {"text": "c"}),
            ([], {}),
            ([], {}),
        ]
        assert [row.id for row in rows] == sorted({row.id for row in rows})
        assert django_store("default").get([row.id for row in rows]) == rows

    def test_of_an_iterator(self):
        assert [row.args for row in send.enqueue_many((number,) for number in range(3))] == [[0], [1], [2]]

    def test_of_nothing(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert send.enqueue_many([]) == enqueue_many([]) == []

    def test_from_async_code(self):
        assert [row.args for row in async_to_sync(send.aenqueue_many)([(1,), (2,)])] == [[1], [2]]
        assert [row.args for row in async_to_sync(aenqueue_many)([send.prepare(3)])] == [[3]]

    def test_with_other_options(self):
        (row,) = send.using(queue_name="mail", priority=5, max_attempts=3).enqueue_many([(1,)])

        assert (row.queue_name, row.priority, row.max_attempts) == ("mail", 5, 3)

    def test_mixed_jobs(self):
        rows = enqueue_many(
            [
                report.prepare(2031),
                send.using(priority=1).prepare(1, text="two"),
                send.using(run_after=dt.timedelta(hours=1)).prepare(),
                report.prepare(year=2032),
            ]
        )

        assert [
            (row.name, row.queue_name, row.priority, row.args, row.kwargs, row.state) for row in rows
        ] == [
            (report.name, "reports", 7, [2031], {}, "available"),
            (send.name, "default", 1, [1], {"text": "two"}, "available"),
            (send.name, "default", 0, [], {}, "scheduled"),
            (report.name, "reports", 7, [], {"year": 2032}, "available"),
        ]
        assert django_store("default").get([row.id for row in rows]) == rows

    @pytest.mark.parametrize(
        ("calls", "message"),
        [
            ([(1,), (set(),)], "call 1: argument 'user_id' is of type set"),
            ([(1,)] * 5000 + [{"text": "\0"}], "call 5000: argument 'text' has a NUL character"),
            (
                [5],
                "call 0 is 5; it must be a tuple or list of positional arguments, or a dict of keyword arguments.",
            ),
            (["ab"], "call 0 is 'ab'; it must be a tuple"),
            ("ab", "call 0 is 'a'; it must be a tuple"),
            ({"text": 1}, "call 0 is 'text'; it must be a tuple"),
            ([None], "call 0 is None; it must be a tuple"),
            ([{1: 2}], "call 0: keywords must be strings"),
            ([{"user_id": 1}, "x" * 1000], f"call 1 is 'xxx{'x' * 93}...; it must be a tuple"),
        ],
    )
    def test_a_call_that_is_not_allowed(self, calls, message, django_assert_num_queries):
        with django_assert_num_queries(0), pytest.raises(InvalidArguments) as refusal:
            send.enqueue_many(calls)
        assert str(refusal.value).startswith(f"{send.name}.enqueue_many(): {message}")
        assert not Job.objects.exists()

    @pytest.mark.parametrize("wrong", [send, (1,), None])
    def test_what_was_not_prepared(self, wrong, django_assert_num_queries):
        with (
            django_assert_num_queries(0),
            pytest.raises(InvalidJob, match=r"got .* at position 1; pass what some_job"),
        ):
            enqueue_many([send.prepare(1), wrong])

    def test_jobs_of_two_databases(self, monkeypatch, django_assert_num_queries):
        monkeypatch.setitem(connections.settings, "other", connections.settings["default"])
        with (
            django_assert_num_queries(0),
            pytest.raises(InvalidJob, match=r"for the databases default, other; all or"),
        ):
            enqueue_many([send.prepare(1), Prepared(NewJob(send.name), "other")])


class TestStatements:
    def test_one_job_is_one_statement_the_wake_up_included(self, database_name):
        with CaptureQueriesContext(connections["default"]) as captured:
            send.enqueue(1)

        (query,) = captured.captured_queries
        assert query["sql"].startswith("INSERT INTO django_jobs_job")
        assert ("pg_notify" in query["sql"]) == (database_name == "postgresql")

    @pytest.mark.parametrize("count", [1, 2, 5000])
    def test_up_to_5000_jobs_are_one_statement(self, count, database_name):
        with CaptureQueriesContext(connections["default"]) as captured:
            rows = send.enqueue_many([(number,) for number in range(count)])

        (query,) = captured.captured_queries
        assert ("pg_notify" in query["sql"]) == (database_name == "postgresql")
        assert [row.args for row in rows] == [[number] for number in range(count)]
        assert Job.objects.count() == count

    def test_mixed_jobs_are_one_statement(self, django_assert_num_queries):
        with django_assert_num_queries(1):
            enqueue_many([send.prepare(1), report.prepare(2), send.using(queue_name="mail").prepare(3)])

    def test_more_are_one_for_each_5000_in_a_transaction(self, django_assert_num_queries):
        with django_assert_num_queries(5):  # SAVEPOINT, three times INSERT, RELEASE
            rows = send.enqueue_many([(number,) for number in range(10_001)])

        assert [row.args[0] for row in rows] == list(range(10_001))
        assert [row.id for row in rows] == sorted({row.id for row in rows})
        assert Job.objects.count() == 10_001

    def test_large_arguments_are_fewer_to_a_statement(self, monkeypatch, django_assert_num_queries):
        monkeypatch.setattr(enqueueing, "CHUNK_CHARACTERS", 1000)
        sizes = [400, 400, 400, 5000, 10, 10]  # 2, 1, 1 and 2 jobs

        with django_assert_num_queries(6):
            rows = send.enqueue_many([("x" * size,) for size in sizes])

        assert [len(row.args[0]) for row in rows] == sizes


class TestTransaction:
    def test_the_job_exists_if_and_only_if_the_transaction_commits(self):
        with transaction.atomic():
            send.enqueue(1)
            send.enqueue_many([(2,), (3,)])
            assert Job.objects.count() == 3
            transaction.set_rollback(True)
        assert Job.objects.count() == 0

        with transaction.atomic():
            send.enqueue(1)
        assert Job.objects.count() == 1

    def test_a_savepoint_that_is_rolled_back_takes_its_jobs_along(self):
        with transaction.atomic():
            send.enqueue(1)
            with transaction.atomic():
                send.enqueue(2)
                transaction.set_rollback(True)
            send.enqueue(3)

        assert [row.args for row in Job.objects.order_by("pk")] == [[1], [3]]

    @pytest.mark.parametrize(
        "enqueue",
        [
            lambda: send.enqueue("\0"),
            lambda: send.enqueue("\ud800"),
            lambda: send.enqueue("x" * 2_000_000),
            report.enqueue,
            lambda: send.using(queue_name="q" * 101),
            lambda: send.using(priority=101),
            lambda: send.enqueue_many([(1,), ("\0",)]),
        ],
    )
    def test_goes_on_after_what_was_refused(self, enqueue):
        with transaction.atomic():
            Group.objects.create(name="before")
            with pytest.raises(InvalidJob):
                enqueue()
            Group.objects.create(name="after")
            send.enqueue("after")

        assert set(Group.objects.values_list("name", flat=True)) == {"before", "after"}
        assert [row.args for row in Job.objects.all()] == [["after"]]

    @pytest.mark.django_db(transaction=True)
    def test_without_one_the_job_is_committed_at_once(self):
        row = send.enqueue(1)

        assert not connections["default"].in_atomic_block
        assert Job.objects.get().pk == row.id

    @pytest.mark.django_db(transaction=True)
    def test_a_large_list_is_enqueued_whole_or_not_at_all(self, monkeypatch):
        monkeypatch.setattr(enqueueing, "CHUNK", 2)
        store = django_store("default")

        class FailsAtTheSecond:
            calls = 0

            def insert_many(self, new):
                self.calls += 1
                if self.calls == 2:
                    raise DatabaseError("the server is gone")
                return store.insert_many(new)

        failing = FailsAtTheSecond()
        monkeypatch.setattr(enqueueing, "django_store", lambda alias: failing)

        with pytest.raises(DatabaseError, match="the server is gone"):
            send.enqueue_many([(number,) for number in range(5)])

        assert failing.calls == 2
        assert not Job.objects.exists()


# What JSON holds and both databases store. Surrogates and NUL are refused, which other tests show.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=15,
)
NAMES = TEXT.filter(lambda name: name not in ("user_id", "text"))


def exactly(value):
    """Tells apart what ``==`` does not: 1, 1.0 and True; 0.0 and -0.0."""
    return repr(value)


@given(args=st.lists(VALUES, max_size=4), kwargs=st.dictionaries(NAMES, VALUES, max_size=3))
@example(args=[2**63, -(2**63) - 1, 2**70, 10**4299], kwargs={})
@example(
    args=[1e22, -0.0, 0.0, 5e-324, -5e-324, sys.float_info.max, 0.1, 1.0, 1, True, [-0.0]],
    kwargs={"zero": -0.0},
)
@example(
    args=["\\u0000", "\\", '"', "{}", "NULL", "\x01\x1f\x7f\x80\x9f\u2028\u2029\ufeff\uffff😀"],
    kwargs={"": ""},
)
@example(args=[[], {}, [[]], {"": {}}, {"😀": [None]}], kwargs={"self": 1, "😀\x01": "\U0010ffff"})
@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_what_comes_back_equals_what_went_in(args, kwargs):
    one = send.enqueue(*args, **kwargs)
    (many,) = enqueue_many([send.prepare(*args, **kwargs)])

    stored = django_store("default").get([one.id, many.id])
    modelled = Job.objects.filter(pk__in=[one.id, many.id]).order_by("pk")
    read: list[Any] = [one, many, *stored, *modelled]
    for row in read:
        assert exactly(row.args) == exactly(args)
        assert exactly(row.kwargs) == exactly(kwargs)
    for model in modelled:
        model.save()
    assert django_store("default").get([one.id, many.id]) == stored, "saving a model changes nothing"
