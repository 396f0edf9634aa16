"""Fixtures of the store's tests: a clock that the test holds, stores on connections of their own, a builder.

The tests need committed data, since several connections see it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_jobs.store import Store, django_store, own_store
from tests.store.builders import Builder, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_store(transactional_db: None) -> Iterator[Callable[..., Store]]:
    """Open another store on a connection of its own; it is closed when the test ends."""
    opened: list[Store] = []

    def open_one(**options: Any) -> Store:
        opened.append(own_store("default", **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def store(open_store: Callable[..., Store]) -> Store:
    """A store on a connection of its own."""
    return open_store()


@pytest.fixture
def shared(transactional_db: None) -> Store:
    """The store on Django's connection: in the caller's transaction."""
    return django_store("default")


@pytest.fixture
def make(store: Store, clock: Clock) -> Builder:
    return Builder(store, clock)
