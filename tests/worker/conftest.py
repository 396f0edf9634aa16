"""Fixtures of the worker's tests: parts that end with the test, and job functions that are forgotten with it."""

import io
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.management import execute_from_command_line

from django_jobs import JobDefinition, job, registry
from django_jobs.store import Store, own_store
from django_jobs.worker import Pool, Worker, WorkerOptions
from django_jobs.worker.shared_notes import Notes
from django_jobs.worker.signs import Signs
from tests.worker.fakes import TIMEOUT, WORKER


@pytest.fixture
def started() -> Iterator[Callable[[Any], Any]]:
    """Start a part, which is stopped when the test ends."""
    parts: list[Any] = []

    def start(part: Any) -> Any:
        parts.append(part)
        part.start()
        return part

    yield start
    for part in reversed(parts):
        part.stop()
    for part in reversed(parts):
        assert part.join(TIMEOUT), f"the {part.name} did not end"


@pytest.fixture
def signs() -> Signs:
    """The signs of a worker."""
    signs = Signs()
    signs.worker_id = WORKER
    return signs


@pytest.fixture
def define() -> Iterator[Callable[..., JobDefinition[Any, Any]]]:
    """Make a function a job, until the test ends."""
    defined: list[JobDefinition[Any, Any]] = []

    def make(function: Callable[..., Any], **options: Any) -> JobDefinition[Any, Any]:
        options.setdefault("name", f"tests.{len(defined)}.{getattr(function, '__name__', 'job')}")
        defined.append(job(**options)(function))
        return defined[-1]

    yield make
    for definition in defined:
        registry.remove(definition)


@pytest.fixture
def open_store(transactional_db: None) -> Iterator[Callable[..., Store]]:
    """Open a real store on a connection of its own; it is closed when the test ends."""
    opened: list[Store] = []

    def open_one(*args: Any, **options: Any) -> Store:
        opened.append(own_store("default", *args, **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def store(open_store: Callable[..., Store]) -> Store:
    """A real store, for the test's own use."""
    return open_store()


@pytest.fixture
def live(transactional_db: None) -> Iterator[Callable[..., Worker]]:
    """Start a whole worker, in threads of this process; it has stopped when the test ends."""
    running: list[tuple[Worker, threading.Thread]] = []

    def start(size: int = 2, notes: Notes | None = None, **options: Any) -> Worker:
        options = {"shutdown_timeout": 0.2, "heartbeat_interval": 60.0, "lease": 300.0, **options}
        worker = Worker(WorkerOptions(using="default", pools=[Pool(("*",), size)], **options), notes)
        thread = threading.Thread(target=worker.run, name="the worker", daemon=True)
        running.append((worker, thread))
        thread.start()
        return worker

    yield start
    for worker, _ in running:
        worker.stop_now()
    for _, thread in running:
        thread.join(TIMEOUT)
        assert not thread.is_alive(), "the worker did not stop"


@pytest.fixture
def refused(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What ``manage.py`` says of a command line that it refuses, run in this process: a new one takes half a second."""

    def run(*arguments: str) -> str:
        told = io.StringIO()
        monkeypatch.setattr(sys, "stderr", told)
        with pytest.raises(SystemExit) as ended:
            execute_from_command_line(["manage.py", *arguments])
        assert ended.value.code not in (0, None)
        return told.getvalue()

    return run
