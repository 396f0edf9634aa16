"""Workers that are lost, or taken for that, and what becomes of their jobs."""

from tests.guards.guard import Edit, Guard
from tests.guards.statements import each_database, postgresql, sqlite

# The fence, as the statements write it.
_CLAIM = "WHERE job.claims = outcome.claims AND job.state = 'running'"

LOST = "worker/worker/test_taken_for_lost.py"
RESCUE = "store/test_rescue.py"
PROCESSES = "worker/test_processes.py"
GIVING_BACK = "worker/producer/test_giving_back.py"
RACES = "store/test_races_postgresql.py"

GUARDS = (
    # -- a worker that was taken for lost --
    *each_database(
        "a worker that was taken for lost has no heartbeat",
        tests=[
            f"{LOST}::test_a_worker_that_was_taken_for_lost_goes_on_under_a_new_id",
            "store/test_workers.py::test_a_heartbeat_after_the_loss_finds_nothing_and_changes_nothing",
        ],
        on_postgresql=[postgresql("heartbeat", "lost_at IS NULL AND ")],
        on_sqlite=[sqlite("heartbeat", "lost_at IS NULL AND ")],
    ),
    *each_database(
        "the late completion of a worker that was taken for lost is fenced",
        tests=[f"{LOST}::test_a_worker_that_was_taken_for_lost_goes_on_under_a_new_id"],
        on_postgresql=[postgresql("complete", _CLAIM, "WHERE true")],
        on_sqlite=[
            sqlite("parts/claims_alike", " AND claims = :claims AND +state = 'running'"),
            sqlite(
                "parts/claims_apart",
                " AND django_jobs_job.claims = outcome.claims AND +django_jobs_job.state = 'running'",
            ),
        ],
    ),
    Guard(
        "what is buffered under an id that was given up is not run",
        edits=[
            Edit(
                "worker/worker.py",
                "self.signs.doubtful = True  # until there is a new id\n        self.pools.withdraw()\n",
                "self.signs.doubtful = True  # until there is a new id\n",
            )
        ],
        tests=[
            f"{LOST}::test_a_worker_that_was_taken_for_lost_goes_on_under_a_new_id",
            f"{LOST}::test_what_is_buffered_is_withdrawn_at_once_when_the_worker_was_given_up",
        ],
    ),
    Guard(
        "what is claimed while the id is given up is not run",
        edits=[
            Edit(
                "worker/producer.py",
                "                if self.situation.worker_id != worker_id:\n                    self.withdraw()",
                "                if False:\n                    self.withdraw()",
            )
        ],
        tests=[f"{GIVING_BACK}::test_what_is_claimed_while_the_id_is_given_up_does_not_reach_an_executor"],
    ),
    Guard(
        "what was claimed under an id that was given up is not given back",
        edits=[
            Edit(
                "worker/producer.py",
                "job for job in self._returning if job.values[WORKER_ID] == self.situation.worker_id",
                "job for job in self._returning if job.values[WORKER_ID]",
            )
        ],
        tests=[
            f"{GIVING_BACK}::test_what_was_claimed_under_an_id_that_was_given_up_is_neither_run_nor_given_back"
        ],
    ),
    Guard(
        "who has not had its own heartbeats for a lease rescues nobody",
        edits=[Edit("worker/keeper.py", "if self._trusted_for() >= self.lease:", "if True:")],
        tests=[
            "worker/keeper/test_rescuing.py::test_nobody_is_rescued_before_the_own_heartbeats_came_for_a_full_lease"
        ],
    ),
    Guard(
        "a lease counts from when the heartbeat was sent",
        edits=[
            Edit(
                "worker/heartbeat.py",
                "self._last, self._heard = sent,",
                "self._last, self._heard = time.monotonic(),",
            )
        ],
        tests=["worker/test_heartbeat.py::test_the_lease_counts_from_when_the_heartbeat_was_sent"],
    ),
    Guard(
        "there is no trust before the first heartbeat after a host stood still",
        edits=[
            Edit(
                "worker/heartbeat.py",
                "self._healthy_since is None or self._is_late(now) else",
                "self._healthy_since is None else",
            )
        ],
        tests=["worker/test_heartbeat.py::test_there_is_no_trust_after_a_host_stood_still"],
    ),
    Guard(
        # Both: this host's clock tells it, and the database's.
        "trust begins anew with the first heartbeat after a host stood still",
        edits=[
            Edit("worker/heartbeat.py", "            or self._is_late(time.monotonic())\n"),
            Edit("worker/heartbeat.py", "            or self._has_jumped(heartbeat.now, sent)\n"),
        ],
        tests=["worker/test_heartbeat.py::test_there_is_no_trust_after_a_host_stood_still"],
    ),
    *each_database(
        "a lease holds until its very end",
        tests=["store/test_workers.py::test_a_lease_holds_until_its_very_end"],
        on_postgresql=[postgresql("lose_workers", "(expires_at < COALESCE(", "(expires_at <= COALESCE(")],
        on_sqlite=[sqlite("lose_workers", "(expires_at < :now", "(expires_at <= :now")],
    ),
    *each_database(
        "a worker whose jobs were not rescued yet is not forgotten",
        tests=["store/test_workers.py::test_a_worker_whose_jobs_were_not_rescued_yet_is_kept"],
        on_postgresql=[
            postgresql("purge_workers", "WHERE state = 'running' AND worker_id = worker.id", "WHERE false")
        ],
        on_sqlite=[
            sqlite(
                "purge_workers",
                "WHERE job.state = 'running' AND job.worker_id = django_jobs_worker.id",
                "WHERE false",
            )
        ],
    ),
    # -- rescue --
    Guard(
        "a rescue looks again under the row's lock (PostgreSQL)",
        edits=[postgresql("rescue", "        FOR UPDATE SKIP LOCKED\n")],
        tests=[f"{RACES}::test_a_rescue_skips_what_is_being_finished"],
        databases=["postgresql"],
    ),
    Guard(
        "a rescue waits for nobody (PostgreSQL)",
        edits=[postgresql("rescue", "FOR UPDATE SKIP LOCKED", "FOR UPDATE")],
        tests=[f"{RACES}::test_a_rescue_skips_what_is_being_finished"],
        databases=["postgresql"],
    ),
    Guard(
        "a heartbeat of the same moment keeps a worker (PostgreSQL)",
        edits=[postgresql("lose_workers", "    FOR UPDATE SKIP LOCKED\n")],
        tests=[f"{RACES}::test_a_worker_whose_heartbeat_is_being_stored_is_not_lost"],
        databases=["postgresql"],
    ),
    *each_database(
        "a rescue is of workers that are lost or have stopped",
        tests=[
            f"{RESCUE}::test_a_job_claimed_again_by_a_live_worker_is_let_be",
            f"{RESCUE}::test_a_live_workers_jobs_are_let_be_also_when_it_is_late",
        ],
        on_postgresql=[postgresql("rescue", "WHERE lost_at IS NULL AND stopped_at IS NULL", "WHERE false")],
        on_sqlite=[
            sqlite(
                "rescue",
                "WHERE worker.id = holders.worker_id AND worker.lost_at IS NULL AND worker.stopped_at IS NULL",
                "WHERE false",
            )
        ],
    ),
    *each_database(
        "a rescue is of jobs that run",
        tests=[f"{RESCUE}::test_only_running_jobs_are_rescued"],
        on_postgresql=[
            postgresql("rescue", "WHERE state = 'running' AND worker_id = lost", "WHERE worker_id = lost")
        ],
        on_sqlite=[
            sqlite(
                "rescue", "WHERE job.state = 'running' AND job.worker_id = lost", "WHERE job.worker_id = lost"
            )
        ],
    ),
    *each_database(
        "a rescue goes by worker",
        tests=[f"{RESCUE}::test_jobs_behind_a_thousand_of_a_live_worker_are_found"],
        on_postgresql=[
            postgresql(
                "rescue",
                "SELECT worker_id FROM gone WHERE :worker_id",
                "SELECT worker_id FROM gone WHERE worker_id IN (SELECT worker_id FROM (\n"
                "        SELECT worker_id FROM django_jobs_job WHERE state = 'running' ORDER BY id LIMIT 1000\n"
                "    ) AS first) AND :worker_id",
            )
        ],
        on_sqlite=[
            sqlite(
                "rescue",
                "    SELECT min(worker_id) AS worker_id FROM django_jobs_job WHERE state = 'running'\n"
                "    UNION ALL\n"
                "    SELECT (SELECT min(job.worker_id) FROM django_jobs_job AS job\n"
                "            WHERE job.state = 'running' AND job.worker_id > holders.worker_id)\n"
                "    FROM holders WHERE holders.worker_id IS NOT NULL\n",
                "    SELECT DISTINCT worker_id FROM (\n"
                "        SELECT worker_id FROM django_jobs_job WHERE state = 'running' ORDER BY id LIMIT 1000\n"
                "    )\n",
            )
        ],
    ),
    *each_database(
        "a job whose attempts are used up is a dead letter",
        tests=[
            f"{PROCESSES}::test_a_job_that_kills_its_process_becomes_a_dead_letter_and_the_others_are_done",
            f"{RESCUE}::test_a_job_that_kills_every_worker_becomes_a_dead_letter",
        ],
        on_postgresql=[
            postgresql("rescue", "                    WHEN attempt >= max_attempts THEN 'failed'\n")
        ],
        on_sqlite=[sqlite("rescue", "                WHEN job.attempt >= job.max_attempts THEN 'failed'\n")],
    ),
    *each_database(
        "only a worker whose lease is over is taken for lost",
        tests=["worker/keeper/test_rescuing.py::test_a_worker_that_lives_keeps_its_jobs"],
        on_postgresql=[
            postgresql(
                "lose_workers",
                "(expires_at < COALESCE(:now::timestamptz, statement_timestamp())\n",
                "(true\n",
            )
        ],
        on_sqlite=[sqlite("lose_workers", "(expires_at < :now", "(true")],
    ),
)
