"""Who comes second goes by the row as it is locked, and nobody is locked out who need not be."""

from tests.guards.guard import Edit, Guard
from tests.guards.statements import postgresql

RACES = "store/test_races_postgresql.py"
BULK_RACES = "store/test_bulk_races_postgresql.py"
UNIQUE_RACES = "store/test_unique_races_postgresql.py"
AT_ONCE = "store/test_finish_and_delete.py"

_LOCKED, _READ = " OFFSET 0 FOR UPDATE", " OFFSET 0"
ON = ("postgresql",)

GUARDS = (
    Guard(
        "a completion reads the row as it is locked (PostgreSQL)",
        edits=[postgresql("complete", _LOCKED, _READ)],
        tests=[f"{RACES}::test_a_finish_that_waited_for_a_release_and_a_new_claim_is_late"],
        databases=ON,
    ),
    Guard(
        "a finish that deletes reads the row as it is locked (PostgreSQL)",
        edits=[postgresql("finish_and_delete", _LOCKED, _READ)],
        tests=[
            f"{AT_ONCE}::test_one_that_waited_for_a_cancel_request_heeds_it",
            f"{AT_ONCE}::test_one_that_waited_for_a_rescue_is_late",
        ],
        databases=ON,
    ),
    Guard(
        "a release reads the row as it is locked (PostgreSQL)",
        edits=[postgresql("release", _LOCKED, _READ)],
        tests=[f"{RACES}::test_a_release_that_waited_for_a_cancel_request_heeds_it"],
        databases=ON,
    ),
    Guard(
        "a release of pending jobs reads the row as it is locked (PostgreSQL)",
        edits=[postgresql("release_pending", _LOCKED, _READ)],
        tests=[f"{RACES}::test_a_release_of_a_pending_job_that_waited_for_a_cancel_leaves_it"],
        databases=ON,
    ),
    Guard(
        "a merge reads the row as it is locked (PostgreSQL)",
        edits=[postgresql("merge_metadata", _LOCKED, _READ)],
        tests=[
            f"{RACES}::test_a_merge_that_waited_for_another_one_counts_its_bytes",
            f"{RACES}::test_a_merge_that_waited_for_another_one_keeps_its_keys",
            f"{RACES}::test_a_merge_that_waited_for_the_end_is_late",
        ],
        databases=ON,
    ),
    Guard(
        "a change reads the row as it is locked (PostgreSQL)",
        edits=[postgresql("update", _LOCKED, _READ)],
        tests=[f"{BULK_RACES}::test_an_update_that_waited_for_a_claim_changes_nothing"],
        databases=ON,
    ),
    Guard(
        "a change is compared with the row as it is locked (PostgreSQL)",
        edits=[
            postgresql(
                "update", "AND job.attempt < COALESCE(:max_attempts::smallint, job.max_attempts)", "AND true"
            )
        ],
        tests=[f"{BULK_RACES}::test_an_update_that_waited_for_an_attempt_is_compared_with_it"],
        databases=ON,
    ),
    Guard(
        "a deletion reads the row as it is locked (PostgreSQL)",
        edits=[postgresql("delete", _LOCKED, _READ)],
        tests=[f"{BULK_RACES}::test_a_delete_that_waited_for_a_claim_leaves_it"],
        databases=ON,
    ),
    Guard(
        "rows are changed in the order of their ids (PostgreSQL)",
        edits=[Edit("store/bulk.py", "self._ids(sorted(set(ids)))", "self._ids(ids)")],
        tests=[f"{BULK_RACES}::test_rows_are_locked_in_the_order_of_their_ids"],
        databases=ON,
    ),
    Guard(
        "rows are deleted in the order of their ids (PostgreSQL)",
        edits=[
            Edit("store/bulk.py", '"ids": self._ids(sorted(ids)), "state"', '"ids": self._ids(ids), "state"')
        ],
        tests=[f"{BULK_RACES}::test_rows_are_locked_in_the_order_of_their_ids"],
        databases=ON,
    ),
    Guard(
        "who purges workers waits for nobody (PostgreSQL)",
        edits=[postgresql("purge_workers", "    FOR UPDATE SKIP LOCKED\n", "    FOR UPDATE\n")],
        tests=[f"{RACES}::test_a_worker_that_is_being_purged_waits_for_nobody"],
        databases=ON,
    ),
    Guard(
        # It changes nothing, and locks the row all the same.
        "who is told of a duplicate does not lock it (PostgreSQL)",
        edits=[
            postgresql(
                "insert_unique",
                "WHERE holds_key DO NOTHING\n",
                "WHERE holds_key DO UPDATE SET claims = django_jobs_job.claims WHERE false\n",
            )
        ],
        tests=[
            f"{UNIQUE_RACES}::test_whoever_claims_the_job_does_not_wait_either",
        ],
        databases=ON,
    ),
    Guard(
        "a job that is claimed before it is replaced is not kept locked (PostgreSQL)",
        edits=[
            Edit(
                "store/unique.py",
                "        raise _Changed  # out of the savepoint",
                "        return {}  # out of the savepoint",
            )
        ],
        tests=[f"{UNIQUE_RACES}::test_a_job_that_is_claimed_before_it_is_replaced_is_not_kept_locked"],
        databases=ON,
    ),
    Guard(
        "a retry that waited for a twin leaves the transaction that it is in whole (PostgreSQL)",
        edits=[
            Edit(
                "store/base.py",
                "                with self.session.savepoint():\n                    return self._retry(ids, now)",
                "                return self._retry(ids, now)",
            )
        ],
        tests=[f"{UNIQUE_RACES}::test_nor_the_transaction_that_the_retry_is_in"],
        databases=ON,
    ),
    Guard(
        "an outcome whose row is held keeps no other waiting (PostgreSQL)",
        edits=[Edit("worker/completer.py", "        store.session.lock_timeout = LOCK_SECONDS\n")],
        tests=["worker/completer/test_held_rows.py::test_rows_that_a_site_locks_for_long"],
        databases=ON,
    ),
)
