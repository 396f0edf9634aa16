"""The plans that the reference has recorded are those of the server.

With ``DJANGO_JOBS_TEST_WRITE_PLANS=1`` they are written anew instead: after a change of a statement or of an index, on
the newest PostgreSQL.
"""

import os
import sys

import pytest
from django.db import connection

from tests.docs.pages import DOCS

sys.path.append(str(DOCS))  # where Sphinx finds it, too
import postgresql_plans  # type: ignore[import-not-found]

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]

WRITE = bool(os.environ.get("DJANGO_JOBS_TEST_WRITE_PLANS"))
ANEW = "write them anew: make test-postgresql ARGS=tests/docs with DJANGO_JOBS_TEST_WRITE_PLANS=1, and look at the diff"


def test_the_recorded_plans_are_the_servers() -> None:
    version = str(connection.cursor().connection.info.server_version // 10_000)
    found = postgresql_plans.plans(connection)
    if WRITE:
        postgresql_plans.write(version, found)

    recorded_on, recorded = postgresql_plans.read()

    assert list(recorded) == list(found), ANEW
    if version == recorded_on:
        assert recorded == found, ANEW
    else:  # which draws its plans in another way
        indexes = {name: postgresql_plans.indexes(lines) for name, lines in found.items()}
        assert {name: postgresql_plans.indexes(lines) for name, lines in recorded.items()} == indexes
