"""The jobs' pages in front of a hundred thousand rows: by an index, a bounded number of rows, of statements always."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_jobs.admin.job_list import LOOKS
from django_jobs.models import Job
from tests.admin.conftest import url
from tests.admin.test_overview import PAGES
from tests.admin.test_plans import explained, walks

pytestmark = pytest.mark.django_db

ROWS = 100_000
# The statements of a page at most, without two for the session and the user.
BUDGETS = {
    "job_changelist": 3,
    **{
        f"?state={state}": 3
        for state in ("pending", "scheduled", "available", "running", "completed", "failed")
    },
    "?state=failed&since=1h": 3,
    # What is rare is looked for among a bounded number of jobs.
    "?state=completed&queue=mail&name=tests.b&priority=3": 7,
    "?state=completed&queue=nobody": 7,
    "?state=failed&error=nobody&since=30d": 7,
    "?q=nobody": 7,
    "?key=nobody": 7,
    "?tag=nobody": 7,
    "?q=12345": 3,
    "?q=ann&in=arguments": 9,
    "?q=nobody&in=arguments&state=completed": 5,
    "job_failures": 2,
    "job": 10,
}


@pytest.fixture
def history(database_name: str) -> int:
    """Jobs of each kind, most of them ended; the newest has relatives. Its id."""
    is_postgresql = database_name == "postgresql"
    numbers = (
        "SELECT value AS number FROM generate_series(1, %s) AS value"
        if is_postgresql
        else "WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < %s) "
        "SELECT number FROM numbers"
    )
    ago = (
        "now() - number * interval '1 second'"
        if is_postgresql
        else "strftime('%%Y-%%m-%%d %%H:%%M:%%f000', 'now', '-' || number || ' seconds')"
    )
    no = "false" if is_postgresql else "0"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO django_jobs_job (name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims,
                run_after, created_at, attempted_at, finalized_at, worker_id, holds_key, error_class, unique_key, tags,
                metadata)
            SELECT CASE number %% 2 WHEN 0 THEN 'tests.a' ELSE 'tests.b' END,
                CASE number %% 3 WHEN 0 THEN 'mail' ELSE 'other' END,
                '["ann"]', '{{"note":"hello"}}', number %% 7,
                CASE number %% 50 WHEN 0 THEN 'running' WHEN 1 THEN 'available' WHEN 2 THEN 'failed'
                     WHEN 3 THEN 'scheduled' WHEN 4 THEN 'pending' WHEN 5 THEN 'cancelled' ELSE 'completed' END,
                1, 5, 1, {ago}, {ago}, {ago}, CASE WHEN number %% 50 IN (0, 1, 3, 4) THEN NULL ELSE {ago} END,
                7, {no}, CASE WHEN number %% 50 = 2 THEN 'ValueError' END,
                CASE WHEN number %% 10 = 2 THEN 'key' END, '["tag"]', '{{"schedule":"nightly"}}'
            FROM ({numbers}) AS numbers ORDER BY number DESC
            """,
            [ROWS],
        )
        cursor.execute("ANALYZE")
    return Job.objects.filter(unique_key="key").latest("id").pk


def addresses(history: int) -> dict[str, str]:
    special = {
        "job": url("job_change", history),
        "job_failures": url("job_failures"),
        "job_changelist": url("job_changelist"),
    }
    return {name: special.get(name) or url("job_changelist") + name for name in BUDGETS}


def read_of_jobs(sql: str) -> int:
    """How many rows of jobs PostgreSQL reads for a statement, by whatever index, those that it skips included."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + sql.replace("%", "%%"), [])
        (answer,) = cursor.fetchone()
    plan = json.loads(answer) if isinstance(answer, str) else answer

    def rows(node: dict[str, Any]) -> Iterator[float]:
        if node.get("Relation Name") == "django_jobs_job" or "django_jobs_job" in node.get("Index Name", ""):
            yield (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for child in node.get("Plans", []):
            yield from rows(child)

    return int(max(rows(plan[0]["Plan"]), default=0))


def test_pages(admin: Client, history: int, database_name: str) -> None:
    for name, address in addresses(history).items():
        with CaptureQueriesContext(connection) as captured:
            response = admin.get(address)
        assert response.status_code == 200
        assert len(captured) - 2 <= BUDGETS[name], (
            name,
            [query["sql"][:80] for query in captured.captured_queries],
        )
        reads = [query["sql"] for query in captured.captured_queries if "django_jobs_job" in query["sql"]]
        assert reads
        for sql in reads:
            plan = list(explained(sql, database_name))
            assert not [line for line in plan if walks(line, database_name)], (name, sql, plan)
            if database_name == "postgresql":
                assert read_of_jobs(sql) <= LOOKS, (name, sql)


def test_the_other_pages_read_no_more_of_them(admin: Client, history: int, database_name: str) -> None:
    """By an index, too: a count of all rows is one, and no walk through the table."""
    for page, address in PAGES.items():
        with CaptureQueriesContext(connection) as captured:
            assert admin.get(address).status_code == 200
        for sql in (query["sql"] for query in captured.captured_queries):
            assert "DISTINCT" not in sql.upper(), (page, sql)
            if database_name == "postgresql" and "django_jobs_job" in sql:
                assert read_of_jobs(sql) <= LOOKS, (page, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM django_jobs_job WHERE finalized_at IS NOT NULL",
        "SELECT state, count(*) FROM django_jobs_job WHERE finalized_at IS NOT NULL GROUP BY state",
        "SELECT id FROM django_jobs_job WHERE finalized_at IS NOT NULL ORDER BY name LIMIT 50",
    ],
)
def test_the_bound_would_be_seen_to_be_passed(history: int, database_name: str, sql: str) -> None:
    if database_name == "postgresql":
        assert read_of_jobs(sql) > LOOKS


def test_a_question_counts_no_further_than_it_tells(admin: Client, history: int, database_name: str) -> None:
    data = {"action": "delete", "scope": "all", "query": "?state=completed"}
    with CaptureQueriesContext(connection) as captured:
        response = admin.post(url("job_act"), data)
    assert response.context["count"].capped
    assert int(response.context["count"]) == 10_000
    assert len(captured) - 2 <= 2
    for query in captured.captured_queries:
        if "django_jobs_job" in query["sql"]:
            assert not [line for line in explained(query["sql"], database_name) if walks(line, database_name)]


def test_a_step_of_an_action_is_bounded(admin: Client, history: int) -> None:
    data = {"action": "delete", "scope": "all", "query": "?state=completed", "confirmed": "yes"}
    with CaptureQueriesContext(connection) as captured:
        response = admin.post(url("job_act"), data)
    assert response.context["total"] == 20_000
    writes = [query for query in captured.captured_queries if re.match(r"\s*DELETE", query["sql"])]
    assert len(writes) == 20
    assert len(captured) <= 50
