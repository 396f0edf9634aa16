"""What was found here, on nobody else's tracker."""

from tests.guards.guard import Edit, Guard

UNIQUE = "store/test_unique_races_postgresql.py"

GUARDS = (
    Guard(
        "a time is sent in UTC",
        edits=[
            Edit(
                "store/postgresql.py",
                "return None if now is None else now.astimezone(dt.UTC).isoformat()",
                "return None if now is None else now.isoformat()",
            )
        ],
        tests=["hostile/test_found.py::test_an_offset_that_postgresql_does_not_have"],
        databases=["postgresql"],
    ),
    Guard(
        "nobody is lost on the word of a worker whose own lease is over (PostgreSQL)",
        edits=[
            Edit(
                "sql/postgresql/lose_workers.sql",
                "\n            AND witness.expires_at >= COALESCE(:now::timestamptz, statement_timestamp())",
            )
        ],
        tests=[
            "store/test_workers.py::test_nobody_is_lost_on_the_word_of_a_worker_whose_own_lease_is_over",
            (
                "worker/keeper/test_rescuing.py::"
                "test_nobody_is_rescued_while_the_own_lease_is_over_by_the_database_s_time"
            ),
        ],
        databases=["postgresql"],
    ),
    Guard(
        "nobody is lost on the word of a worker whose own lease is over (SQLite)",
        edits=[Edit("sql/sqlite/lose_workers.sql", " AND witness.expires_at >= :now")],
        tests=[
            "store/test_workers.py::test_nobody_is_lost_on_the_word_of_a_worker_whose_own_lease_is_over",
            (
                "worker/keeper/test_rescuing.py::"
                "test_nobody_is_rescued_while_the_own_lease_is_over_by_the_database_s_time"
            ),
        ],
        databases=["sqlite"],
    ),
    Guard(
        "nobody is lost on the word of a worker that is lost itself (PostgreSQL)",
        edits=[
            Edit(
                "sql/postgresql/lose_workers.sql",
                "WHERE witness.id = :witness AND witness.lost_at IS NULL",
                "WHERE witness.id = :witness",
            )
        ],
        tests=["store/test_workers.py::test_nobody_is_lost_on_the_word_of_a_worker_whose_own_lease_is_over"],
        databases=["postgresql"],
    ),
    Guard(
        "nobody is lost on the word of a worker that is lost itself (SQLite)",
        edits=[Edit("sql/sqlite/lose_workers.sql", " AND witness.lost_at IS NULL")],
        tests=["store/test_workers.py::test_nobody_is_lost_on_the_word_of_a_worker_whose_own_lease_is_over"],
        databases=["sqlite"],
    ),
    Guard(
        "the keeper says who it is when it looks for lost workers",
        edits=[Edit("worker/keeper.py", "lose_workers(witness=self._worker_id())", "lose_workers()")],
        tests=[
            (
                "worker/keeper/test_rescuing.py::"
                "test_nobody_is_rescued_while_the_own_lease_is_over_by_the_database_s_time"
            )
        ],
    ),
    Guard(
        "there is no trust after the database's time has jumped",
        edits=[Edit("worker/heartbeat.py", "            or self._has_jumped(heartbeat.now, sent)\n")],
        tests=["worker/test_heartbeat.py::test_there_is_no_trust_after_a_host_slept"],
    ),
    Guard(
        "keys that are asked for again are taken in order",
        edits=[
            Edit(
                "store/unique.py",
                "        if in_order and not all(job.is_duplicate for job in settled.values()):\n"
                "            raise _OutOfOrder\n",
            )
        ],
        tests=[f"{UNIQUE}::test_keys_that_are_asked_for_again_are_not_taken_out_of_order"],
        databases=["postgresql"],
    ),
    # The server ends one of the two, whichever has waited for longer: both must try again.
    Guard(
        "an enqueue or a retry that the server ended for a deadlock is tried again",
        edits=[
            Edit(
                "store/unique.py",
                "            if deadlocks > DEADLOCKS or not is_deadlock(error):\n",
                "            if True:\n",
            ),
            Edit(
                "store/base.py",
                "                if deadlocks > DEADLOCKS or not self.is_deadlock(error):\n",
                "                if True:\n",
            ),
            Edit(
                "store/part.py",
                "                if not self.is_deadlock(error) or self.session.in_transaction:\n",
                "                if True:\n",
            ),
        ],
        tests=[f"{UNIQUE}::test_a_deadlock_of_a_retry_and_an_insert_reaches_neither"],
        databases=["postgresql"],
    ),
)
