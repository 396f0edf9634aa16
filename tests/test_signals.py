"""Signals: what they carry, when they are sent, that receivers harm nothing, and that nobody pays without one."""

import sys

import pytest
from asgiref.sync import iscoroutinefunction
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils.decorators import sync_and_async_middleware

from django_jobs import enqueue_many, job, registry
from django_jobs.models import Job
from django_jobs.signals import job_enqueued, job_finished, job_started
from django_jobs.worker import Worker, WorkerOptions
from django_jobs.worker.options import Pool


@pytest.fixture
def define():
    defined = []

    def make(function, **options):
        options.setdefault("name", f"tests.signals.{function.__name__}")
        defined.append(job(**options)(function))
        return defined[-1]

    yield make
    for definition in defined:
        registry.remove(definition)


@pytest.fixture
def connect():
    connected = []

    def to(signal, receiver, **options):
        signal.connect(receiver, weak=False, **options)
        connected.append((signal, receiver, options.get("sender")))

    yield to
    for signal, receiver, sender in connected:
        signal.disconnect(receiver, sender=sender)


class Received(list):
    """A receiver that keeps what it was sent."""

    def __call__(self, sender, signal, **arguments):
        self.append((sender, arguments))


def drain():
    worker = Worker(WorkerOptions(pools=[Pool(("*",), 2)], drain=True))
    worker.run()
    return worker.statistics


@sync_and_async_middleware
def passing_on(get_result):
    """A middleware that does nothing."""
    if iscoroutinefunction(get_result):

        async def step(context):
            return await get_result(context)
    else:

        def step(context):
            return get_result(context)

    return step


def greet(name="x"):
    return f"hello {name}"


class TestEnqueued:
    pytestmark = pytest.mark.django_db

    def test_carries_the_row_and_its_database(self, define, connect):
        received = Received()
        connect(job_enqueued, received)
        greeting = define(greet)

        row = greeting.using(priority=5).enqueue("a")

        assert received == [(greeting, {"job": row, "using": "default"})]

    def test_each_of_many_with_its_own_function(self, define, connect):
        received = Received()
        connect(job_enqueued, received)
        first, second = define(greet), define(lambda: None, name="tests.signals.other")

        rows = [*first.enqueue_many([("a",), ("b",)]), *enqueue_many([second.prepare(), first.prepare()])]

        assert [(sender, sent["job"]) for sender, sent in received] == list(
            zip([first, first, second, first], rows, strict=True)
        )

    def test_the_job_knows_the_database_that_it_was_given(self, define, connect):
        seen = []
        connect(job_enqueued, lambda job, **_: seen.append(job.using))
        greeting = define(greet).using(using="default")

        rows = [
            greeting.enqueue("a"),
            *greeting.enqueue_many([("b",)]),
            *enqueue_many([greeting.prepare("c")]),
        ]

        assert seen == [row.using for row in rows] == ["default"] * 3

    def test_to_a_receiver_of_one_function(self, define, connect):
        received = Received()
        mine, other = define(greet), define(lambda: None, name="tests.signals.other")
        connect(job_enqueued, received, sender=mine)

        other.enqueue()
        mine.using(priority=1).enqueue()

        assert [sender for sender, _ in received] == [mine]

    def test_not_of_a_duplicate(self, define, connect):
        received = Received()
        connect(job_enqueued, received)
        once = define(greet, unique=True)

        once.enqueue("a")
        once.enqueue("a")
        once.enqueue_many([("a",), ("b",)])

        assert len(received) == 2

    def test_is_sent_in_the_callers_transaction(self, define, connect):
        seen = []
        greeting = define(greet)
        connect(job_enqueued, lambda job, **_: seen.append(Job.objects.filter(pk=job.id).exists()))

        with pytest.raises(ZeroDivisionError), transaction.atomic():
            greeting.enqueue()
            raise ZeroDivisionError

        assert seen == [True]
        assert not Job.objects.exists()

    def test_a_receiver_that_raises_is_logged_and_the_next_one_is_called(self, define, connect, caplog):
        received = Received()

        def fail(**_):
            raise ValueError("a receiver")

        connect(job_enqueued, fail)
        connect(job_enqueued, received)

        row = define(greet).enqueue()

        assert received[0][1]["job"] == row
        assert Job.objects.filter(pk=row.id).exists()
        assert "a receiver" in caplog.text

    @pytest.mark.parametrize("handled", [False, True])
    def test_a_receiver_that_breaks_the_transaction_harms_only_itself(self, define, connect, caplog, handled):
        def fail(**_):
            try:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT nonsense FROM nowhere")
            except Exception:
                if not handled:
                    raise

        connect(job_enqueued, fail)
        greeting = define(greet)

        with transaction.atomic():
            first = greeting.enqueue()
            second = greeting.enqueue()

        assert set(Job.objects.values_list("pk", flat=True)) == {first.id, second.id}
        if not handled:
            assert "nowhere" in caplog.text

    def test_costs_no_statement_without_receivers(self, define, django_assert_num_queries):
        greeting = define(greet)
        with transaction.atomic(), django_assert_num_queries(2):
            greeting.enqueue()
            greeting.enqueue_many([("a",)] * 10)


@pytest.mark.django_db(transaction=True)
class TestOfAnAttempt:
    def test_started_in_the_executor_before_the_call(self, define, connect):
        order = []
        greeting = define(lambda: order.append("called"), name="tests.signals.called")
        connect(job_started, lambda sender, job, **_: order.append((sender, job.state, job.attempt)))
        greeting.enqueue()

        drain()

        assert order == [(greeting, "running", 1), "called"]

    def test_finished_carries_the_row_as_stored(self, define, connect):
        received = Received()
        connect(job_finished, received)
        greeting = define(greet)
        row = greeting.enqueue("a")

        drain()

        ((sender, sent),) = received
        stored = sent["job"]
        assert (sender, stored.id, stored.state, stored.result) == (greeting, row.id, "completed", "hello a")
        assert stored.finalized_at == Job.objects.get().finalized_at
        assert (sent["outcome"], sent["error"]) == ("completed", None)
        assert sent["seconds"] >= 0

    @pytest.mark.parametrize("with_middleware", [False, True])
    def test_started_of_an_async_job_may_use_the_database(self, define, connect, settings, with_middleware):
        if with_middleware:
            settings.DJANGO_JOBS = {"MIDDLEWARE": ["tests.test_signals.passing_on"]}
        order = []

        async def called():
            order.append("called")

        connect(job_started, lambda job, **_: order.append(Job.objects.get(pk=job.id).state))
        define(called).enqueue()

        drain()

        assert order == ["running", "called"]

    def test_started_of_an_atomic_job_is_sent_once_before_its_transaction(self, define, connect):
        order = []

        def note(**_):
            order.append(connection.in_atomic_block)

        connect(job_started, note)
        define(note, atomic=True).enqueue()

        drain()

        assert order == [False, True]

    def test_a_receiver_that_breaks_on_the_database_harms_no_atomic_job(self, define, connect):
        failed = []

        def fail(**_):
            failed.append(True)
            # In a transaction around it, this would undo that too, on both databases.
            with transaction.atomic(savepoint=False), connection.cursor() as cursor:
                cursor.execute("SELECT nonsense FROM nowhere")

        connect(job_started, fail)
        define(greet, atomic=True).enqueue("a")

        drain()

        job = Job.objects.get()
        assert (failed, job.state, job.attempt, job.result) == ([True], "completed", 1, "hello a")

    def test_finished_of_a_job_that_has_completed_itself(self, define, connect):
        received = Received()
        connect(job_finished, received)
        define(greet, atomic=True).enqueue("a")

        drain()

        ((_, sent),) = received
        assert (sent["job"].state, sent["job"].result) == ("completed", "hello a")
        assert (sent["outcome"], sent["error"]) == ("completed", None)

    def test_each_attempt_in_its_order(self, define, connect):
        received = Received()
        connect(job_finished, received)

        def fail():
            raise ValueError("no")

        failing = define(fail, max_attempts=3, backoff=0)
        jobs = failing.enqueue_many([()] * 20)

        drain()

        for each in jobs:
            mine = [sent for _, sent in received if sent["job"].id == each.id]
            assert [(sent["outcome"], sent["job"].attempt) for sent in mine] == [
                ("retried", 1), ("retried", 2), ("failed", 3),
            ]  # fmt: skip
            assert {sent["error"] for sent in mine} == {"ValueError: no"}

    @pytest.mark.parametrize("signal", [job_started, job_finished])
    @pytest.mark.parametrize("error", [ValueError, SystemExit])
    def test_a_receiver_that_raises_harms_neither_job_nor_worker(
        self, define, connect, caplog, signal, error
    ):
        def fail(**_):
            raise error("a receiver")

        connect(signal, fail)
        define(greet).enqueue_many([("a",)] * 20)

        statistics = drain()

        assert (statistics.completed, statistics.failed) == (20, 0)
        assert set(Job.objects.values_list("state", flat=True)) == {"completed"}
        assert "a receiver" in caplog.text

    def test_a_receiver_may_use_the_database_and_leaves_no_connection(self, define, connect):
        def change(job, **_):
            Job.objects.filter(pk=job.id).update(metadata={"seen": True})

        connect(job_finished, change)
        define(greet).enqueue_many([("a",)] * 5)

        drain()

        assert [each.metadata for each in Job.objects.all()] == [{"seen": True}] * 5

    def test_of_a_function_that_is_not_registered(self, define, connect):
        received = Received()
        connect(job_finished, received)
        gone = define(greet)
        gone.enqueue()
        registry.remove(gone)

        drain()

        assert [(sender, sent["outcome"]) for sender, sent in received] == [(None, "snoozed")]

    def test_whole_rows_are_asked_for_only_where_somebody_receives_them(self, define, connect, monkeypatch):
        from django_jobs.store import own_store

        asked = []
        kind = type(own_store("default"))
        finish = kind.finish

        def noting(self, outcomes, now=None, whole_rows=False):
            asked.append(whole_rows)
            return finish(self, outcomes, now, whole_rows)

        monkeypatch.setattr(kind, "finish", noting)
        greeting = define(greet)
        greeting.enqueue()
        drain()
        connect(job_finished, Received())
        greeting.enqueue()
        drain()

        assert asked == [False, True]

    def test_without_receivers_nothing_is_made(self, define, monkeypatch):
        sent = []
        for name in ("followers", "attempt"):
            monkeypatch.setattr(
                sys.modules[f"django_jobs.worker.{name}"], "send", lambda *given, **more: sent.append(given)
            )
        define(greet).enqueue()
        with CaptureQueriesContext(connection):
            drain()

        assert sent == []
