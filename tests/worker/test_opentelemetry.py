"""Spans for enqueueing and running, linked through the job's metadata."""

import pytest
from opentelemetry import baggage, context as contexts, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from django_jobs import Cancel, Fail, Snooze, enqueue_many, enqueueing
from django_jobs.models import Job
from django_jobs.opentelemetry import instrument, uninstrument
from django_jobs.store import django_store
from django_jobs.worker import Worker, WorkerOptions, middleware

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def spans():
    """The finished spans."""
    return InMemorySpanExporter()


@pytest.fixture
def tracer(spans):
    """The site's own tracer; jobs are traced too."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    instrument(provider)
    yield provider.get_tracer("site")
    uninstrument()


def drain():
    worker = Worker(WorkerOptions(drain=True))
    worker.run()
    return worker


def by_name(spans):
    return {span.name: span for span in spans.get_finished_spans()}


def test_a_job_runs_in_the_trace_that_enqueued_it(tracer, spans, define):
    seen = []
    work = define(lambda: seen.append(trace.get_current_span().get_span_context()), name="shop.work")
    with tracer.start_as_current_span("request"):
        job = work.enqueue()
    assert set(job.metadata) == {"traceparent"}
    assert job.refresh().metadata == job.metadata
    drain()

    found = by_name(spans)
    request, enqueued, run = found["request"], found["enqueue shop.work"], found["run shop.work"]
    assert enqueued.parent.span_id == request.context.span_id
    assert run.parent.span_id == enqueued.context.span_id
    assert run.context.trace_id == request.context.trace_id
    assert run.context == seen[0]
    assert (enqueued.kind, run.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert (
        enqueued.attributes["messaging.message.id"] == run.attributes["messaging.message.id"] == str(job.id)
    )
    assert run.attributes["messaging.destination.name"] == "default"
    assert (run.attributes["django_jobs.name"], run.attributes["django_jobs.attempt"]) == ("shop.work", 1)
    assert run.status.status_code == StatusCode.UNSET


def test_in_traces_of_their_own_attempts_are_linked(tracer, spans, define):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    instrument(provider, new_traces=True)
    work = define(lambda: None, name="shop.work")
    work.enqueue()
    drain()

    found = by_name(spans)
    enqueued, run = found["enqueue shop.work"], found["run shop.work"]
    assert run.parent is None
    assert run.context.trace_id != enqueued.context.trace_id
    assert [link.context.span_id for link in run.links] == [enqueued.context.span_id]


def test_many_jobs_are_enqueued_in_one_span(tracer, spans, define):
    work, other = define(lambda n: None, name="shop.work"), define(lambda: None, name="shop.other")
    work.enqueue_many([(number,) for number in range(3)])
    enqueue_many(
        [work.prepare(1), other.using(queue_name="mail").prepare(), other.using(tags=["a"]).prepare()]
    )
    keyed = define(lambda: None, name="shop.keyed", unique=True)
    assert [job.is_duplicate for job in keyed.enqueue_many([(), ()])] == [False, True]
    parents = [row.metadata["traceparent"] for row in Job.objects.order_by("id")]
    assert len(parents) == 7
    assert len(set(parents)) == 3
    drain()

    found = spans.get_finished_spans()
    assert [span.name for span in found if span.kind == SpanKind.PRODUCER] == [
        "enqueue shop.work", "enqueue 3 jobs", "enqueue shop.keyed",
    ]  # fmt: skip
    assert sum(span.kind == SpanKind.CONSUMER for span in found) == 7
    assert "messaging.destination.name" not in by_name(spans)["enqueue 3 jobs"].attributes
    assert by_name(spans)["enqueue shop.work"].attributes["messaging.batch.message_count"] == 3


def test_a_job_that_a_job_enqueues_is_in_the_same_trace(tracer, spans, define):
    inner = define(lambda: None, name="shop.inner")
    outer = define(lambda: inner.enqueue() and None, name="shop.outer")
    outer.enqueue()
    drain()

    found = by_name(spans)
    assert found["enqueue shop.inner"].parent.span_id == found["run shop.outer"].context.span_id
    assert found["run shop.inner"].parent.span_id == found["enqueue shop.inner"].context.span_id


class Unspeakable(Exception):
    def __str__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("error", "status", "outcome", "state"),
    [
        (ValueError("no"), StatusCode.ERROR, None, "failed"),
        (SystemExit(3), StatusCode.ERROR, None, "failed"),
        (Unspeakable(), StatusCode.ERROR, None, "failed"),
        (Fail("no"), StatusCode.ERROR, "fail", "failed"),
        (Snooze(3600), StatusCode.UNSET, "snooze", "scheduled"),
        (Cancel("no"), StatusCode.UNSET, "cancel", "cancelled"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_how_attempts_end(tracer, spans, define, error, status, outcome, state, is_async):
    def broken():
        raise error

    async def abroken():
        raise error

    work = define(abroken if is_async else broken, name="shop.work", max_attempts=1)
    job = work.enqueue()
    drain()

    run = by_name(spans)["run shop.work"]
    assert run.status.status_code == status
    assert run.attributes.get("django_jobs.outcome") == outcome
    assert job.refresh().state == state
    if isinstance(error, ValueError):
        assert run.status.description == "ValueError: no"
        assert run.events[0].attributes["exception.type"] == "ValueError"
        assert job.errors[0]["class"] == "ValueError"


def test_a_word_that_is_returned_is_told_too(tracer, spans, define):
    work = define(lambda: Fail("no"), name="shop.work")
    work.enqueue()
    drain()

    assert by_name(spans)["run shop.work"].status.status_code == StatusCode.ERROR


@pytest.mark.parametrize("metadata", [None, [], {"traceparent": 5}, {"traceparent": "nonsense"}, {"a": 1}])
def test_metadata_that_carries_nothing(tracer, spans, define, metadata):
    work = define(lambda: None, name="shop.work")
    work.enqueue()
    Job.objects.update(metadata=metadata)
    drain()

    assert by_name(spans)["run shop.work"].parent is None


def test_baggage_comes_along_up_to_a_bound(tracer, define):
    heard = []
    work = define(lambda: heard.append(baggage.get_baggage("tenant")), name="shop.work")
    token = contexts.attach(baggage.set_baggage("tenant", "acme"))
    work.enqueue()
    contexts.detach(token)
    large = contexts.get_current()
    for number in range(4):
        large = baggage.set_baggage(f"tenant{number}", "x" * 2000, large)
    token = contexts.attach(large)
    job = work.enqueue()
    contexts.detach(token)
    drain()

    assert heard == ["acme", None]
    assert set(job.metadata) == {"traceparent"}


def test_a_call_that_fails_is_told_and_inserts_nothing(tracer, spans, define, monkeypatch):
    from django.db import OperationalError

    work = define(lambda: None, name="shop.work")

    def away(self, new, now=None):
        raise OperationalError("away")

    monkeypatch.setattr(type(django_store("default")), "insert", away)
    with pytest.raises(OperationalError):
        work.enqueue()

    assert by_name(spans)["enqueue shop.work"].status.status_code == StatusCode.ERROR


def test_without_it_nothing_is_in_the_way(define):
    work = define(lambda: None, name="shop.work")
    instrument()
    assert middleware.load([]) == middleware.built_in != []
    uninstrument()

    assert enqueueing.around_insert is None
    assert middleware.load([]) == []
    assert work.enqueue().metadata == {}
