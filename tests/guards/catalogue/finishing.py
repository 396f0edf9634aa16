"""Outcomes, late ones, and what happens to a job while it runs."""

from tests.guards.guard import Edit, Guard

GUARDS = (
    Guard(
        "a finish is fenced by the claim's number (PostgreSQL)",
        edits=[
            Edit(
                "sql/postgresql/finish.sql",
                "WHERE job.claims = outcome.claims AND job.state = 'running'",
                "WHERE job.state = 'running'",
            )
        ],
        tests=["store/test_finish_fence.py::test_an_outcome_of_an_earlier_claim_changes_nothing"],
        databases=["postgresql"],
    ),
    Guard(
        "a finish is fenced by the claim's number (SQLite)",
        edits=[Edit("sql/sqlite/finish.sql", " AND django_jobs_job.claims = outcome.claims")],
        tests=["store/test_finish_fence.py::test_an_outcome_of_an_earlier_claim_changes_nothing"],
        databases=["sqlite"],
    ),
)
