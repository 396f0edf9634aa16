"""Promises of the design that have no row among the faults: the database's time, and stops that end."""

from tests.guards.guard import Edit, Guard

HANDED_BACK = "worker/test_processes.py::test_a_job_that_does_not_end_is_handed_back_with_its_attempt_spent"

GUARDS = (
    Guard(
        "on PostgreSQL the database's clock is the clock",
        edits=[
            Edit(
                "store/postgresql.py",
                "return None if now is None else now.astimezone(dt.UTC).isoformat()",
                "return (now or dt.datetime.now(dt.UTC)).astimezone(dt.UTC).isoformat()",
            )
        ],
        tests=[
            (
                "worker/test_restarts_postgresql.py::"
                "test_nothing_is_promoted_or_rescued_by_a_clock_that_is_two_hours_wrong"
            )
        ],
        databases=["postgresql"],
    ),
    Guard(
        "what still runs at the end of a stop is handed back",
        edits=[
            Edit(
                "worker/worker.py",
                "            insistently(lambda: end_claims(self.store, self.worker_id, self.options.using), end)\n",
            )
        ],
        tests=[HANDED_BACK],
    ),
    Guard(
        "a stop waits for jobs no longer than it may, and not at all after a second signal",
        edits=[
            Edit(
                "worker/worker.py",
                "self.pools.wait_for_jobs(deadline, lambda: self._stop.hurried)",
                "self.pools.wait_for_jobs(deadline + 30, lambda: False)",
            )
        ],
        tests=[HANDED_BACK],
    ),
    Guard(
        "a signal that another thread gets is heard",
        edits=[Edit("worker/worker.py", "SIGNAL_SECONDS = 0.5", "SIGNAL_SECONDS = 600")],
        tests=["worker/test_processes.py::test_a_signal_that_another_thread_gets_is_heard"],
    ),
    Guard(
        "a worker that stops renews its lease while it waits for its jobs",
        edits=[
            Edit(
                "worker/worker.py",
                "        self.keeper.stop()\n        self.pools.give_back",
                "        self.keeper.stop()\n        self.reporter.stop()\n        self.pools.give_back",
            )
        ],
        tests=["worker/worker/test_stopping.py::test_the_lease_is_renewed_while_the_jobs_are_waited_for"],
    ),
)
