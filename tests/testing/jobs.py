"""Jobs for the tests of the helpers."""

from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction

from django_jobs import JobContext, current_job, job

ran: list[Any] = []


@job
def note(value: Any = None, *, twice: bool = False) -> Any:
    ran.append(value)
    return value


@job(queue_name="mail", max_attempts=2, backoff=60)
def fail(message: str = "no") -> None:
    User.objects.create(username=message)
    raise ValueError(message)


@job(backoff=0, max_attempts=3)
def fail_at_once() -> None:
    ran.append("fail_at_once")
    raise ValueError("again")


@job
def enqueue_another(number: int) -> None:
    ran.append(number)
    if number:
        enqueue_another.enqueue(number - 1)


@job
def enqueue_for_ever() -> None:
    enqueue_for_ever.enqueue()


@job
async def note_async(name: str) -> int:
    ran.append(name)
    user = await User.objects.acreate(username=name)
    return int(user.pk)


@job(atomic=True)
def atomically(name: str, raises: bool = False) -> str:
    User.objects.create(username=name)
    if raises:
        raise ValueError(name)
    return "done"


@job(takes_context=True)
def complete_itself(context: JobContext, name: str) -> None:
    with transaction.atomic():
        User.objects.create(username=name)
        context.complete("by itself")


@job
def on_commit(raises: bool = False) -> None:
    with transaction.atomic(durable=True):
        transaction.on_commit(lambda: ran.append("committed"))
        ran.append("in the transaction")
    if raises:
        raise ValueError


@job
def roll_back() -> None:
    with transaction.atomic():
        transaction.on_commit(lambda: ran.append("committed"))
        transaction.set_rollback(True)


@job
def break_transaction() -> None:
    User.objects.create(username="undone")
    with connection.cursor() as cursor:
        cursor.execute("SELECT no_such_column FROM auth_user")


@job(takes_context=True)
def tell(context: JobContext) -> list[Any]:
    assert context.job is not None
    assert current_job() is not None
    context.progress(1, 2)
    context.merge_metadata({"a": 1}, later=True)
    return [context.attempt, context.should_stop(), connection.in_atomic_block]


@job(takes_context=True)
def snooze(context: JobContext) -> None:
    context.snooze(60)
