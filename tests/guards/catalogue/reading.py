"""What is read while somebody's transaction keeps the old entries of each index, and what is left of it afterwards."""

from tests.guards.guard import Edit, Guard

BESIDE = (
    "store/test_growth_postgresql.py"
    "::test_while_a_transaction_stays_open_claims_stay_fast_and_afterwards_the_room_is_used_again"
)
AGAIN = (
    "worker/producer/test_which_queues.py"
    "::test_what_a_claim_may_have_passed_over_is_claimed_in_time_and_without_a_wake_up"
)
ASKED = (
    "worker/producer/test_which_queues.py"
    "::test_where_asking_is_slow_it_asks_less_often_and_claims_from_what_wake_ups_name"
)
SEARCHED = (
    "worker/keeper/test_rescuing.py"
    "::test_where_that_takes_long_it_is_done_in_a_part_of_the_time_unless_somebody_is_lost"
)
IN_TURN = (
    "worker/test_retention.py"
    "::test_full_batches_follow_each_other_and_after_one_that_is_not_the_next_round_begins_anew"
)

GUARDS = (
    Guard(
        "a rescue passes over all that live workers have run (PostgreSQL)",
        edits=[
            Edit(
                "sql/postgresql/rescue.sql",
                "FROM django_jobs_worker WHERE lost_at IS NULL AND stopped_at IS NULL",
                "FROM django_jobs_worker WHERE false",
            ),
            Edit(
                "sql/postgresql/rescue.sql",
                "SELECT worker_id FROM gone WHERE :worker_id::bigint IS NULL",
                "SELECT worker_id FROM gone WHERE :worker_id::bigint IS NULL AND NOT EXISTS (SELECT FROM "
                "django_jobs_worker WHERE id = gone.worker_id AND lost_at IS NULL AND stopped_at IS NULL)",
            ),
        ],
        tests=[BESIDE],
        databases=["postgresql"],
    ),
    Guard(
        "a heartbeat looks for cancel requests among them alone (PostgreSQL)",
        edits=[
            Edit(
                "sql/postgresql/heartbeat.sql",
                "cancel_requested_at IS NOT NULL",
                "COALESCE(cancel_requested_at, 'infinity') < 'infinity'",
            )
        ],
        tests=[BESIDE],
        databases=["postgresql"],
    ),
    Guard(
        "claims that are slow go on from marks (PostgreSQL)",
        edits=[Edit("store/postgresql.py", "if parts := water.parts(queue_name):", "if parts := []:")],
        tests=[BESIDE],
        databases=["postgresql"],
    ),
    Guard(
        "a batch of a purge goes on where the one before it ended (PostgreSQL)",
        edits=[
            Edit(
                "sql/postgresql/purge.sql",
                "\n      AND (finalized_at, id) > (:after_moment::timestamptz, :after_id::bigint)",
            )
        ],
        tests=["store/test_purge.py::test_a_batch_goes_on_where_the_one_before_it_ended"],
        databases=["postgresql"],
    ),
    Guard(
        "a batch of a purge goes on where the one before it ended (SQLite)",
        edits=[Edit("sql/sqlite/purge.sql", "\n      AND (finalized_at, id) > (:after_moment, :after_id)")],
        tests=["store/test_purge.py::test_a_batch_goes_on_where_the_one_before_it_ended"],
        databases=["sqlite"],
    ),
    Guard(
        "full batches of a purge follow each other",
        edits=[
            Edit(
                "worker/retention.py",
                "rule.position = purged.end if is_full else None",
                "rule.position = None",
            )
        ],
        tests=[IN_TURN],
    ),
    Guard(
        "a round of a purge begins at the beginning once the one before it was through",
        edits=[Edit("worker/retention.py", "purged.end if is_full else None", "purged.end or rule.position")],
        tests=[IN_TURN],
    ),
    Guard(
        "a producer claims again what a claim may have passed over",
        edits=[Edit("worker/producer.py", "self._again[queue] = time.monotonic() + seconds", "pass")],
        tests=[AGAIN],
    ),
    Guard(
        "a claim that did not get all says that it may have passed over jobs (PostgreSQL)",
        edits=[Edit("store/low_water.py", "self._passed_over.add(queue_name)", "pass")],
        tests=["worker/test_low_load.py::test_what_becomes_available_again_behind_the_marks_is_run_in_time"],
        databases=["postgresql"],
    ),
    Guard(
        "which queues have jobs is asked in a part of the time",
        edits=[Edit("worker/producer.py", "max(ASK_SECONDS, self._asking / ASK_PART)", "ASK_SECONDS")],
        tests=[ASKED],
    ),
    Guard(
        "a queue that a wake-up names is claimed from though it is not asked for",
        edits=[
            Edit(
                "worker/producer.py",
                "self._woken.update(_taken_out(self._named))",
                "pass",
            )
        ],
        tests=[ASKED],
    ),
    Guard(
        "a search for claims of workers that are gone takes a part of the time",
        edits=[Edit("worker/keeper.py", "if not lost and began < self._search_at:", "if False:")],
        tests=[SEARCHED],
    ),
    Guard(
        "a worker that is taken for lost is rescued at once",
        edits=[
            Edit(
                "worker/keeper.py", "if not lost and began < self._search_at:", "if began < self._search_at:"
            )
        ],
        tests=[SEARCHED],
    ),
)
