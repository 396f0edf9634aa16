"""Fixtures of the keeper's tests."""

import pytest

from django_jobs.worker.keeper import Keeper
from tests.waiting import eventually
from tests.worker.keeper.helping import LEASE


@pytest.fixture
def make(open_store):
    """A keeper on the database, with what it has told in ``woken``."""

    def make(lease=LEASE, trusted=3600.0):
        woken = []
        keeper = Keeper(open_store, lease, lambda: keeper.trusted, woken.append)
        keeper.woken, keeper.trusted = woken, trusted
        return keeper

    return make


@pytest.fixture
def keeper(make, started):
    keeper = started(make(lease=30.0))
    eventually(lambda: keeper.leads)
    return keeper
