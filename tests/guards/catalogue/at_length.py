"""All at once, by seeds: chaos, storms, and the model of the store. One or two guards of each, since runs are long."""

from tests.guards.guard import Edit, Guard

CHAOS = "chaos/test_short_runs.py::test_nothing_is_lost_and_nothing_is_stuck"
STORM = "chaos/test_short_runs.py::test_a_storm_of_operations_meets_no_error_and_leaves_an_exact_tally"
MODEL = "model/test_store_model.py::test_any_operations_in_any_order"

GUARDS = (
    Guard(
        "a keeper rescues the jobs of lost workers (chaos)",
        edits=[
            Edit(
                "worker/keeper.py",
                "            if self._trusted_for() >= self.lease:\n",
                "            if False:\n",
            )
        ],
        tests=[CHAOS],
    ),
    Guard(
        "finishes are fenced by the claim's number (storm, PostgreSQL)",
        edits=[
            Edit(
                "sql/postgresql/finish.sql",
                "WHERE job.claims = outcome.claims AND job.state = 'running'",
                "WHERE job.state = 'running'",
            )
        ],
        tests=[STORM, MODEL],
        databases=["postgresql"],
    ),
    Guard(
        "finishes are fenced by the claim's number (storm, SQLite)",
        edits=[Edit("sql/sqlite/finish.sql", " AND django_jobs_job.claims = outcome.claims")],
        tests=[STORM, MODEL],
        databases=["sqlite"],
    ),
)
