"""``unique``, ``unique_for`` and ``on_duplicate`` of a job function: which jobs are the same, and what is refused."""

import datetime as dt
import enum

import pytest
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from django_jobs import InvalidJob, enqueue_many, enqueueing, job, operations
from django_jobs.models import Job

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


@job(unique=True)
def index(path="", *more, depth=1, **named): ...


@job
def other(path=""): ...


@job(unique="order:{order_id}")
def bill(order_id, total=0): ...


def by_customer(customer, order=None):
    return f"customer:{customer}" if customer else None


@job(unique=by_customer)
def greet(customer, order=None): ...


@job(unique_for=HOUR)
def report(year): ...


@job(unique=True, on_duplicate="replace")
def save(document_id): ...


@job(takes_context=True, unique=True)
def with_context(context, number): ...


class TestUnique:
    def test_a_duplicate_is_told_as_one(self):
        first, second = index.enqueue("a"), index.enqueue("a")

        assert (first.is_duplicate, second.is_duplicate) == (False, True)
        assert first == second
        assert Job.objects.count() == 1

    def test_a_job_without_a_key_never_is_one(self):
        jobs = [other.enqueue("a"), other.enqueue("a"), *other.enqueue_many([("a",), ("a",)])]

        assert not any(job.is_duplicate for job in jobs)
        assert Job.objects.filter(unique_key=None, holds_key=False).count() == 4

    def test_the_key_can_be_read(self):
        assert index.enqueue("a", depth=2).unique_key == 'tests.test_uniqueness.index:{"depth":2,"path":"a"}'

    @pytest.mark.parametrize(
        ("one", "same"),
        [
            ((("a",), {}), ((), {"path": "a"})),
            (((), {"x": 1, "y": {"p": 1, "q": 2}}), ((), {"y": {"q": 2, "p": 1}, "x": 1})),
            ((("a", 1, 2), {"depth": 3}), (("a", 1, 2), {"depth": 3})),
        ],
    )
    def test_the_same_call_has_the_same_key(self, one, same):
        index.enqueue(*one[0], **one[1])

        assert index.enqueue(*same[0], **same[1]).is_duplicate

    @pytest.mark.parametrize(
        "calls",
        [
            [{"a.b": 1}, {"a": {"b": 1}}, {"a": '{"b":1}'}],
            [{"path": value} for value in (1, 1.0, True, "1", None, "", [], [1], {}, -0.0, 0.0, 2**70)],
            [{"named": 1}, {"named": {"named": 1}}],
            [{"path": "a"}, {"path": "a", "depth": 1}],  # a default that is spelled out counts
            [{"path": 'a","depth":2'}, {"path": "a", "depth": 2}],
            [{"path": "x" * 300}, {"path": "x" * 299 + "y"}, {"path": "x" * 301}],
            [{"path": "😀" * 300}, {"path": "é" * 300}],
        ],
        ids=["dots", "values", "names", "defaults", "quotes", "long", "long and wide"],
    )
    def test_other_arguments_have_another_key(self, calls):
        jobs = index.enqueue_many(calls)

        assert not any(job.is_duplicate for job in jobs)
        assert all(job.is_duplicate for job in index.enqueue_many(calls[::-1]))
        assert all(len(job.unique_key) <= 255 for job in jobs)

    def test_a_key_that_is_too_long_keeps_its_beginning(self):
        key = index.enqueue("x" * 300).unique_key

        assert key.startswith('tests.test_uniqueness.index:{"path":"xxx')
        assert len(key) == 223

    def test_of_another_function_is_another_key(self):
        same = job(name="tests.same", unique=True)(lambda path: None)

        index.enqueue("a")

        assert not same.enqueue("a").is_duplicate

    def test_the_context_is_no_argument(self):
        assert with_context.enqueue(1).unique_key == 'tests.test_uniqueness.with_context:{"number":1}'

    def test_a_string_names_parameters(self):
        first = bill.enqueue(5, total=1)

        assert (first.unique_key, bill.enqueue(order_id=5).id) == ("order:5", first.id)
        assert not bill.enqueue(6).is_duplicate

    def test_a_string_without_parameters_is_one_key(self):
        alone = job(name="tests.alone", unique="the {{one}}")(lambda number=0: None)

        assert [alone.enqueue(number).is_duplicate for number in range(3)] == [False, True, True]
        assert Job.objects.get().unique_key == "the {one}"

    def test_a_callable_gets_the_arguments_and_may_return_no_key(self):
        assert greet.enqueue(1, order=2).unique_key == "customer:1"
        assert greet.enqueue(1, 3).is_duplicate
        assert [greet.enqueue(0).unique_key, greet.enqueue(0).is_duplicate] == [None, False]
        assert [job.is_duplicate for job in greet.enqueue_many([(0,), (1,), (0,), (2,)])] == [
            False,
            True,
            False,
            False,
        ]

    def test_a_long_key_of_a_callable_is_made_short(self):
        long = job(name="tests.long", unique=lambda text: text)(lambda text: None)

        jobs = long.enqueue_many([("x" * 223,), ("x" * 224,), ("x" * 225,)])

        assert [len(job.unique_key) for job in jobs] == [223, 223, 223]
        assert len({job.unique_key for job in jobs}) == 3

    @pytest.mark.parametrize(
        ("unique", "message"),
        [
            (lambda text: "", "made the key ''; it must be a string that is not empty, or None."),
            (lambda text: 5, "made the key 5; it must be a string that is not empty, or None."),
            (lambda text: f"a\0{text}", "has a NUL character"),
            (lambda text: "\ud800", "has a lone surrogate"),
            (lambda text: {}[text], "raised KeyError: 'x'"),
            (lambda: "key", "raised TypeError"),
            ("{text.nothing}", "raised AttributeError"),
        ],
    )
    def test_a_key_that_can_not_be_made(self, unique, message, django_assert_num_queries):
        wrong = job(name="tests.wrong", unique=unique)(lambda text: None)
        with django_assert_num_queries(0):
            for enqueue in (wrong.enqueue, wrong.prepare, lambda text: wrong.enqueue_many([(text,)])):
                with pytest.raises(InvalidJob) as refusal:
                    enqueue("x")
                assert "unique of tests.wrong" in str(refusal.value)
                assert message in str(refusal.value)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"unique": 5},
                "unique of tests.refused is 5; it must be True, a key such as 'order:{order_id}', or a",
            ),
            ({"unique": ""}, "unique of tests.refused is ''; it must be a string that is not empty."),
            (
                {"unique": "{user}"},
                "unique='{user}' of tests.refused names 'user', which is no parameter; they are (n",
            ),
            ({"unique": "{}"}, "unique='{}' of tests.refused names '', which is no parameter"),
            ({"unique": "{"}, "unique='{' of tests.refused: "),
            ({"unique_for": 60}, "unique_for of tests.refused is 60; it must be a timedelta."),
            (
                {"unique_for": dt.timedelta()},
                "unique_for=datetime.timedelta(0) of tests.refused must be whole seconds,",
            ),
            (
                {"unique_for": dt.timedelta(seconds=1.5)},
                "unique_for=datetime.timedelta(seconds=1, microseconds=500000",
            ),
            (
                {"unique_for": dt.timedelta(days=40_000)},
                "unique_for=datetime.timedelta(days=40000) of tests.refused mu",
            ),
            (
                {"on_duplicate": "ignore"},
                "on_duplicate of tests.refused is 'ignore'; it must be 'return' or 'replace'",
            ),
        ],
    )
    def test_options_that_are_not_allowed(self, options, message):
        with pytest.raises(InvalidJob) as refusal:
            job(name="tests.refused", **options)(lambda number: None)
        assert str(refusal.value).startswith(message)

    def test_an_async_callable_is_refused(self):
        async def key(number): ...

        with pytest.raises(InvalidJob, match=r"or a function \(not async\) that returns the key"):
            job(name="tests.refused", unique=key)(lambda number: None)


class TestUsing:
    def test_a_key_of_ones_own(self):
        first = other.using(unique_key="yt:abc").enqueue("a")

        assert first.unique_key == "yt:abc"
        assert other.using(unique_key="yt:abc").enqueue("b").is_duplicate
        assert index.using(unique_key="yt:abc").enqueue("c").id == first.id  # other functions count too

    def test_turned_on_and_off(self):
        assert other.using(unique=True).enqueue("a").unique_key == 'tests.test_uniqueness.other:{"path":"a"}'
        assert index.using(unique=False).enqueue("a").unique_key is None
        assert report.using(unique=False).enqueue(2031).unique_key is None

    def test_a_key_of_an_enum_is_its_value(self):
        class Key(str, enum.Enum):  # noqa: UP042 - the kind that is formatted by its name
            ONE = "one"

        assert other.using(unique_key=Key.ONE).enqueue().unique_key == "one"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"unique_key": ""}, "unique_key of {name} is ''; it must be a string that is not empty."),
            ({"unique_key": 5}, "unique_key of {name} is 5; it must be a string that is not empty."),
            ({"unique_key": "k" * 256}, "unique_key of {name} has 256 characters, over the limit of 255: "),
            (
                {"unique_key": "k" * 224, "unique_for": HOUR},
                "unique_key of {name} has 224 characters, over the limit",
            ),
            ({"unique_key": "a\0"}, "unique_key of {name} has a NUL character"),
            ({"unique": "{user}"}, "unique='{{user}}' of {name} names 'user', which is no parameter"),
            ({"pending": 1}, "pending of {name} is 1; it must be True or False."),
        ],
    )
    def test_options_that_are_not_allowed(self, options, message, django_assert_num_queries):
        with django_assert_num_queries(0), pytest.raises(InvalidJob) as refusal:
            other.using(**options).enqueue("a")
        assert str(refusal.value).startswith(message.format(name=other.name))


class TestUniqueFor:
    def test_makes_a_job_unique_by_its_arguments(self):
        first = report.enqueue(2031)

        assert first.unique_key.startswith('tests.test_uniqueness.report:{"year":2031}@')
        assert first.unique_key.endswith(":00:00Z/3600")
        assert first.key_until - first.created_at <= HOUR
        assert report.enqueue(2031).id == first.id
        assert not report.enqueue(2032).is_duplicate

    def test_with_a_key_of_ones_own(self):
        once = other.using(unique_key="k" * 223, unique_for=dt.timedelta(days=36_600))

        assert len(once.enqueue("a").unique_key) <= 255
        assert once.enqueue("b").is_duplicate

    def test_purging_at_once_does_not_forget_it(self):
        first = report.enqueue(2031)
        Job.objects.filter(pk=first.id).update(state="completed", finalized_at=first.created_at)

        assert operations.purge("completed").done == 0
        assert report.enqueue(2031).id == first.id


class TestReplace:
    def test_a_waiting_job_is_pushed_back(self):
        later = save.using(run_after=HOUR)
        first = later.enqueue(1)

        second = later.enqueue(1)

        assert (second.is_duplicate, second.id) == (True, first.id)
        assert second.run_after > first.run_after
        assert Job.objects.get().run_after == second.run_after

    def test_with_other_arguments(self):
        by_document = save.using(unique_key="document")
        by_document.enqueue(1)

        assert by_document.enqueue(2).args == [2]
        assert Job.objects.get().args == [2]


def _without_savepoints(captured):
    """The statements; on PostgreSQL, in a transaction, those that insert several keys are in a savepoint."""
    return [query for query in captured.captured_queries if "SAVEPOINT" not in query["sql"]]


class TestMany:
    def test_the_jobs_of_a_call_are_in_the_order_given(self):
        index.enqueue("b")

        jobs = enqueue_many(
            [
                index.prepare("c"),
                other.prepare("x"),
                index.prepare("b"),
                index.prepare("c"),
                index.prepare("a"),
            ]
        )

        assert [job.args for job in jobs] == [["c"], ["x"], ["b"], ["c"], ["a"]]
        assert [job.is_duplicate for job in jobs] == [False, False, True, True, False]

    def test_one_statement_whether_they_are_new_or_not(self):
        calls = [(str(number),) for number in range(100)]
        for _ in range(2):
            with CaptureQueriesContext(connections["default"]) as captured:
                jobs = index.enqueue_many(calls)
            assert len(_without_savepoints(captured)) == 1
            assert [job.args for job in jobs] == [list(call) for call in calls]

        with CaptureQueriesContext(connections["default"]) as captured:
            assert index.enqueue("1").is_duplicate
        assert len(captured.captured_queries) == 1

    def test_the_transaction_goes_on(self):
        index.enqueue("a")
        with transaction.atomic():
            assert index.enqueue("a").is_duplicate
            other.enqueue("b")

        assert Job.objects.count() == 2

    def test_keyed_jobs_are_more_to_a_statement(self, monkeypatch):
        monkeypatch.setattr(enqueueing, "CHUNK", 2)
        with CaptureQueriesContext(connections["default"]) as captured:
            assert len(index.enqueue_many([(str(number),) for number in range(5)])) == 5
        assert len(_without_savepoints(captured)) == 1

    def test_a_key_in_two_statements_of_a_call(self, monkeypatch):
        monkeypatch.setattr(enqueueing, "KEYED_CHUNK", 2)

        jobs = index.enqueue_many([("a",), ("b",), ("a",)])

        assert [job.is_duplicate for job in jobs] == [False, False, True]


class TestPending:
    def test_waits_for_its_release(self):
        row = other.using(pending=True).enqueue("a")
        result = operations.release([row.id])

        assert (row.state, result.done, operations.get(row.id).state) == ("pending", 1, "available")
        assert operations.release([row.id]).skipped == {"it is not pending: available": 1}

    def test_of_many_and_with_a_time_and_a_key(self):
        jobs = index.using(pending=True, run_after=HOUR).enqueue_many([("a",), ("b",), ("a",)])

        assert [(job.state, job.is_duplicate) for job in jobs] == [
            ("pending", False),
            ("pending", False),
            ("pending", True),
        ]
        assert operations.release(job.id for job in jobs).done == 2
        assert set(Job.objects.values_list("state", flat=True)) == {"scheduled"}
