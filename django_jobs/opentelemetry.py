"""Spans of OpenTelemetry for enqueueing and running jobs; needs the extra ``opentelemetry``::

    pip install "django-runjobs[opentelemetry]"

    class ShopConfig(AppConfig):
        def ready(self):
            from django_jobs.opentelemetry import instrument

            instrument()

The context of the enqueueing span (``traceparent``, and whatever else the site's propagators write) goes into the job's
metadata, and the span of each attempt goes on from it. Until :func:`instrument` is called nothing of this costs
anything.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import ImproperlyConfigured
from django.utils.decorators import sync_and_async_middleware

try:
    from opentelemetry import context as contexts, propagate, trace
except ImportError as error:
    raise ImproperlyConfigured(
        'django_jobs.opentelemetry needs opentelemetry-api: pip install "django-runjobs[opentelemetry]"'
    ) from error
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode

import django_jobs
from django_jobs import enqueueing
from django_jobs.context import JobContext
from django_jobs.exceptions import Cancel, Control, Snooze
from django_jobs.serialization import decode, encode
from django_jobs.store.rows import JobRow, NewJob
from django_jobs.worker import middleware
from django_jobs.worker.failures import class_name, message_of

logger = logging.getLogger("django_jobs.opentelemetry")

SYSTEM = "django_jobs"
# What is longer is not written to a job's metadata: baggage may be anything.
MOST_CHARACTERS = 4096


class _Tracing:
    """What :func:`instrument` has put in place."""

    def __init__(self, provider: trace.TracerProvider | None, new_traces: bool) -> None:
        self.tracer = trace.get_tracer("django_jobs", django_jobs.__version__, provider)
        self.new_traces = new_traces

    # -- enqueueing ------------------------------------------------------------------------------------------------

    def insert(self, new: list[NewJob], insert: enqueueing.Insert) -> list[JobRow]:
        """One span for each call that enqueues, however many jobs it is about."""
        first = new[0]
        name = first.name if all(job.name == first.name for job in new) else f"{len(new)} jobs"
        attributes: dict[str, Any] = {
            "messaging.system": SYSTEM,
            "messaging.operation.type": "send",
            "messaging.operation.name": "enqueue",
            "messaging.batch.message_count": len(new),
        }
        if all(job.queue_name == first.queue_name for job in new):
            attributes["messaging.destination.name"] = first.queue_name
        with self.tracer.start_as_current_span(
            f"enqueue {name}", kind=SpanKind.PRODUCER, attributes=attributes
        ) as span:
            jobs = insert(_carrying(new))
            if len(jobs) == 1:
                span.set_attribute("messaging.message.id", str(jobs[0].id))
                span.set_attribute("django_jobs.is_duplicate", jobs[0].is_duplicate)
            return jobs

    # -- running ---------------------------------------------------------------------------------------------------

    @contextmanager
    def attempt(self, context: JobContext) -> Iterator[None]:
        """The span of an attempt."""
        job = context.job
        assert job is not None
        carried = propagate.extract(_carrier(job.metadata))
        linked = trace.get_current_span(carried).get_span_context()
        links: Sequence[Link] = [Link(linked)] if self.new_traces and linked.is_valid else ()
        parent = trace.set_span_in_context(trace.INVALID_SPAN, carried) if self.new_traces else carried
        token = contexts.attach(parent)  # the job sees baggage, too
        try:
            with self.tracer.start_as_current_span(
                f"run {job.name}",
                kind=SpanKind.CONSUMER,
                links=links,
                attributes=_attributes_of(job),
                record_exception=False,
                set_status_on_exception=False,
            ) as span:
                try:
                    yield
                except BaseException as error:
                    _tell(span, error)
                    raise
        finally:
            contexts.detach(token)


def _attributes_of(job: JobRow) -> dict[str, Any]:
    return {
        "messaging.system": SYSTEM,
        "messaging.operation.type": "process",
        "messaging.operation.name": "run",
        "messaging.destination.name": job.queue_name,
        "messaging.message.id": str(job.id),
        "django_jobs.name": job.name,
        "django_jobs.attempt": job.attempt,
        "django_jobs.max_attempts": job.max_attempts,
    }


def instrument(tracer_provider: trace.TracerProvider | None = None, *, new_traces: bool = False) -> None:
    """Make spans from now on, in this process; in the worker's too, so call it in ``AppConfig.ready``.

    :param tracer_provider: by default the one that is set for the process.
    :param new_traces: begin a new trace with each attempt, linked to the span that enqueued it, instead of going on in
        that one's trace.
    """
    uninstrument()
    tracing = _Tracing(tracer_provider, new_traces)

    @sync_and_async_middleware
    def traced(run: Callable[[JobContext], Any]) -> Callable[[JobContext], Any]:
        if iscoroutinefunction(run):
            step: Callable[[JobContext], Awaitable[Any]] = run

            async def around_async(context: JobContext) -> Any:
                with tracing.attempt(context):
                    return _told(await step(context))

            return around_async

        def around(context: JobContext) -> Any:
            with tracing.attempt(context):
                return _told(run(context))

        return around

    enqueueing.around_insert = tracing.insert
    middleware.built_in[:] = [traced]


def uninstrument() -> None:
    """Undo :func:`instrument`; a worker that runs goes on with what it began with."""
    enqueueing.around_insert = None
    middleware.built_in.clear()


def _carrying(new: list[NewJob]) -> list[NewJob]:
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    carrier = {key: value for key, value in carrier.items() if len(value) <= MOST_CHARACTERS}
    if not carrier:
        return new
    alone = encode(carrier)
    return [
        job._replace(metadata=alone if job.metadata is None else encode({**carrier, **decode(job.metadata)}))
        for job in new
    ]


def _carrier(metadata: Any) -> dict[str, str]:
    """What propagators can read of a job's metadata, in which anything may stand."""
    if not isinstance(metadata, dict):
        return {}
    return {key: value for key, value in metadata.items() if isinstance(value, str)}


def _told(result: Any) -> Any:
    """What a job returned; a word of control that it returned, rather than raised, is told too."""
    if issubclass(type(result), Control):
        _tell(trace.get_current_span(), result)
    return result


def _tell(span: Span, error: BaseException) -> None:
    """How the attempt ended. To snooze, or to be cancelled, is no failure."""
    if isinstance(error, Control):
        span.set_attribute("django_jobs.outcome", type(error).__name__.lower())
    if isinstance(error, Snooze | Cancel):
        return
    try:
        span.record_exception(error)
    except Exception:
        # Whatever its __str__ does: the job's own error is what is to be stored.
        logger.debug("An error of a job can't be recorded in its span", exc_info=True)
    span.set_status(Status(StatusCode.ERROR, f"{class_name(error)}: {message_of(error)}"))
