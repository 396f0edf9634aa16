"""Millions of rows, stale statistics, and somebody's transaction that stays open: plans, bounds and limits."""

from tests.guards.guard import Edit, Guard

PLANS = "store/test_plans_postgresql.py::test_the_workers_session_goes_by_the_intended_index"
SITES_PLANS = (
    "store/test_plans_postgresql.py::"
    "test_under_a_sites_own_settings_too_ids_and_keys_are_found_by_their_index"
)
READS = "store/test_big_tables_postgresql.py::test_an_operation_reads_what_it_reads_in_an_empty_table"
LONG = "store/test_big_tables_postgresql.py::test_beside_a_long_transaction"
PLANS_SQLITE = "store/test_plans_sqlite.py::test_each_statement_goes_by_its_index"
STALE_SQLITE = "store/test_plans_sqlite.py::test_jobs_are_found_by_their_ids_whatever_the_statistics_say"
ORDER_SQLITE = "store/test_plans_sqlite.py::test_what_has_a_limit_is_read_in_its_order_and_never_sorted"
LIMITS = "store/test_concurrency.py::test_claims_at_once_never_exceed_their_limit"
PURGES = "worker/keeper/test_purging.py::test_a_purge_is_bounded_and_goes_on_in_the_next_round"


def _postgresql(name: str, file: str, old: str, new: str, *tests: str) -> Guard:
    return Guard(
        f"{name} (PostgreSQL)",
        [Edit(f"sql/postgresql/{file}.sql", old, new)],
        tests or [PLANS],
        ["postgresql"],
    )


def _sqlite(name: str, file: str, old: str, new: str, *tests: str) -> Guard:
    return Guard(
        f"{name} (SQLite)", [Edit(f"sql/sqlite/{file}.sql", old, new)], tests or [PLANS_SQLITE], ["sqlite"]
    )


LIMITED = (
    _postgresql("a claim's subquery runs once", "claim", "WHERE id = ANY (ARRAY(", "WHERE id IN (("),
    _postgresql("a claim has a limit", "claim", "    LIMIT :limit\n", "", LIMITS, PLANS),
    _sqlite("a claim has a limit", "claim", "    LIMIT :limit\n", "", LIMITS),
    Guard(
        "a round of a purge has so many batches",
        [Edit("worker/retention.py", "            for _ in range(BATCHES):\n", "            while True:\n")],
        [PURGES],
    ),
    Guard(
        "a batch of a purge has so many jobs",
        [
            Edit(
                "worker/retention.py",
                "store.purge_from(rule.position, rule.state, rule.age, BATCH)",
                "store.purge_from(rule.position, rule.state, rule.age, 10**9)",
            )
        ],
        [PURGES],
    ),
    Guard(
        "a purge that was cut short goes on in the next round",
        [Edit("worker/keeper.py", "self._purge_at = now  # there is more", "pass  # there is more")],
        [PURGES],
    ),
    _postgresql(
        "a purge by id looks again under the row's lock", "delete", " OFFSET 0 FOR UPDATE", " OFFSET 0",
        "store/test_bulk_races_postgresql.py::test_a_purge_by_id_that_waited_for_a_retry_leaves_it",
    ),
    _postgresql(
        "a notification has the queue's name alone", "insert",
        "THEN '+' || queue_name ELSE '@' END", "THEN '+' || queue_name || ' ' || args ELSE '@' END",
        "store/test_notify_postgresql.py::test_the_longest_hint_is_far_below_what_a_notification_holds",
    ),
)  # fmt: skip

# With stale statistics, in the worker's session; those that find jobs by id, under a site's own settings too.
PLANNED = (
    *(
        # With the state in the look-up, the index of running jobs looks shorter.
        _postgresql(
            f"{file} looks rows up by their ids alone", file,
            f"WHERE id = {source}.id OFFSET 0 FOR UPDATE", f"WHERE id = {source}.id AND state = 'running' FOR UPDATE",
            PLANS, SITES_PLANS,
        )
        for file, source in [
            ("finish", "outcome"), ("complete", "outcome"), ("finish_and_delete", "outcome"), ("release", "claim"),
            ("merge_metadata", "patch"),
        ]
    ),
    # Those with a fence expect few rows whatever they are told; these must not be told how many.
    *(
        _postgresql(
            f"{file} hides from the planner how many rows it is about", file,
            "(SELECT :ids::bigint[])", ":ids::bigint[]", SITES_PLANS,
        )
        for file in ("cancel", "retry", "update")
    ),
    _postgresql(
        "cancel looks rows up one by one", "cancel",
        "FROM unnest((SELECT :ids::bigint[])) AS wanted (id)\n"
        "    CROSS JOIN LATERAL (SELECT id FROM django_jobs_job WHERE id = wanted.id FOR UPDATE) AS job\n",
        "FROM django_jobs_job AS job WHERE job.id IN (SELECT unnest(:ids::bigint[])) FOR UPDATE\n",
        SITES_PLANS,
    ),
    _postgresql(
        "retry finds who holds the key by the index of held keys", "retry", " AND live.holds_key", "",
        PLANS, SITES_PLANS,
    ),
    _postgresql(
        "update looks rows up one by one", "update",
        "SELECT {job columns} FROM django_jobs_job WHERE id = wanted.id OFFSET 0 FOR UPDATE",
        "SELECT {job columns} FROM django_jobs_job WHERE id IN (SELECT unnest(:ids::bigint[])) FOR UPDATE",
        SITES_PLANS,
    ),
    _postgresql(
        "a claim is by the index of available jobs", "claim",
        "state = 'available' AND queue_name", "state LIKE 'available' AND queue_name",
    ),
    _postgresql(
        "a purge is in the order of the index of finished jobs", "purge",
        "    ORDER BY state, finalized_at, id\n", "    ORDER BY id\n",
    ),
    _postgresql(
        "a promotion is in the order of its index", "promote", "    ORDER BY run_after, id\n", "    ORDER BY id\n"
    ),
    _postgresql(
        "a heartbeat finds cancel requests by their index", "heartbeat",
        "WHERE state = 'running' AND worker_id", "WHERE worker_id",
    ),
    _postgresql(
        "a rescue is by the index of running jobs", "rescue",
        "state = 'running' AND worker_id = lost.worker_id", "state LIKE 'running' AND worker_id = lost.worker_id",
        READS,
    ),
    _sqlite(
        "a claim is in the order of its index", "claim",
        "ORDER BY priority DESC, run_after, id", "ORDER BY priority DESC, id", ORDER_SQLITE,
    ),
    _sqlite(
        "a claim is by the index of available jobs", "claim", "state = 'available' AND", "state LIKE 'available' AND"
    ),
    *(
        _sqlite(
            f"{file} finds rows by their ids", file,
            f"WHERE django_jobs_job.id = {source}.id", f"WHERE +django_jobs_job.id = {source}.id",
        )
        for file, source in [
            ("finish", "outcome"), ("release", "claim"), ("merge_metadata", "patch"),
            ("update", "wanted"), ("retry", "again"),
        ]
    ),
    _sqlite(
        "complete finds rows by their ids", "parts/claims_alike", "WHERE id IN", "WHERE +id IN",
    ),
    _sqlite(
        "completions of claims of several numbers find rows by their ids", "parts/claims_apart",
        "WHERE django_jobs_job.id = outcome.id", "WHERE +django_jobs_job.id = outcome.id",
        "store/test_plans_sqlite.py::test_completions_of_claims_of_several_numbers_find_their_jobs_by_their_ids",
    ),
    *(
        _sqlite(
            f"{file} finds rows by their ids whatever the statistics say", file, f" AND +{old}", f" AND {old}",
            STALE_SQLITE,
        )
        for file, old in [
            ("finish", "django_jobs_job.state"), ("merge_metadata", "django_jobs_job.state"),
            ("parts/claims_alike", "state"), ("release_pending", "state"),
        ]
    ),
    _sqlite(
        "cancel finds rows by their ids", "cancel",
        "WHERE id IN (SELECT value FROM json_each(:ids))",
        "WHERE EXISTS (SELECT 1 FROM json_each(:ids) WHERE value = django_jobs_job.id)",
    ),
    _sqlite(
        "retry finds who holds the key by the index of held keys", "retry",
        "AND live.holds_key AND live.holds_key = 1", "AND live.holds_key > 0",
    ),
    _sqlite(
        "a purge is by the index of finished jobs", "purge",
        "finalized_at IS NOT NULL AND finalized_at <= :older_than", "finalized_at || '' <= :older_than",
    ),
    _sqlite(
        "a heartbeat finds cancel requests by their index", "heartbeat",
        "WHERE state = 'running' AND worker_id", "WHERE worker_id",
    ),
    _sqlite(
        "a rescue is by the index of running jobs", "rescue",
        "job.state = 'running' AND job.worker_id = lost.worker_id",
        "job.state LIKE 'running' AND job.worker_id = lost.worker_id",
    ),
    _sqlite(
        "a promotion is in the order of its index", "promote",
        "    ORDER BY run_after, id\n", "    ORDER BY id\n",
    ),
)  # fmt: skip

# Behind millions of rows, and beside a transaction that has been open for long. Each run takes a minute.
READ = (
    _postgresql(
        "a claim reads its own queue alone", "claim",
        "queue_name = :queue_name\n", "lower(queue_name) = lower(:queue_name)\n", READS,
    ),
    Guard(
        "claims that are slow go on from where the last one was",
        [Edit("store/low_water.py", "if marks is None or not marks.of or self._clock() >= marks.until:", "if True:")],
        [LONG],
        ["postgresql"],
    ),
    Guard(
        "the doctor names who has had a transaction open for long",
        [
            Edit(
                "doctor/postgresql.py",
                "               AND xact_start < clock_timestamp() - make_interval(secs => %s)\n",
                "               AND state = 'active' AND xact_start < clock_timestamp() - make_interval(secs => %s)\n",
            )
        ],
        [
            "test_doctor.py::TestPostgreSQL::test_an_old_transaction_is_named",
            "test_trouble.py::test_a_transaction_that_is_open_for_long",
        ],
        ["postgresql"],
    ),
)  # fmt: skip

GUARDS = (*LIMITED, *PLANNED, *READ)
