"""Fixtures of the backend's tests: a worker that runs what is due, in this process, and the signals it sends."""

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from django_jobs.backend.framework import signals
from django_jobs.worker import Pool, Worker, WorkerOptions


@pytest.fixture
def drain(transactional_db: None) -> Callable[[], Worker]:
    """Run all that is due, in a worker of threads; it has stopped when this returns."""

    def run() -> Worker:
        worker = Worker(
            WorkerOptions(using="default", pools=[Pool(("*",), 2)], drain=True, poll_interval=0.05)
        )
        worker.run()
        return worker

    return run


class Sent(NamedTuple):
    """A signal as it was received."""

    name: str
    sender: Any
    id: str
    status: str
    error: BaseException | None


@pytest.fixture
def sent() -> Iterator[list[Sent]]:
    """The framework's signals, in the order in which they were sent."""
    seen: list[Sent] = []
    receivers = []
    for name in ("task_enqueued", "task_started", "task_finished"):

        def receive(sender: Any, task_result: Any, name: str = name, **_: Any) -> None:
            seen.append(Sent(name, sender, task_result.id, str(task_result.status), sys.exc_info()[1]))

        receivers.append((name, receive))
        getattr(signals, name).connect(receive)
    yield seen
    for name, receive in receivers:
        getattr(signals, name).disconnect(receive)
