"""Jobs that are cancelled, whatever they do at that moment."""

from tests.guards.guard import Edit, Guard
from tests.guards.statements import each_database, postgresql, sqlite

CANCEL = "store/test_cancel.py"
RACES = "store/test_races_postgresql.py"

GUARDS = (
    *each_database(
        "what ends a claim heeds a request to cancel",
        tests=[
            "worker/test_cancel_running.py::test_against_whatever_the_job_does_at_that_moment",
            f"{CANCEL}::test_what_a_finish_stores_after_a_request",
        ],
        on_postgresql=[postgresql("finish", "job.cancel_requested_at IS NOT NULL OR ")],
        on_sqlite=[sqlite("finish", "cancel_requested_at IS NOT NULL OR ")],
    ),
    *each_database(
        # Both: what ends the claim stores it as cancelled, and a worker that knows of the request does not start it.
        "a job that was cancelled is not run again",
        tests=["worker/test_cancel_running.py::test_against_whatever_the_job_does_at_that_moment"],
        on_postgresql=[
            postgresql("finish", "job.cancel_requested_at IS NOT NULL OR "),
            Edit(
                "worker/attempt.py", "if self.signs.cancelled and self.signs.is_cancelled(job):", "if False:"
            ),
        ],
        on_sqlite=[
            sqlite("finish", "cancel_requested_at IS NOT NULL OR "),
            Edit(
                "worker/attempt.py", "if self.signs.cancelled and self.signs.is_cancelled(job):", "if False:"
            ),
        ],
    ),
    *each_database(
        "a completion that is stored first stays, whatever was requested",
        tests=[f"{CANCEL}::test_what_a_finish_stores_after_a_request"],
        on_postgresql=[
            Edit("store/postgresql.py", "if not whole_rows and plainly_completed(outcomes):", "if False:"),
            postgresql(
                "finish",
                "WHEN outcome.kind = 'completed' THEN",
                "WHEN outcome.kind = 'completed' AND job.cancel_requested_at IS NULL THEN",
            ),
        ],
        on_sqlite=[
            Edit("store/sqlite.py", "if not whole_rows and plainly_completed(outcomes):", "if False:"),
            sqlite(
                "finish",
                "WHEN outcome.kind = 'completed' THEN",
                "WHEN outcome.kind = 'completed' AND cancel_requested_at IS NULL THEN",
            ),
        ],
    ),
    *each_database(
        "a rescue heeds a request to cancel",
        tests=[f"{CANCEL}::test_a_rescue_after_a_request_cancels"],
        on_postgresql=[
            postgresql(
                "rescue", "WHEN cancel_requested_at IS NOT NULL THEN 'cancelled'\n                    "
            )
        ],
        on_sqlite=[
            sqlite("rescue", "WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled'\n                ")
        ],
    ),
    *each_database(
        "a release heeds a request to cancel",
        tests=[f"{CANCEL}::test_a_release_after_a_request_cancels"],
        on_postgresql=[
            postgresql("release", "job.cancel_requested_at IS NOT NULL AS cancelled", "false AS cancelled")
        ],
        on_sqlite=[
            sqlite(
                "release",
                "CASE WHEN cancel_requested_at IS NULL THEN 'available'",
                "CASE WHEN true THEN 'available'",
            )
        ],
    ),
    Guard(
        "a job that was cancelled between its claim and its start never starts",
        edits=[
            Edit(
                "worker/attempt.py", "if self.signs.cancelled and self.signs.is_cancelled(job):", "if False:"
            ),
        ],
        tests=[
            "worker/test_cancel_running.py::test_one_that_was_cancelled_between_claim_and_start_never_starts"
        ],
    ),
    Guard(
        "a finish reads the row as it is locked (PostgreSQL)",
        edits=[postgresql("finish", " OFFSET 0 FOR UPDATE", " OFFSET 0")],
        tests=[
            f"{RACES}::test_a_finish_that_waited_for_a_cancel_request_heeds_it",
            f"{RACES}::test_a_finish_that_waited_for_a_rescue_is_late",
            f"{RACES}::test_a_finish_that_waited_for_another_one_is_late",
        ],
        databases=["postgresql"],
    ),
    *each_database(
        "the first request to cancel stands",
        tests=[f"{CANCEL}::test_the_second_of_two_operators_sees_the_same"],
        on_postgresql=[postgresql("cancel", "COALESCE(job.cancel_requested_at, held.now)", "held.now")],
        on_sqlite=[sqlite("cancel", "COALESCE(cancel_requested_at, :now)", ":now")],
    ),
    *each_database(
        "who cancels what is cancelled is told of it",
        tests=[
            f"{CANCEL}::test_the_second_of_two_operators_sees_the_same",
            f"{CANCEL}::test_a_finished_job_stays_as_it_is",
        ],
        on_postgresql=[
            postgresql("cancel", "WHERE job.id = held.id", "WHERE job.id = held.id AND finalized_at IS NULL")
        ],
        on_sqlite=[
            sqlite(
                "cancel",
                "WHERE id IN (SELECT value FROM json_each(:ids))",
                "WHERE id IN (SELECT value FROM json_each(:ids)) AND finalized_at IS NULL",
            )
        ],
    ),
    Guard(
        "a retry reads the row as it is locked (PostgreSQL)",
        edits=[postgresql("retry", "WHERE id = wanted.id FOR UPDATE", "WHERE id = wanted.id")],
        tests=[f"{RACES}::test_of_two_retries_the_second_is_told_that_it_was_done"],
        databases=["postgresql"],
    ),
)
