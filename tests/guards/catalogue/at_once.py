"""Several at the same rows at once: whose turn it is, in which order rows and keys are taken, and who leads."""

from tests.guards.guard import Edit, Guard

STORM = "store/test_concurrency.py::test_a_storm_of_writes_keeps_every_promise"
UNIQUE = "store/test_unique_races_postgresql.py"

RESENT = Edit(
    "store/part.py",
    "                if not self.is_deadlock(error) or self.session.in_transaction:\n                    raise\n",
    "                raise\n",
)
KEYS_IN_ORDER = Edit(
    "sql/postgresql/insert_many_unique.sql", "    ORDER BY unique_key\n    ON CONFLICT", "    ON CONFLICT"
)

GUARDS = (
    # Within a process a lock lets one write after the other; SQLite's own waiting is for other processes.
    Guard(
        "who finds the file of SQLite locked waits",
        edits=[
            Edit(
                "store/sqlite_session.py",
                '            timeout=min(float(options.get("timeout", 5.0)), self.timeout),\n',
                "            timeout=0.0,\n",
            ),
            Edit(
                "store/sqlite_session.py",
                "        with self._writing:\n            return rows_of",
                "        if True:\n            return rows_of",
            ),
        ],
        tests=[STORM],
        databases=["sqlite"],
    ),
    Guard(
        "who finds the file of SQLite locked by another process waits",
        edits=[
            Edit(
                "store/sqlite_session.py",
                '            timeout=min(float(options.get("timeout", 5.0)), self.timeout),\n',
                "            timeout=0.0,\n",
            )
        ],
        tests=["worker/test_processes.py::test_four_workers_share_the_work"],
        databases=["sqlite"],
    ),
    Guard(
        "a claim locks what it takes, and skips what others take (a storm)",
        edits=[Edit("sql/postgresql/claim.sql", "    FOR UPDATE SKIP LOCKED\n")],
        tests=[
            STORM,
            "store/test_concurrency.py::test_every_job_runs_exactly_once",
            "store/test_concurrency.py::test_claims_at_once_never_exceed_their_limit",
        ],
        databases=["postgresql"],
    ),
    Guard(
        "completions are locked in the order of ids",
        edits=[
            Edit(
                "store/postgresql.py",
                "zip(*sorted(outcomes, key=_by_id), strict=True)",
                "zip(*outcomes, strict=True)",
            )
        ],
        tests=[
            "store/test_races_postgresql.py::test_a_finish_locks_in_the_order_of_ids_in_whatever_order_outcomes_come"
        ],
        databases=["postgresql"],
    ),
    Guard(
        "other outcomes are locked in the order of ids",
        edits=[
            Edit(
                "store/postgresql.py",
                "self._outcomes(sorted(outcomes, key=_by_id), now), whole_rows)",
                "self._outcomes(outcomes, now), whole_rows)",
            )
        ],
        tests=[
            "store/test_races_postgresql.py::test_a_finish_locks_in_the_order_of_ids_in_whatever_order_outcomes_come"
        ],
        databases=["postgresql"],
    ),
    # Without the order alone, a statement that was ended for a deadlock is sent again, and hardly anybody hears of it.
    Guard(
        "unique keys are taken in their order, and a deadlock is tried again",
        edits=[KEYS_IN_ORDER, RESENT],
        tests=[
            f"{UNIQUE}::test_two_calls_with_the_same_keys_in_different_orders_do_not_wait_in_a_circle",
            f"{UNIQUE}::test_bulk_inserts_finishes_and_purges_overlap_without_a_deadlock",
        ],
        databases=["postgresql"],
    ),
    Guard(
        "of two keepers one leads (PostgreSQL)",
        edits=[
            Edit(
                "sql/postgresql/acquire_leadership.sql",
                "WHERE leadership.holder = excluded.holder OR leadership.expires_at <= excluded.acquired_at\n",
                "WHERE true\n",
            )
        ],
        tests=["worker/keeper/test_leading.py::test_one_of_two_leads"],
        databases=["postgresql"],
    ),
    Guard(
        "of two keepers one leads (SQLite)",
        edits=[
            Edit(
                "sql/sqlite/acquire_leadership.sql",
                "WHERE leadership.holder = excluded.holder OR leadership.expires_at <= excluded.acquired_at\n",
                "WHERE true\n",
            )
        ],
        tests=["worker/keeper/test_leading.py::test_one_of_two_leads"],
        databases=["sqlite"],
    ),
)
