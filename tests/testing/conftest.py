"""The tests of the helpers run in the transaction of a TestCase, and outside of one."""

import pytest

from tests.testing import jobs

WAYS = [
    pytest.param(True, marks=pytest.mark.django_db, id="in the test's transaction"),
    pytest.param(False, marks=pytest.mark.django_db(transaction=True), id="without one"),
]


@pytest.fixture(params=WAYS)
def anywhere(request: pytest.FixtureRequest) -> bool:
    """The database, in both ways that tests have it; whether it is in a transaction."""
    return bool(request.param)


@pytest.fixture(autouse=True)
def ran() -> list[object]:
    jobs.ran.clear()
    return jobs.ran
