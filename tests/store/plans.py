"""PostgreSQL's plans, for the tests that look at them."""

import json
import re
from typing import Any

from django.db import connection
from psycopg import sql

from django_jobs.store.statements import Statement

KEY = "django_jobs_job_pkey"
CLAIM, DUE, RUNNING = "django_jobs_job_claim", "django_jobs_job_due", "django_jobs_job_running"
FINISHED, UNIQUE = "django_jobs_job_finished", "django_jobs_job_unique_key"
CANCEL = "django_jobs_job_cancel"


def fill(cursor: Any, count: int, **columns: str) -> None:
    values = {
        "name": "tests.job", "queue_name": "default", "args": "[]", "kwargs": "{}", "priority": "0", "attempt": "0",
        "max_attempts": "5", "claims": "1", "run_after": "now()", "created_at": "now()", "holds_key": "false",
        **columns,
    }  # fmt: skip
    quoted = [value if "now()" in value or value == "false" else f"'{value}'" for value in values.values()]
    cursor.execute(
        f"INSERT INTO django_jobs_job ({', '.join(values)}) SELECT {', '.join(quoted)} FROM generate_series(1, {count})"
    )


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]


def explained(
    driver: Any, statement: Statement, parameters: dict[str, Any], analyze: bool = False
) -> dict[str, Any]:
    """The topmost node of the plan that a prepared statement gets in this session.

    :param analyze: run it, and undo what it does; each node tells what it has read.
    """
    numbers: dict[str, int] = {}
    text = re.sub(
        r"(?<![:\w]):([a-z_]+)\b",
        lambda match: f"${numbers.setdefault(match[1], len(numbers) + 1)}",
        statement.named,
    )
    arguments = sql.SQL(", ").join(sql.Literal(parameters[name]) for name in numbers)
    execute = sql.SQL("EXECUTE tested({})").format(arguments) if numbers else sql.SQL("EXECUTE tested")
    options = sql.SQL("ANALYZE, BUFFERS, FORMAT JSON" if analyze else "FORMAT JSON")
    explain = sql.SQL("EXPLAIN ({}) {}").format(options, execute)
    driver.execute(f"PREPARE tested AS {text}", prepare=False)
    if analyze:
        with driver.transaction(force_rollback=True):
            ((plan,),) = driver.execute(explain, prepare=False).fetchall()
        driver.execute("DEALLOCATE ALL", prepare=False)  # as the driver itself does after a rollback
    else:
        ((plan,),) = driver.execute(explain, prepare=False).fetchall()
        driver.execute("DEALLOCATE tested", prepare=False)
    topmost: dict[str, Any] = decoded(plan)[0]["Plan"]
    return topmost


def generic_plan(driver: Any, statement: Statement, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes of that plan."""
    return nodes(explained(driver, statement, parameters))


def custom_plan(statement: Statement, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes of the plan with just these parameters, on Django's connection."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement.pyformat}", parameters)
        return nodes(decoded(cursor.fetchone()[0])[0]["Plan"])


def decoded(plan: Any) -> Any:
    return json.loads(plan) if isinstance(plan, str) else plan


def indexes_of_jobs(plan: list[dict[str, Any]]) -> set[str]:
    """The indexes by which the table of jobs is read; a scan of it all is told by its own name."""
    reads = [node for node in plan if "Scan" in node["Node Type"]]
    whole = {
        node["Node Type"]
        for node in reads
        if node.get("Relation Name") == "django_jobs_job" and "Index Name" not in node
    }
    return whole | {
        node["Index Name"] for node in reads if node.get("Index Name", "").startswith("django_jobs_job_")
    }
