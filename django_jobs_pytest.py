"""Fixtures for pytest: ``django_jobs.testing``, with the database asked for.

A module beside the package, and empty of imports from it: pytest loads its plugins first, and what they import is
imported before a coverage tool begins, and before Django has its settings, in every project of the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from django_jobs.store.rows import JobRow
    from django_jobs.testing import Clock


#: Fixtures that use the database. (The clock uses none.)
WITH_DATABASE = ("run_jobs", "drain_jobs", "assert_enqueued", "immediate_jobs", "captured_jobs")


@pytest.hookimpl(wrapper=True)  # before pytest-django, which sorts tests by the database that they need
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Let a test that has one of our fixtures use the database, where pytest-django guards that.

    By the mark, and not by a fixture that asks for another one when it is set up: pytest-django makes test databases
    for what it can tell from the collected tests, and without one a test would be let at the real database.
    """
    if config.pluginmanager.hasplugin("django"):
        for item in items:
            if item.get_closest_marker("django_db") is None and _uses_database(item):
                item.add_marker(pytest.mark.django_db)
    return (yield)


def _uses_database(item: pytest.Item) -> bool:
    """Whether it has one of our fixtures: ours, not one of the project's own by the same name."""
    known: Any = getattr(item, "_fixtureinfo", None)
    definitions = {} if known is None else known.name2fixturedefs
    return any(
        name in definitions and definitions[name][-1].func.__module__ == __name__ for name in WITH_DATABASE
    )


@pytest.fixture
def run_jobs() -> Callable[..., list[JobRow]]:
    """Run each job that is due, once: :func:`django_jobs.testing.run_jobs`."""
    from django_jobs import testing

    return testing.run_jobs


@pytest.fixture
def drain_jobs() -> Callable[..., list[JobRow]]:
    """Run jobs until nothing is due: :func:`django_jobs.testing.drain`."""
    from django_jobs import testing

    return testing.drain


@pytest.fixture
def assert_enqueued() -> Callable[..., JobRow]:
    """Assert that a job waits: :func:`django_jobs.testing.assert_enqueued`."""
    from django_jobs import testing

    return testing.assert_enqueued


@pytest.fixture
def jobs_clock() -> Iterator[Clock]:
    """The clock that the queue goes by in this test: :func:`django_jobs.testing.time_travel`."""
    from django_jobs import testing

    with testing.time_travel() as clock:
        yield clock


@pytest.fixture
def immediate_jobs() -> Iterator[None]:
    """In this test a job runs as it is enqueued: :func:`django_jobs.testing.immediate`."""
    from django_jobs import testing

    with testing.immediate():
        yield


@pytest.fixture
def captured_jobs() -> Iterator[list[Any]]:
    """The jobs that the test has enqueued so far: :class:`django_jobs.testing.capture_jobs`."""
    from django_jobs import testing

    with testing.capture_jobs() as jobs:
        yield jobs
