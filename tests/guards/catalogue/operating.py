"""What operators and enqueuers do to rows, in transactions and beside workers."""

from tests.guards.guard import Edit, Guard
from tests.guards.statements import each_database, postgresql, sqlite

DELETE = "store/test_delete.py"
UPDATE = "store/test_update.py"
EDIT = "test_operations_pages.py::TestEdit"
TRANSACTION = "test_enqueueing.py::TestTransaction"

GUARDS = (
    Guard(
        "a large list is enqueued in one transaction",
        edits=[
            Edit("enqueueing.py", "        with transaction.atomic(using=alias):\n", "        if True:\n")
        ],
        tests=[f"{TRANSACTION}::test_a_large_list_is_enqueued_whole_or_not_at_all"],
    ),
    *each_database(
        "a job that runs is not deleted",
        tests=[f"{DELETE}::test_a_running_job_stays"],
        on_postgresql=[postgresql("delete", "job.state <> 'running'", "true")],
        on_sqlite=[sqlite("delete", "state <> 'running'", "true")],
    ),
    *each_database(
        "a purge by id is of what ended in the state",
        tests=[
            f"{DELETE}::test_with_a_state_only_what_ended_in_it",
            f"{DELETE}::test_with_a_state_a_retried_job_stays",
        ],
        on_postgresql=[
            postgresql("delete", "ELSE job.state = :state::text AND (", "ELSE :state <> '' AND (")
        ],
        on_sqlite=[sqlite("delete", "ELSE state = :state AND (", "ELSE :state <> '' AND (")],
    ),
    *each_database(
        "only what waits is changed",
        tests=[f"{UPDATE}::test_others_stay_as_they_are"],
        on_postgresql=[
            postgresql("update", "      AND job.state IN ('pending', 'scheduled', 'available')\n")
        ],
        on_sqlite=[
            sqlite(
                "update",
                "           job.state IN ('pending', 'scheduled', 'available')\n               AND job.attempt",
                "           job.attempt",
            )
        ],
    ),
    *each_database(
        "a change leaves an attempt",
        tests=[
            f"{UPDATE}::test_a_job_without_an_attempt_left_by_the_new_number_stays_and_the_others_are_changed"
        ],
        on_postgresql=[
            postgresql(
                "update", "      AND job.attempt < COALESCE(:max_attempts::smallint, job.max_attempts)\n"
            )
        ],
        on_sqlite=[
            sqlite(
                "update",
                "\n               AND job.attempt < COALESCE(:max_attempts, job.max_attempts) AS allowed",
                " AS allowed",
            )
        ],
    ),
    *each_database(
        "only what waits is edited",
        tests=[f"{EDIT}::test_only_what_waits"],
        on_postgresql=[postgresql("edit", "  AND state IN ('pending', 'scheduled', 'available')\n")],
        on_sqlite=[sqlite("edit", "  AND state IN ('pending', 'scheduled', 'available')\n")],
    ),
    *each_database(
        "nobody edits what somebody else wrote meanwhile",
        tests=[f"{EDIT}::test_nothing_of_what_somebody_else_wrote_meanwhile"],
        on_postgresql=[
            postgresql(
                "edit",
                "args::text = :seen_args::text AND kwargs::text = :seen_kwargs::text",
                "(:seen_args::text || :seen_kwargs::text) IS NOT NULL",
            )
        ],
        on_sqlite=[
            sqlite(
                "edit",
                "args = :seen_args AND kwargs = :seen_kwargs",
                "(:seen_args || :seen_kwargs) IS NOT NULL",
            )
        ],
    ),
    *each_database(
        "only what waits is replaced",
        tests=["store/test_unique.py::test_replacing_what_is_gone_or_waits_no_longer"],
        on_postgresql=[
            postgresql(
                "replace",
                "WHERE job.holds_key AND job.state IN ('pending', 'scheduled', 'available')",
                "WHERE true",
            )
        ],
        on_sqlite=[sqlite("replace", " AND holds_key AND state IN ('pending', 'scheduled', 'available')")],
    ),
    *each_database(
        "only what is pending is released",
        tests=["store/test_release_pending.py::test_others_stay_as_they_are_and_the_answer_says_so"],
        on_postgresql=[postgresql("release_pending", "    WHERE job.state = 'pending'\n")],
        on_sqlite=[sqlite("release_pending", " AND +state = 'pending'")],
    ),
)
