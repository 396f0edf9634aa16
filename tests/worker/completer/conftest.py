"""Fixtures of the completer's tests."""

import pytest

from django_jobs.worker import completer as module, writing
from django_jobs.worker.completer import Completer
from tests.worker.completer.helping import Told, TwoAtOnce
from tests.worker.fakes import FakeStore


@pytest.fixture
def store():
    return FakeStore()


@pytest.fixture
def pauses(monkeypatch):
    """The failures in a row before each pause; there is no waiting."""
    seen = []
    monkeypatch.setattr(writing, "pause_after", lambda failures, *longest: seen.append(failures) or 0.0)
    return seen


@pytest.fixture
def small(monkeypatch):
    """Batches of 10, and room for 20."""
    monkeypatch.setattr(module, "BATCH", 10)
    monkeypatch.setattr(module, "BACKLOG", 20)
    monkeypatch.setattr(module, "LINGER_JOBS", 5)
    monkeypatch.setattr(module, "BUSY", 1000)


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def completer(store, told, started):
    return started(Completer(store.open, told))


@pytest.fixture
def double():
    return TwoAtOnce()
