"""What the public names are to a type checker. At run time this is next to nothing; mypy reads it."""

from typing import Any, assert_type

from django_jobs import JobContext, JobDefinition, enqueue_many, job
from django_jobs.backoff import Fixed
from django_jobs.enqueueing import Prepared
from django_jobs.store.rows import JobRow


@job
def plain(a: int, b: str = "") -> float:
    return float(a)


@job(queue_name="mail", max_attempts=5)
def with_options(a: int) -> None: ...


@job(takes_context=True)
def with_context(context: JobContext, a: int) -> str:
    return context.name


@job
async def asynchronous(a: int) -> str:
    return str(a)


def test_a_definition_knows_what_its_function_takes_and_returns() -> None:
    assert_type(plain.call(1, b="x"), float)
    assert_type(plain(1), float)
    assert_type(with_options(1), None)
    assert_type(with_context.call(1), str)
    assert_type(asynchronous.call(1), str)
    assert isinstance(plain, JobDefinition)


async def check_what_is_awaited() -> None:
    """Read by the type checker alone."""
    assert_type(await asynchronous(1), str)
    assert_type(await asynchronous.acall(1), str)
    assert_type(await plain.acall(1), float)
    assert_type(await plain.aenqueue(1), JobRow)
    await plain.aenqueue("1")  # type: ignore[arg-type]
    await with_context.acall()  # type: ignore[call-arg]


def check_what_is_enqueued() -> None:
    """Read by the type checker alone."""
    assert_type(plain.enqueue(1, b="x"), JobRow)
    assert_type(plain.using(queue_name="x").enqueue(1), JobRow)
    assert_type(plain.using(backoff=[1, Fixed(2).delay]).enqueue(1), JobRow)
    plain.using(backoff=Fixed(2), timeout=None)
    plain.using(queue="x")  # type: ignore[arg-type]
    plain.using(backoff=lambda attempt, exception, job: 5)  # type: ignore[arg-type]
    assert_type(plain.prepare(1), Prepared)
    assert_type(plain.enqueue_many([(1,), {"a": 1}]), list[JobRow])
    assert_type(enqueue_many([plain.prepare(1), with_context.prepare(1)]), list[JobRow])
    assert_type(plain.enqueue(1).args, list[Any])
    plain.enqueue("1")  # type: ignore[arg-type]
    plain.enqueue()  # type: ignore[call-arg]
    plain.enqueue(1, c=1)  # type: ignore[call-arg]
    with_context.enqueue()  # type: ignore[call-arg]
    with_context.enqueue(1)
    with_context.enqueue("1")  # type: ignore[arg-type]
    with_options.prepare("1")  # type: ignore[arg-type]
    asynchronous.enqueue(b="")  # type: ignore[call-arg]
