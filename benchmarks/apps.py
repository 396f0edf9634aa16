"""The app of the site that is measured: what a benchmark asks of a worker that is run as users run it."""

from __future__ import annotations

import os

from django.apps import AppConfig

# How many completion writers the store declares; unset: as many as it does.
WRITERS = "BENCHMARKS_WRITERS"
# A folder to which each process writes, when it ends, how many statements it ran on SQLite.
COUNT_STATEMENTS = "BENCHMARKS_COUNT_STATEMENTS"


class BenchmarksConfig(AppConfig):
    """Does nothing to a worker unless a variable of the environment asks for it."""

    name = "benchmarks"

    def ready(self) -> None:
        """Do what the environment asks for."""
        if writers := os.environ.get(WRITERS):
            declare_writers(int(writers))
        if folder := os.environ.get(COUNT_STATEMENTS):
            from benchmarks.core.tracing import count_statements

            count_statements(folder)


def declare_writers(number: int) -> None:
    """Let stores declare that number of completion writers: the capability that the worker asks for."""
    from django_jobs.store.postgresql import PostgreSQLStore

    PostgreSQLStore.completion_concurrency = number  # type: ignore[method-assign, assignment]
