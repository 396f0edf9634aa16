"""Unique keys, and purges, which spare those who hold one."""

from tests.guards.guard import Edit, Guard
from tests.guards.statements import each_database, postgresql, sqlite

UNIQUE = "store/test_unique.py"
UNIQUE_RACES = "store/test_unique_races_postgresql.py"
PURGE = "store/test_purge.py"

GUARDS = (
    # -- unique keys --
    Guard(
        # As with a lock that is tried, and not waited for: who is second takes the first's word for it.
        "who inserts a key waits for another one that has just done so (PostgreSQL)",
        edits=[
            postgresql(
                "insert_unique",
                "    FROM new\n    ON CONFLICT",
                "    FROM new WHERE pg_try_advisory_xact_lock(hashtext(unique_key))\n    ON CONFLICT",
            )
        ],
        tests=[f"{UNIQUE_RACES}::test_what_waited_for_a_rollback_is_inserted"],
        databases=["postgresql"],
    ),
    *each_database(
        "a key that is held is no error",
        tests=[f"{UNIQUE}::test_the_transaction_goes_on_after_a_duplicate"],
        on_postgresql=[
            postgresql("insert_unique", "    ON CONFLICT (unique_key) WHERE holds_key DO NOTHING\n")
        ],
        on_sqlite=[sqlite("insert_unique", "ON CONFLICT DO UPDATE SET claims = claims\n")],
    ),
    *each_database(
        "a key that is held is no error among many",
        tests=[f"{UNIQUE}::test_many_in_the_order_given"],
        on_postgresql=[
            postgresql("insert_many_unique", "    ON CONFLICT (unique_key) WHERE holds_key DO NOTHING\n")
        ],
        on_sqlite=[sqlite("insert_many_unique", "ON CONFLICT DO UPDATE SET claims = claims\n")],
    ),
    *each_database(
        "a promotion takes no key",
        tests=[f"{UNIQUE}::test_promoting_beside_a_live_twin_breaks_no_batch"],
        on_postgresql=[
            postgresql(
                "promote",
                "SET state = 'available'",
                "SET state = 'available', holds_key = unique_key IS NOT NULL",
            )
        ],
        on_sqlite=[
            sqlite(
                "promote",
                "SET state = 'available'",
                "SET state = 'available', holds_key = unique_key IS NOT NULL",
            )
        ],
    ),
    *each_database(
        "a retry looks whether another job holds the key",
        tests=[f"{UNIQUE}::test_a_refused_retry_says_why"],
        on_postgresql=[
            postgresql("retry", "WHERE live.unique_key = held.unique_key AND live.holds_key", "WHERE false")
        ],
        on_sqlite=[
            sqlite(
                "retry",
                "AND live.holds_key AND live.holds_key = 1",
                "AND false",
            )
        ],
    ),
    *each_database(
        "a retry is of finished jobs",
        tests=[
            f"{UNIQUE}::test_a_refused_retry_says_why",
            "store/test_retry.py::test_the_second_of_two_operators_is_told_that_it_was_done",
        ],
        on_postgresql=[
            postgresql(
                "retry", "state IN ('completed', 'failed', 'cancelled') AS finished", "true AS finished"
            )
        ],
        on_sqlite=[sqlite("retry", "job.state IN ('completed', 'failed', 'cancelled') AND (", "true AND (")],
    ),
    *each_database(
        "a job that has failed or was cancelled holds no key",
        tests=[f"{UNIQUE}::test_a_finished_job_holds_no_key"],
        on_postgresql=[
            postgresql(
                "finish",
                "OR (held.state = 'completed' AND job.key_until IS NOT NULL)",
                "OR true",
            )
        ],
        on_sqlite=[
            sqlite(
                "finish",
                "OR (ended.state = 'completed' AND key_until IS NOT NULL)",
                "OR true",
            )
        ],
    ),
    *each_database(
        "a job that is completed holds no key",
        tests=[f"{UNIQUE}::test_a_finished_job_holds_no_key"],
        on_postgresql=[
            postgresql(
                "complete",
                "holds_key = job.holds_key AND job.key_until IS NOT NULL",
                "holds_key = job.holds_key",
            )
        ],
        on_sqlite=[
            sqlite("complete", "holds_key = holds_key AND key_until IS NOT NULL", "holds_key = holds_key")
        ],
    ),
    *each_database(
        "a completed job holds its key for the rest of the period",
        tests=[
            f"{UNIQUE}::test_once_in_a_period_also_after_completion",
            f"{UNIQUE}::test_purging_spares_a_job_that_holds_its_period",
        ],
        on_postgresql=[
            postgresql(
                "complete", "holds_key = job.holds_key AND job.key_until IS NOT NULL", "holds_key = false"
            )
        ],
        on_sqlite=[sqlite("complete", "holds_key = holds_key AND key_until IS NOT NULL", "holds_key = 0")],
    ),
    *each_database(
        "a dead letter of a rescue holds no key",
        tests=["store/test_rescue.py::test_a_rescued_job_keeps_its_key_while_it_will_run"],
        on_postgresql=[
            postgresql(
                "rescue", "job.holds_key AND held.next_state IN ('scheduled', 'available')", "job.holds_key"
            )
        ],
        on_sqlite=[
            sqlite("rescue", "holds_key AND held.next_state IN ('scheduled', 'available')", "holds_key")
        ],
    ),
    Guard(
        "what is told of a holder is as it is now (PostgreSQL)",
        edits=[
            Edit(
                "store/unique.py",
                "if touched is not None and seen.get(position) != (job.id, touched):",
                "if False:",
            )
        ],
        tests=[
            f"{UNIQUE_RACES}::test_what_waited_for_a_claim_is_told_of_the_running_job",
            f"{UNIQUE_RACES}::test_a_job_that_ends_and_enqueues_itself_again_is_not_told_of_as_it_was",
        ],
        databases=["postgresql"],
    ),
    Guard(
        "a retry that waited for a twin is tried again (PostgreSQL)",
        edits=[
            Edit(
                "store/base.py",
                "            except IntegrityError:\n                pass",
                "            except IntegrityError:\n                raise",
            )
        ],
        tests=[f"{UNIQUE_RACES}::test_a_retry_that_waited_for_a_twin_breaks_no_batch"],
        databases=["postgresql"],
    ),
    # -- purges --
    *each_database(
        "the age of a purge is inclusive",
        tests=[
            f"{PURGE}::test_age_zero_includes_what_ended_this_very_moment",
            f"{PURGE}::test_age_zero_includes_what_this_moments_finish_stored",
            f"{PURGE}::test_the_age_is_inclusive",
        ],
        on_postgresql=[
            postgresql(
                "purge",
                "      AND finalized_at\n          <= COALESCE(",
                "      AND finalized_at\n          < COALESCE(",
            )
        ],
        on_sqlite=[sqlite("purge", "finalized_at <= :older_than", "finalized_at < :older_than")],
    ),
    *each_database(
        "a purge spares who holds a key",
        tests=[
            f"{PURGE}::test_a_job_that_holds_its_key_is_kept",
            f"{UNIQUE}::test_purging_spares_a_job_that_holds_its_period",
        ],
        on_postgresql=[
            postgresql(
                "purge",
                "      AND (NOT holds_key OR key_until <= COALESCE(:now::timestamptz, statement_timestamp()))\n",
            )
        ],
        on_sqlite=[sqlite("purge", "\n      AND (NOT holds_key OR key_until <= :now)")],
    ),
    Guard(
        "a purge looks again under the row's lock (PostgreSQL)",
        edits=[postgresql("purge", "    FOR UPDATE SKIP LOCKED\n")],
        tests=["store/test_races_postgresql.py::test_a_purge_skips_what_is_being_retried"],
        databases=["postgresql"],
    ),
)
