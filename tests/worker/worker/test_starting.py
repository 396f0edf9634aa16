"""The database is away as the worker starts."""

import threading

import pytest
from django.db.utils import OperationalError

from django_jobs.worker import worker as module
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT
from tests.worker.worker.helping import NEVER, Run, job


def test_a_worker_waits_for_a_database_that_is_away(transactional_db, monkeypatch, define, run):
    monkeypatch.setattr(module, "pause_after", lambda failures: 0.0)
    row = define(lambda: None).enqueue()
    one = Run()
    tries = []
    register = one.worker.store.register_worker

    def refuse(*args):
        tries.append(1)
        if len(tries) < 5:
            raise OperationalError("away")
        return register(*args)

    one.worker.store.register_worker = refuse
    one.start()
    eventually(lambda: job(row).state == "completed")
    assert one.stop() == 0
    assert len(tries) == 5


def test_it_can_be_stopped_while_it_waits(transactional_db, monkeypatch):
    monkeypatch.setattr(module, "pause_after", lambda failures: NEVER)
    one = Run()
    tried = threading.Event()

    def refuse(*args):
        tried.set()
        raise OperationalError("away")

    one.worker.store.register_worker = refuse
    one.start()
    assert tried.wait(TIMEOUT)

    assert one.stop() == 0


def test_a_drain_does_not_wait_for_it(transactional_db):
    one = Run(drain=True)

    def refuse(*args):
        raise OperationalError("away")

    one.worker.store.register_worker = refuse
    one.start()
    with pytest.raises(OperationalError):
        one.end()
