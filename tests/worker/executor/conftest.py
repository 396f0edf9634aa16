"""Fixtures of the executors' tests."""

import pytest

from django_jobs import registry
from django_jobs.worker.attempt import Runner
from django_jobs.worker.buffer import Buffer
from django_jobs.worker.executor import Executors


@pytest.fixture
def executors(started, signs):
    """Executors, running; what they emit is in ``ended``."""

    def make(size=1, runner=None, emit=None):
        ended = []
        pool = Executors(Buffer(), runner or Runner(registry, signs), emit or ended.append, size)
        pool.ended = ended
        return started(pool)

    return make
