"""Fixtures of the tests of one attempt."""

import json

import pytest

from django_jobs import registry
from django_jobs.worker.attempt import Runner
from tests.worker.fakes import row


@pytest.fixture
def run(define, signs):
    """Run a function as a job, once, and return how that ended."""

    def run(function, *args, columns=None, factories=(), **options):
        kwargs = options.pop("kwargs", {})
        definition = define(function, **options)
        columns = {"args": json.dumps(args), "kwargs": json.dumps(kwargs), **(columns or {})}
        return Runner(registry, signs, factories).run(row(name=definition.name, **columns))

    return run
