"""What pages read, they read by an index, or they read a table that is small: the table of jobs is never walked."""

import datetime as dt
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobs.models import Job, Schedule, Worker
from tests.admin.conftest import STATES
from tests.admin.test_overview import PAGES

pytestmark = pytest.mark.django_db

# Enough that PostgreSQL, left to itself, walks the table only where nothing else would do.
ROWS = 40_000
BIG = ("django_jobs_job", "django_jobs_stat")


@pytest.fixture
def history(database_name: str) -> Worker:
    """Many finished jobs, and statistics of years; a little of all that is now."""
    now = timezone.now()
    worker = Worker.objects.create(
        host="a",
        pid=1,
        queues=["mail"],
        started_at=now,
        heartbeat_at=now,
        expires_at=now + dt.timedelta(hours=1),
    )
    numbers = (
        "SELECT value AS number FROM generate_series(1, %s) AS value"
        if database_name == "postgresql"
        else "WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < %s) "
        "SELECT number FROM numbers"
    )
    ago = (
        "now() - number * interval '1 second'"
        if database_name == "postgresql"
        else "strftime('%%Y-%%m-%%d %%H:%%M:%%f000', 'now', '-' || number || ' seconds')"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO django_jobs_job (name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims,
                run_after, created_at, finalized_at, worker_id, holds_key)
            SELECT 'a', CASE number %% 3 WHEN 0 THEN 'mail' ELSE 'other' END, '[]', '{{}}', 0,
                CASE WHEN number %% 100 = 0 THEN 'running' WHEN number %% 100 = 1 THEN 'available'
                     WHEN number %% 100 = 2 THEN 'failed' ELSE 'completed' END,
                1, 5, 1, {ago}, {ago}, CASE WHEN number %% 100 > 1 THEN {ago} END,
                {worker.pk}, {"false" if database_name == "postgresql" else "0"}
            FROM ({numbers}) AS numbers
            """,
            [ROWS],
        )
        minute = ago.replace("interval '1 second'", "interval '1 hour'").replace("' seconds'", "' hours'")
        cursor.execute(
            f"""
            INSERT INTO django_jobs_stat (minute, queue_name, name, outcome, error_class, count, run_total, run_max,
                wait_total, wait_max)
            SELECT {minute}, 'mail', 'a', 'completed', '', 1, 1, 1, 1, 1 FROM ({numbers}) AS numbers
            """,
            [ROWS],
        )
        cursor.execute("ANALYZE")
    Schedule.objects.create(
        key="a", name="a", expression="@daily", owed_after=now, created_at=now, updated_at=now, last_job_id=1
    )
    return worker


def explained(sql: str, database_name: str) -> Iterator[str]:
    """The lines of a plan that tell how a table is reached: ``table how``."""
    with connection.cursor() as cursor:
        if database_name == "sqlite":
            cursor.execute("EXPLAIN QUERY PLAN " + sql.replace("%", "%%"), [])
            for row in cursor.fetchall():
                yield row[3]
        else:
            cursor.execute("EXPLAIN (FORMAT JSON) " + sql.replace("%", "%%"), [])
            (answer,) = cursor.fetchone()
            plan = json.loads(answer) if isinstance(answer, str) else answer
            yield from nodes(plan[0]["Plan"])


def nodes(plan: dict[str, Any]) -> Iterator[str]:
    """The scans of a plan of PostgreSQL's, as SQLite would tell them."""
    if "Relation Name" in plan:
        index = plan.get("Index Name", "")
        yield f"{plan['Node Type']} {plan['Relation Name']} {index}"
    for child in plan.get("Plans", []):
        yield from nodes(child)


def walks(line: str, database_name: str) -> bool:
    """Whether a line of a plan tells that one of the big tables is read whole."""
    if database_name == "postgresql":
        return line.startswith("Seq Scan") and any(f" {table} " in line for table in BIG)
    return bool(re.match(r"SCAN (django_jobs_job|django_jobs_stat|job|live)\b(?! USING)", line))


def test_no_page_walks_through_the_jobs(admin: Client, history: Worker, database_name: str) -> None:
    failed = Job.objects.filter(state="failed").latest("id").pk
    jobs = "/admin/django_jobs/job/"
    paths = {
        **PAGES,
        "week": f"{PAGES['overview']}?period=week",
        "worker": f"/admin/django_jobs/worker/{history.pk}/change/",
        "purge": "/admin/django_jobs/queue/purge/?queue=mail",
        "dead letters": f"{jobs}failures/",
        "job": f"{jobs}{failed}/change/",
        "jobs": jobs,
        **{state: f"{jobs}?state={state}" for state in STATES},
        "jobs of a queue": f"{jobs}?queue=mail",
        "jobs by a word": f"{jobs}?q=nobody",
        "jobs by arguments": f"{jobs}?q=nobody&in=arguments",
        "jobs of a name that failed lately": f"{jobs}?state=failed&name=a&since=1h",
        "jobs of a worker": f"{jobs}?worker={history.pk}",
        "jobs with a tag": f"{jobs}?tag=none",
        "jobs with a key": f"{jobs}?key=none",
    }
    for page, path in paths.items():
        with CaptureQueriesContext(connection) as captured:
            assert admin.get(path).status_code == 200
        looked = 0
        for query in captured.captured_queries:
            sql = query["sql"]
            if not re.match(r"\s*(SELECT|WITH)", sql) or not any(table in sql for table in BIG):
                continue
            looked += 1
            plan = list(explained(sql, database_name))
            assert not [line for line in plan if walks(line, database_name)], (page, sql, plan)
        assert looked >= 1, page


def test_a_walk_would_be_seen(history: Worker, database_name: str) -> None:
    """The test above can fail: what counts all jobs, as pages elsewhere do, walks."""
    for sql in (
        "SELECT state, count(*) FROM django_jobs_job WHERE name <> 'b' GROUP BY state",
        "SELECT DISTINCT name FROM django_jobs_job",
        "SELECT count(*) FROM django_jobs_stat WHERE count > 1",
    ):
        assert [line for line in explained(sql, database_name) if walks(line, database_name)], sql
