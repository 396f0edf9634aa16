"""PostgreSQL's plans, with statistics that are stale as a queue's are: by the intended index, whatever was estimated.

The worker's own statements are planned as the worker's session does it: prepared, with a generic plan, under the
session's settings. Those that find jobs by id or key must be right under a site's own settings too.
"""

from typing import Any

import pytest
from django.db import connection

from django_jobs.store.selecting import Criteria
from tests.store.builders import Recorder
from tests.store.operations import operations
from tests.store.plans import (
    CANCEL,
    CLAIM,
    DUE,
    FINISHED,
    KEY,
    RUNNING,
    UNIQUE,
    custom_plan,
    decoded,
    fill,
    generic_plan,
    indexes_of_jobs,
)

pytestmark = pytest.mark.postgresql

PENDING = "django_jobs_job_pending"

# The indexes of the table of jobs that each operation goes by.
INDEXES = {
    "insert": set(),
    "insert_now": set(),
    "insert_many": set(),
    "insert_unique": {UNIQUE},
    "insert_unique, duplicate": {UNIQUE},
    "insert_many_unique": {UNIQUE},
    "insert_many_unique, duplicates": {UNIQUE},
    "replace": {KEY},
    "release_pending": {KEY},
    "claim": {KEY, CLAIM},
    "finish": {KEY},
    "complete": {KEY},
    "finish, whole rows": {KEY},
    "finish_and_delete": {KEY},
    "merge_metadata": {KEY},
    "cancel_requests": {CANCEL},
    "release": {KEY},
    "cancel": {KEY},
    "retry": {KEY, UNIQUE},
    "promote": {KEY, DUE},
    "next_due": {DUE},
    "rescue": {KEY, RUNNING},
    "rescue, one worker": {KEY, RUNNING},
    "rescue, some jobs": {KEY, RUNNING},
    "running": {RUNNING},
    "held_jobs": {RUNNING},
    "purge": {KEY, FINISHED},
    "update": {KEY},
    "edit": {KEY},
    "delete": {KEY},
    "delete, ended": {KEY},
    "select_newest": {KEY},
    "select_finished": {FINISHED},
    "select_running": {RUNNING},
    "select_scheduled": {DUE},
    "select_available": {CLAIM},
    "select_queues": {CLAIM},
    "select_given": {KEY},
    "select_expired": {FINISHED},
    "count_states": {PENDING, DUE, CLAIM, RUNNING, FINISHED},
    "count_queues": {PENDING, DUE, RUNNING, FINISHED},
    "count_available": {CLAIM},
    "count_dead": {FINISHED},
    "waiting": {KEY, CLAIM},
    "select_finished, in arguments": {FINISHED, KEY},
    "glance": {KEY},
    "get": {KEY},
    "waiting_queues": {CLAIM},
    "heartbeat": {CANCEL},
    "purge_workers": {RUNNING},
}
BY_ID = [
    "insert_unique",
    "insert_unique, duplicate",
    "insert_many_unique",
    "insert_many_unique, duplicates",
    "replace",
    "release_pending",
    "finish",
    "complete",
    "finish, whole rows",
    "finish_and_delete",
    "merge_metadata",
    "release",
    "cancel",
    "retry",
    "update",
    "edit",
    "delete",
    "delete, ended",
    "select_given",
    "glance",
    "get",
]
IN_ORDER = ["claim", "promote", "next_due", "purge", "running"]
SEARCHES = [
    "select_newest",
    "select_finished",
    "select_running",
    "select_scheduled",
    "select_available",
    "select_queues",
    "select_expired",
]
BOUNDED = ["claim", "promote", "purge"]

COUNTS = ["count_states", "count_queues", "count_available", "count_dead", "waiting"]
ALL = {CLAIM, DUE, RUNNING, FINISHED, PENDING}


@pytest.fixture
def stale(transactional_db):
    """20,000 completed jobs are all that ANALYZE has seen; then come 5,000 of each other kind."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_jobs_job SET (autovacuum_enabled = off)")
        fill(cursor, 20_000, state="completed", finalized_at="now()")
        cursor.execute("ANALYZE django_jobs_job")
        fill(cursor, 5000, state="available", queue_name="busy")
        fill(cursor, 5000, state="scheduled", run_after="now() + interval '1 day'")
        fill(cursor, 5000, state="running", worker_id="7")
        fill(cursor, 5000, state="failed", finalized_at="now()")
    yield
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_jobs_job RESET (autovacuum_enabled)")


@pytest.fixture(params=[1, 2000], ids=["one job", "many jobs"])
def statements(request, stale, shared, make):
    """The statement and the parameters of each operation; those by id are about that many jobs."""
    recorder = shared.session = Recorder(shared.session)
    found = {}
    for name, operation in operations(make, request.param).items():
        recorder.seen.clear()
        operation(shared)
        found[name] = recorder.seen[0]
    return found


def test_the_workers_session_goes_by_the_intended_index(statements, store):
    driver = store.session.connection
    plans = {name: generic_plan(driver, *statements[name]) for name in INDEXES}

    assert {name: indexes_of_jobs(plan) for name, plan in plans.items()} == INDEXES
    for name in BOUNDED:
        limits = [node["Parent Relationship"] for node in plans[name] if node["Node Type"] == "Limit"]
        assert limits == ["InitPlan"], f"{name} may run its subquery again, and then exceeds its limit"
    for name in IN_ORDER:
        assert "Sort" not in {node["Node Type"] for node in plans[name]}, (
            f"{name} sorts what its index has in order"
        )


def test_under_a_sites_own_settings_too_ids_and_keys_are_found_by_their_index(statements):
    plans = {name: custom_plan(*statements[name]) for name in BY_ID}

    assert {name: indexes_of_jobs(plan) for name, plan in plans.items()} == {
        name: INDEXES[name] for name in BY_ID
    }


def test_a_site_that_forces_generic_plans_too(statements):
    with connection.cursor() as cursor:
        cursor.execute("SET plan_cache_mode = force_generic_plan")
        try:
            plans = {name: generic_plan(connection.connection, *statements[name]) for name in BY_ID}
        finally:
            cursor.execute("RESET plan_cache_mode")

    assert {name: indexes_of_jobs(plan) for name, plan in plans.items()} == {
        name: INDEXES[name] for name in BY_ID
    }


def test_under_a_sites_own_settings_a_search_goes_by_its_index_and_stops_at_its_bound(statements):
    plans = {name: custom_plan(*statements[name]) for name in SEARCHES}

    assert {name: indexes_of_jobs(plan) for name, plan in plans.items()} == {
        name: INDEXES[name] for name in SEARCHES
    }
    for name, plan in plans.items():
        # What is looked at comes out of the index in its order, and only so far as the limit goes.
        for node in plan:
            if "Sort" in node["Node Type"]:
                assert "django_jobs_job" not in {each.get("Relation Name") for each in fed_by(node)}, name


def test_what_is_counted_is_read_off_its_index_in_its_order_whatever_the_site_sets(statements, store):
    for name in COUNTS:
        statement, parameters = statements[name]
        parameters = {**parameters, "most": 10_001}
        for plan in (
            custom_plan(statement, parameters),
            generic_plan(store.session.connection, statement, parameters),
            generic_plan(connection.connection, statement, parameters),
        ):
            assert indexes_of_jobs(plan) == INDEXES[name], name
            for node in plan:
                if "Sort" in node["Node Type"]:
                    assert not {each.get("Index Name") for each in fed_to_its_limit(node)} & ALL, name


def test_with_very_many_jobs_no_plan_is_so_dear_that_it_is_compiled_first(statements):
    """PostgreSQL compiles what it estimates above jit_above_cost, which takes longer than all these bounded reads."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE django_jobs_job")
        cursor.execute(
            "UPDATE pg_class SET reltuples = 4e4 * reltuples WHERE oid = 'django_jobs_job'::regclass "
            "OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'django_jobs_job'::regclass)"
        )
        cursor.execute("SELECT setting::float8 FROM pg_settings WHERE name = 'jit_above_cost'")
        [(dear,)] = cursor.fetchall()
        cursor.execute("EXPLAIN (FORMAT JSON) SELECT count(*) FROM django_jobs_job")
        every = decoded(cursor.fetchone()[0])[0]["Plan"]

    assert every["Total Cost"] > 10 * dear
    # What is purged is looked for by the worker's own session, which compiles nothing.
    pages = [name for name in SEARCHES if name != "select_expired"]
    for name in (*pages, "select_finished, in arguments", *COUNTS):
        statement, parameters = statements[name]
        look = {"look": 10_000} if "look" in parameters else {}
        most = {"most": 10_000} if name in COUNTS else {}
        assert custom_plan(statement, {**parameters, **look, **most})[0]["Total Cost"] < dear, name


def fed_to_its_limit(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes that feed this one, down to those that stop at a limit."""
    if plan["Node Type"] in ("Limit", "Aggregate"):
        return []
    return [plan, *(node for child in plan.get("Plans", []) for node in fed_to_its_limit(child))]


def fed_by(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The node and those whose rows it takes; common table expressions, which hang on the topmost node, are not."""
    children = [child for child in plan.get("Plans", []) if child["Parent Relationship"] != "InitPlan"]
    return [plan, *(node for child in children for node in fed_by(child))]


@pytest.fixture
def never_analysed(transactional_db):
    """Jobs in a table of which no statistics are known: the planner guesses a few of each kind."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_jobs_job SET (autovacuum_enabled = off)")
        cursor.execute("DELETE FROM pg_statistic WHERE starelid = 'django_jobs_job'::regclass")
        fill(cursor, 100_000, state="failed", finalized_at="now()")
        fill(cursor, 10_000, state="available", queue_name="busy")
    yield
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_jobs_job RESET (autovacuum_enabled)")


def test_where_nothing_is_known_of_the_table_what_is_counted_is_not_sorted(never_analysed, shared):
    recorder = shared.session = Recorder(shared.session)
    shared.count_states(10_001)
    shared.count_queues(10_001)
    shared.count_available(["busy"], 10_001)
    shared.count_dead(10_001)

    for statement, parameters in recorder.seen:
        for node in custom_plan(statement, parameters):
            if "Sort" in node["Node Type"]:
                fed = {each.get("Relation Name") for each in fed_to_its_limit(node)}
                assert "django_jobs_job" not in fed, statement.name


def test_where_nothing_is_known_of_the_table_what_is_looked_at_is_not_sorted(never_analysed, shared):
    recorder = shared.session = Recorder(shared.session)
    for state in ("failed", "available"):
        assert len(shared.select(Criteria(state=state), most=10).ids) == 10
    shared.select(Criteria(), most=10)

    assert {statement.name for statement, _ in recorder.seen} == {
        "select_finished",
        "select_queues",
        "select_newest",
    }
    for statement, parameters in recorder.seen:
        for node in custom_plan(statement, parameters):
            if "Sort" in node["Node Type"]:
                fed = {each.get("Relation Name") for each in fed_to_its_limit(node)}
                assert "django_jobs_job" not in fed, statement.name


@pytest.mark.parametrize("name", ["finish", "complete", "finish_and_delete", "release", "merge_metadata"])
def test_with_the_state_where_the_row_is_looked_up_another_index_looks_shorter(statements, name):
    """What OFFSET 0 keeps away: all running jobs would be read for each outcome."""
    statement, parameters = statements[name]
    bare = statement._replace(
        pyformat=statement.pyformat.replace("OFFSET 0 FOR UPDATE", "AND state = 'running' FOR UPDATE")
    )
    assert bare != statement
    assert RUNNING in indexes_of_jobs(custom_plan(bare, parameters))
