"""The worker's fixtures, and workers whose statements fail."""

from collections.abc import Callable

import pytest

from django_jobs.store import low_water
from django_jobs.worker import Worker, insisting, parts, stores, worker as worker_module, writing
from django_jobs.worker.keeper import Keeper
from tests.faults.failing import Failures
from tests.worker.conftest import define, live, open_store, store

__all__ = ["define", "live", "open_store", "store"]


@pytest.fixture
def failing(live: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Worker]:
    """Start a worker whose statements fail as told."""

    def start(failures: Failures, **options: object) -> Worker:
        own_store = stores.own_store

        def open_failing(*args, **kwargs):
            opened = own_store(*args, **kwargs)
            failures.install(opened.session)
            return opened

        monkeypatch.setattr(stores, "own_store", open_failing)
        monkeypatch.setattr(low_water, "SLOW_SECONDS", 3600.0)  # all claims are made by the one statement
        for module in (
            writing,
            parts,
            insisting,
            worker_module,
        ):  # so many failures in a row would take a while
            monkeypatch.setattr(module, "pause_after", lambda failures: 0.01)

        def impatient(open_store, lease, trusted_for, *others):
            return Keeper(open_store, 0.6, lambda: 3600.0, *others)

        # It rescues often, and need not have lived for a lease before; the worker's own lease is a long one.
        monkeypatch.setattr(worker_module, "Keeper", impatient)
        return live(**options)

    return start
