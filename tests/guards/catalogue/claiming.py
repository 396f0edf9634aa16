"""Who claims what, in what order, how it is counted, and what waits for its time."""

from tests.guards.guard import Edit, Guard
from tests.guards.statements import each_database, postgresql, sqlite

CLAIM = "store/test_claim.py"
CLAIM_ON = "store/test_low_water_postgresql.py"
FINISH = "store/test_finish.py"
ORDER = "store/test_order.py"
RACES = "store/test_races_postgresql.py"
HANDBACK = "worker/test_handback.py"
TWO_WRITERS = "worker/completer/test_two_writers.py"
LEADERSHIP = "store/test_leadership.py"

_LOCKED = "    FOR UPDATE SKIP LOCKED\n"

GUARDS = (
    # -- who claims ----------------------------------------------------------------------------------------------------
    *each_database(
        "a worker that is lost claims nothing",
        tests=[f"{CLAIM}::test_a_lost_worker_claims_nothing"],
        on_postgresql=[postgresql("claim", "lost_at IS NULL AND ")],
        on_sqlite=[sqlite("claim", "lost_at IS NULL AND ")],
    ),
    *each_database(
        "a worker that has stopped claims nothing",
        tests=[f"{CLAIM}::test_a_stopped_worker_claims_nothing"],
        on_postgresql=[postgresql("claim", " AND stopped_at IS NULL")],
        on_sqlite=[sqlite("claim", " AND stopped_at IS NULL")],
    ),
    Guard(
        "a worker that is lost claims nothing from its marks on (PostgreSQL)",
        edits=[postgresql("claim_on", "lost_at IS NULL AND ")],
        tests=[f"{CLAIM_ON}::test_a_worker_that_was_lost_or_has_stopped_claims_nothing"],
        databases=["postgresql"],
    ),
    Guard(
        "a worker that has stopped claims nothing from its marks on (PostgreSQL)",
        edits=[postgresql("claim_on", " AND stopped_at IS NULL")],
        tests=[f"{CLAIM_ON}::test_a_worker_that_was_lost_or_has_stopped_claims_nothing"],
        databases=["postgresql"],
    ),
    # -- which jobs ----------------------------------------------------------------------------------------------------
    Guard(
        "a claim locks what it takes (PostgreSQL)",
        edits=[postgresql("claim", _LOCKED)],
        tests=["store/test_concurrency.py::test_every_job_runs_exactly_once"],
        databases=["postgresql"],
    ),
    Guard(
        "a claim passes over what others hold (PostgreSQL)",
        edits=[postgresql("claim", _LOCKED, "    FOR UPDATE\n")],
        tests=[f"{RACES}::test_a_claim_skips_what_another_transaction_holds"],
        databases=["postgresql"],
    ),
    Guard(
        "a claim from the marks on locks what it takes (PostgreSQL)",
        edits=[
            postgresql(
                "claim_on",
                "            FOR UPDATE SKIP LOCKED\n        ) AS unknown",
                "        ) AS unknown",
            ),
            postgresql(
                "claim_on", "            FOR UPDATE SKIP LOCKED\n        ) AS marked", "        ) AS marked"
            ),
        ],
        tests=[f"{CLAIM_ON}::test_workers_that_claim_at_once_from_their_marks_on_share_the_jobs"],
        databases=["postgresql"],
    ),
    *each_database(
        "a claim goes by priority",
        tests=[f"{ORDER}::test_claims_by_priority"],
        on_postgresql=[
            postgresql("claim", "queue_name, priority DESC, run_after, id", "queue_name, run_after, id")
        ],
        on_sqlite=[sqlite("claim", "priority DESC, run_after, id", "run_after, id")],
    ),
    *each_database(
        "a claim goes by time",
        tests=[f"{ORDER}::test_claims_by_time"],
        on_postgresql=[
            postgresql("claim", "queue_name, priority DESC, run_after, id", "queue_name, priority DESC, id")
        ],
        on_sqlite=[sqlite("claim", "priority DESC, run_after, id", "priority DESC, id")],
    ),
    Guard(
        "the jobs of a claim are in order",
        edits=[Edit("store/claims.py", "            rows.sort(key=_by_priority, reverse=True)\n")],
        tests=[f"{CLAIM}::test_the_order_is_priority_then_time_then_id"],
    ),
    # -- how it is counted ---------------------------------------------------------------------------------------------
    *each_database(
        "the number of a claim is never given back",
        tests=[
            "store/test_release.py::test_a_released_job_is_as_it_was_before_the_claim",
            f"{CLAIM}::test_each_claim_of_a_row_has_a_number_of_its_own",
        ],
        on_postgresql=[
            postgresql(
                "release", "attempt = job.attempt - 1", "attempt = job.attempt - 1, claims = job.claims - 1"
            )
        ],
        on_sqlite=[sqlite("release", "attempt = attempt - 1", "attempt = attempt - 1, claims = claims - 1")],
    ),
    *each_database(
        "the greatest number of claims begins again",
        tests=["hostile/test_found.py::test_the_greatest_number_of_claims_begins_again"],
        on_postgresql=[postgresql("claim", "claims % 2147483647 + 1", "claims + 1")],
        on_sqlite=[sqlite("claim", "claims % 2147483647 + 1", "claims + 1")],
    ),
    *each_database(
        "a snooze gives the attempt back",
        tests=[f"{FINISH}::test_a_snooze_gives_the_attempt_back"],
        on_postgresql=[
            postgresql("finish", "held.kind IN ('snoozed', 'released')", "held.kind IN ('released')")
        ],
        on_sqlite=[
            sqlite("finish", "outcome.kind IN ('snoozed', 'released')", "outcome.kind IN ('released')")
        ],
    ),
    *each_database(
        "a failure of the last attempt is a dead letter",
        tests=[f"{FINISH}::test_a_failure_of_the_last_attempt_is_a_dead_letter"],
        on_postgresql=[
            postgresql("finish", " OR (outcome.kind = 'retry' AND job.attempt >= job.max_attempts)")
        ],
        on_sqlite=[sqlite("finish", " OR (outcome.kind = 'retry' AND attempt >= max_attempts)")],
    ),
    Guard(
        "what a dead process had not started is not charged",
        edits=[
            Edit("worker/handback.py", "(unstarted if known is None else", "(others if known is None else")
        ],
        tests=[
            f"{HANDBACK}::test_only_what_was_running_is_charged",
            f"{HANDBACK}::test_what_is_released_is_as_it_was_before_the_claim",
        ],
    ),
    Guard(
        "what a dead process's last statement brings is looked for again (PostgreSQL)",
        edits=[Edit("worker/handback.py", "if store.outlives_client and now", "if False and now")],
        tests=[f"{HANDBACK}::test_a_claim_that_arrives_after_the_death_is_released_too"],
        databases=["postgresql"],
    ),
    Guard(
        "slow jobs are not claimed ahead",
        edits=[
            Edit("worker/producer.py", "self._done == 0 or self._mean >= AHEAD_SECONDS", "self._done == 0")
        ],
        tests=["worker/producer/test_how_much.py::test_the_look_ahead_is_a_quarter_second_of_work"],
    ),
    Guard(
        "so many jobs are claimed ahead at most",
        edits=[
            Edit("worker/producer.py", "int(min(AHEAD_JOBS * self._times(), seconds", "int(min(1e9, seconds")
        ],
        tests=["worker/producer/test_how_much.py::test_the_look_ahead_is_a_quarter_second_of_work"],
    ),
    # -- what waits for its time ---------------------------------------------------------------------------------------
    *each_database(
        "a job is due at its very moment",
        tests=["store/test_promote.py::test_a_job_is_due_at_its_very_moment"],
        on_postgresql=[postgresql("promote", "run_after <= COALESCE", "run_after < COALESCE")],
        on_sqlite=[sqlite("promote", "run_after <= :now", "run_after < :now")],
    ),
    Guard(
        "a promotion looks again under the row's lock (PostgreSQL)",
        edits=[postgresql("promote", _LOCKED)],
        tests=[f"{RACES}::test_a_promotion_skips_what_is_being_cancelled"],
        databases=["postgresql"],
    ),
    *each_database(
        "rescued jobs come back spread out",
        tests=["store/test_rescue.py::test_rescued_jobs_come_back_spread_out"],
        on_postgresql=[postgresql("rescue", "secs => random() * :spread::float8", "secs => :spread::float8")],
        on_sqlite=[sqlite("rescue", "(abs(random() % 1000000) / 1000000.0 * :spread)", "(:spread)")],
    ),
    # -- the outcomes of one job stay in order -------------------------------------------------------------------------
    Guard(
        "a later outcome of a job waits for the batch with the earlier one",
        edits=[
            Edit(
                "worker/completer.py",
                "busy = busy.union(self._aside.attempts, *self._in_flight.values())",
                "busy = busy.union(self._aside.attempts)",
            )
        ],
        tests=[
            f"{TWO_WRITERS}::test_a_later_outcome_of_a_job_waits_for_the_batch_with_the_earlier_one",
            f"{TWO_WRITERS}::test_it_waits_for_the_retries_of_that_batch_too",
        ],
    ),
    Guard(
        "a statement has one outcome of a job",
        edits=[Edit("worker/completer.py", "if len(ids) < len(batch):", "if False:")],
        tests=[f"{TWO_WRITERS}::test_two_outcomes_of_one_job_are_never_in_one_statement"],
    ),
    Guard(
        "executors are held back at a backlog",
        edits=[Edit("worker/completer.py", "            self._room.wait()\n")],
        tests=[
            "worker/completer/test_batches.py::test_executors_are_held_back_at_a_backlog_and_go_on_when_there_is_room"
        ],
    ),
    # -- one leads -----------------------------------------------------------------------------------------------------
    *each_database(
        "another one leads only when the lease is over",
        tests=[
            f"{LEADERSHIP}::test_another_one_is_refused_until_the_lease_ends",
            f"{LEADERSHIP}::test_of_many_at_once_one_leads",
        ],
        on_postgresql=[
            postgresql(
                "acquire_leadership",
                "WHERE leadership.holder = excluded.holder OR leadership.expires_at <= excluded.acquired_at\n",
                "WHERE true\n",
            )
        ],
        on_sqlite=[
            sqlite(
                "acquire_leadership",
                "WHERE leadership.holder = excluded.holder OR leadership.expires_at <= excluded.acquired_at\n",
                "WHERE true\n",
            )
        ],
    ),
    *each_database(
        "only the leader resigns",
        tests=[
            f"{LEADERSHIP}::test_only_the_leader_can_resign",
            f"{LEADERSHIP}::test_a_late_resignation_does_not_take_it_from_the_next_one",
        ],
        on_postgresql=[postgresql("resign_leadership", " AND holder = :holder", " AND :holder <> ''")],
        on_sqlite=[sqlite("resign_leadership", " AND holder = :holder", " AND :holder <> ''")],
    ),
)
