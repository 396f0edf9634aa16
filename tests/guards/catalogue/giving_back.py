"""Claims that never started, given back."""

from tests.guards.guard import Edit, Guard
from tests.guards.statements import each_database, postgresql, sqlite

RELEASE = "store/test_release.py"
PROCESSES = "worker/test_processes.py"

GUARDS = (
    Guard(
        "what never started is given back at a stop",
        edits=[
            Edit("worker/worker.py", "        self.pools.give_back_unstarted(self.store, FLUSH_SECONDS)\n")
        ],
        tests=[
            f"{PROCESSES}::test_sigterm_among_jobs_leaves_nothing_running_and_charges_nothing",
            "worker/worker/test_stopping.py::test_a_stop_gives_back_what_never_started_and_waits_for_what_runs",
        ],
    ),
    *each_database(
        "a release gives the attempt back",
        tests=[
            f"{PROCESSES}::test_sigterm_among_jobs_leaves_nothing_running_and_charges_nothing",
            f"{RELEASE}::test_a_released_job_is_as_it_was_before_the_claim",
        ],
        on_postgresql=[postgresql("release", "attempt = job.attempt - 1", "attempt = job.attempt")],
        on_sqlite=[sqlite("release", "attempt = attempt - 1", "attempt = attempt")],
    ),
    *each_database(
        "a release gives the time of the attempt before back",
        tests=[
            f"{PROCESSES}::test_sigterm_among_jobs_leaves_nothing_running_and_charges_nothing",
            f"{RELEASE}::test_the_time_of_the_attempt_before_comes_back",
        ],
        on_postgresql=[
            postgresql("release", "attempted_at = held.attempted_at", "attempted_at = job.attempted_at")
        ],
        on_sqlite=[sqlite("release", "attempted_at = claim.previously", "attempted_at = attempted_at")],
    ),
    *each_database(
        "a release leaves the time by which jobs are in order",
        tests=[f"{RELEASE}::test_the_order_is_as_it_was_before_the_claim"],
        on_postgresql=[
            postgresql(
                "release",
                "    attempt = job.attempt - 1,\n",
                "    attempt = job.attempt - 1, run_after = held.now,\n",
            )
        ],
        on_sqlite=[
            sqlite(
                "release", "    attempt = attempt - 1,\n", "    attempt = attempt - 1, run_after = :now,\n"
            )
        ],
    ),
    Guard(
        "the last writes of a stop are tried again",
        edits=[Edit("worker/insisting.py", "TRIES = 3", "TRIES = 1")],
        tests=[
            "faults/test_failure_points.py::test_a_connection_that_is_lost_at_the_stop_costs_no_attempt_and_no_lease"
        ],
    ),
)
