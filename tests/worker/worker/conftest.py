"""Fixtures of the tests of whole workers, in threads of this process."""

import pytest

from django_jobs.worker import Pool, producer
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, Gate
from tests.worker.worker.helping import NEVER, Run


@pytest.fixture
def run(transactional_db):
    """Start a worker; it has ended when the test ends."""
    runs = []

    def run(**options):
        runs.append(Run(**options))
        return runs[-1].start()

    yield run
    for one in runs:
        one.worker.stop_now()
    for one in runs:
        one.thread.join(TIMEOUT)
        assert not one.thread.is_alive(), "a worker did not end"


@pytest.fixture
def drain(run):
    """Run a worker until nothing is due."""

    def drain(**options):
        one = run(drain=True, **options)
        assert one.end() == 0
        return one.worker

    return drain


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def busy(run, define, gate):
    """A worker of one executor, at a job that waits for the gate, with ten quick jobs buffered behind it."""

    def busy(function=None, **options):
        quick = define(lambda: None)
        slow = define(function or (gate.enter), max_attempts=3)
        quick.enqueue_many([()] * 200)
        running = slow.enqueue()
        behind = quick.enqueue_many([()] * 10)
        one = run(pools=[Pool(("*",), 1)], **options)
        gate.wait()
        eventually(lambda: len(one.worker.pools[0].buffer.jobs) == 10)
        return one, running, [row.id for row in behind]

    return busy


@pytest.fixture
def patient(monkeypatch):
    """What waits behind a slow job is not given back for that."""
    monkeypatch.setattr(producer, "STALE_SECONDS", NEVER)
