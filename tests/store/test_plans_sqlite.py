"""SQLite's plans: each statement goes by the index that is there for it, and none reads the whole table of jobs."""

import re

import pytest

from django_jobs.store.outcomes import COMPLETED
from django_jobs.store.rows import Outcome
from tests.store.builders import Recorder
from tests.store.operations import operations

pytestmark = pytest.mark.sqlite

KEY = "SEARCH django_jobs_job USING INTEGER PRIMARY KEY (rowid=?)"
ALIASED_KEY = KEY.replace("django_jobs_job", "job")
WORKER = "SEARCH django_jobs_worker USING INTEGER PRIMARY KEY (rowid=?)"
RUNNING = "USING INDEX django_jobs_job_running"
CANCEL = "SEARCH django_jobs_job USING INDEX django_jobs_job_cancel (worker_id=? AND cancel_requested_at>?)"
FINISHED = "SEARCH django_jobs_job USING INDEX django_jobs_job_finished"
CLAIM = "SEARCH django_jobs_job USING INDEX django_jobs_job_claim"
RESCUE = {
    KEY,
    f"SEARCH django_jobs_job {RUNNING}",
    f"SEARCH job {RUNNING} (worker_id>?)",
    f"SEARCH job {RUNNING} (worker_id=?)",
    "SEARCH worker USING INTEGER PRIMARY KEY (rowid=?)",
}
STAT = "django_jobs_stat USING INDEX sqlite_autoindex_django_jobs_stat_1"
IN_STATE = {
    "SCAN django_jobs_job USING INDEX django_jobs_job_pending",
    "SCAN django_jobs_job USING INDEX django_jobs_job_due",
    "SCAN django_jobs_job USING INDEX django_jobs_job_running",
    f"{FINISHED} (state=? AND finalized_at>?)",
}

# How each operation reaches the tables. (A SCAN by django_jobs_job_due walks, in their order, scheduled jobs only.)
PLANS = {
    "insert": set(),
    "insert_now": set(),
    "insert_many": set(),
    "insert_unique": set(),
    "insert_unique, duplicate": set(),
    "insert_many_unique": set(),
    "insert_many_unique, duplicates": set(),
    "replace": {KEY},
    "release_pending": {KEY},
    "claim": {KEY, WORKER, "SEARCH django_jobs_job USING INDEX django_jobs_job_claim (queue_name=?)"},
    "finish": {KEY},
    "complete": {KEY},
    "finish, whole rows": {KEY},
    "finish_and_delete": {KEY},
    "merge_metadata": {KEY},
    "cancel_requests": {CANCEL},
    "release": {KEY},
    "cancel": {KEY},
    "retry": {
        KEY,
        ALIASED_KEY,
        "SEARCH live USING INDEX django_jobs_job_unique_key (unique_key=?)",
    },
    "promote": {KEY, "SEARCH django_jobs_job USING INDEX django_jobs_job_due (run_after<?)"},
    "next_due": {"SCAN django_jobs_job USING INDEX django_jobs_job_due"},
    "rescue": RESCUE,
    "rescue, one worker": RESCUE,
    "rescue, some jobs": RESCUE,
    "running": {f"SEARCH django_jobs_job {RUNNING} (worker_id=? AND id>?)"},
    "held_jobs": {KEY.replace("django_jobs_job", "job"), f"SEARCH head {RUNNING} (worker_id=?)"},
    "purge": {
        KEY,
        "SEARCH django_jobs_job USING INDEX django_jobs_job_finished (state=? AND finalized_at>? AND finalized_at<?)",
    },
    "update": {KEY, ALIASED_KEY},
    "edit": {KEY},
    "delete": {KEY},
    "delete, ended": {KEY},
    "select_newest": {"SEARCH django_jobs_job USING INTEGER PRIMARY KEY (rowid<?)"},
    "select_finished": {f"{FINISHED} (state=? AND finalized_at>? AND finalized_at<?)"},
    "select_running": {f"SEARCH django_jobs_job {RUNNING} (worker_id>?)"},
    "select_scheduled": {"SEARCH django_jobs_job USING INDEX django_jobs_job_due (run_after>?)"},
    "select_available": {
        f"{CLAIM} (queue_name=? AND priority=? AND run_after>?)",
        f"{CLAIM} (queue_name=? AND priority<?)",
    },
    "select_pending": {"SEARCH django_jobs_job USING INDEX django_jobs_job_pending (id<?)"},
    "select_queues": {
        f"{CLAIM} (queue_name=? AND priority=? AND run_after>?)",
        f"{CLAIM} (queue_name=? AND priority<?)",
        f"{CLAIM} (queue_name>?)",
    },
    "select_finished, in arguments": {
        f"{FINISHED} (state=? AND finalized_at>? AND finalized_at<?)",
        "SEARCH job USING INTEGER PRIMARY KEY (rowid=?)",
    },
    "select_given": {"SEARCH job USING INTEGER PRIMARY KEY (rowid=?)"},
    "select_expired": {f"{FINISHED} (state=? AND finalized_at>? AND finalized_at<?)"},
    "glance": {KEY},
    "get": {KEY},
    "record_stats": set(),
    "history": {f"SEARCH {STAT} (minute>? AND minute<?)"},
    "queue_history": {f"SEARCH {STAT} (minute>?)"},
    "failures": {"SCAN django_jobs_stat USING INDEX django_jobs_stat_failed"},
    "unfolded_stats": {f"SEARCH {STAT} (minute>?)", f"SEARCH {STAT} (minute>? AND minute<?)"},
    "fold_stats": {f"SEARCH {STAT} (minute>? AND minute<?)"},
    "purge_stats": {
        "SEARCH django_jobs_stat USING INTEGER PRIMARY KEY (rowid=?)",
        f"SEARCH {STAT} (minute>? AND minute<?)",
    },
    # Walks of an index of the jobs in one state alone, which end at their limit.
    "count_states": {*IN_STATE, "SCAN django_jobs_job USING INDEX django_jobs_job_claim"},
    "count_queues": IN_STATE,
    "count_available": {f"{CLAIM} (queue_name=?)"},
    "count_dead": {f"{FINISHED} (state=? AND finalized_at>?)"},
    "waiting": {
        "SCAN django_jobs_job USING INDEX django_jobs_job_claim",
        "SEARCH head USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH job USING INDEX django_jobs_job_claim (queue_name=? AND priority<?)",
        "SEARCH job USING INDEX django_jobs_job_claim (queue_name>?)",
    },
    "live_workers": {"SCAN worker LEFT-JOIN"},
    "waiting_queues": {
        "SEARCH django_jobs_job USING INDEX django_jobs_job_claim",
        "SEARCH job USING INDEX django_jobs_job_claim (queue_name>?)",
    },
    "register_worker": set(),
    "heartbeat": {WORKER, CANCEL, "SCAN django_jobs_queue"},
    "lose_workers": {"SCAN django_jobs_worker"},
    "lose_worker": {WORKER},
    "stop_worker": {WORKER},
    "ask_worker": {WORKER},
    "purge_workers": {"SCAN django_jobs_worker", f"SEARCH job {RUNNING} (worker_id=?)"},
    "upsert_queue": set(),
    "acquire_leadership": set(),
    "resign_leadership": {
        "SEARCH django_jobs_leadership USING INDEX sqlite_autoindex_django_jobs_leadership_1 (name=?)"
    },
    # There are as many schedules as the code declares: a handful.
    "schedules": {"SCAN django_jobs_schedule USING INDEX sqlite_autoindex_django_jobs_schedule_1"},
    "due_schedules": {"SCAN django_jobs_schedule"},
    "upsert_schedules": set(),
    "remove_schedules": {"SCAN django_jobs_schedule"},
    "pause_schedule": {
        "SEARCH django_jobs_schedule USING INDEX sqlite_autoindex_django_jobs_schedule_1 (key=?)"
    },
    "advance_schedule": {"SEARCH django_jobs_schedule USING INTEGER PRIMARY KEY (rowid=?)"},
    "fail_schedule": {"SEARCH django_jobs_schedule USING INTEGER PRIMARY KEY (rowid=?)"},
    "run_schedule": set(),
    "tick_schedule": set(),
}
# The tables, and what the statements call them; the other lines are about queries within the statement.
TABLE = re.compile(r"(SEARCH|SCAN) (django_jobs_\w+|job|live|worker|head)\b")


# What ANALYZE writes down when there are a million jobs and none of the few that are in a state for a short time.
STALE = """
ANALYZE;
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('django_jobs_job', NULL, '1000000'),
    ('django_jobs_job', 'django_jobs_job_claim', '1 1 1 1 1'),
    ('django_jobs_job', 'django_jobs_job_due', '1 1 1'),
    ('django_jobs_job', 'django_jobs_job_running', '1 1 1'),
    ('django_jobs_job', 'django_jobs_job_finished', '1 1 1 1'),
    ('django_jobs_job', 'django_jobs_job_pending', '1 1');
ANALYZE sqlite_schema;
"""


@pytest.fixture
def plans(store, make):
    """The plan of each operation, its lines in order."""
    return plans_of(store, make)


def plans_of(store, make, made=operations):
    connection = store.session.connection
    recorder = store.session = Recorder(store.session)
    found = {}
    for name, operation in made(make).items():
        recorder.seen.clear()
        operation(store)
        statement, parameters = recorder.seen[0]
        rows = connection.execute(f"EXPLAIN QUERY PLAN {statement.named}", parameters).fetchall()
        # Newer ones say when an index covers all, and when the first row found is enough.
        found[name] = [row[3].replace("COVERING ", "").replace(" EXISTS ", " ") for row in rows]
    return found


def test_each_statement_goes_by_its_index(plans):
    reached = {name: {line for line in plan if TABLE.match(line)} for name, plan in plans.items()}

    assert reached == PLANS


def completions_of_several_numbers(make):
    jobs = make.claimed(make.worker(), count=2)
    outcomes = [Outcome(job.id, number, COMPLETED) for number, job in enumerate(jobs, 1)]
    return {"complete": lambda store: store.finish(outcomes, now=make.clock.now)}


def test_completions_of_claims_of_several_numbers_find_their_jobs_by_their_ids(store, make):
    plan = plans_of(store, make, completions_of_several_numbers)["complete"]

    assert [line for line in plan if TABLE.match(line)] == [KEY]


def test_jobs_are_found_by_their_ids_whatever_the_statistics_say(store, make):
    connection = store.session.connection
    connection.executescript(STALE)
    try:
        plans = plans_of(store, make)
    finally:
        connection.executescript("DROP TABLE sqlite_stat1; ANALYZE sqlite_schema;")

    reached = {name: {line for line in plan if TABLE.match(line)} for name, plan in plans.items()}
    by_id = {name: plan for name, plan in PLANS.items() if KEY in plan}
    assert {name: reached[name] for name in by_id} == by_id


def test_what_has_a_limit_is_read_in_its_order_and_never_sorted(plans):
    for name in ("claim", "promote", "next_due", "purge"):
        # It may say FOR ORDER BY, or FOR LAST TERM OF ORDER BY.
        assert not [line for line in plans[name] if "TEMP B-TREE" in line], name


def test_what_is_counted_comes_in_the_order_of_its_index(plans):
    for name in ("count_states", "count_queues", "count_available", "count_dead", "waiting"):
        plan = plans[name]
        assert not [line for line in plan if "TEMP B-TREE" in line and "ORDER BY" in line], name


def test_what_is_looked_at_comes_in_the_order_of_its_index(plans):
    for name in [name for name in plans if name.startswith("select_") and name != "select_given"]:
        plan = plans[name]
        for position, line in enumerate(plan):
            if "django_jobs_job" in line:
                assert "TEMP B-TREE" not in plan[position + 1], name
