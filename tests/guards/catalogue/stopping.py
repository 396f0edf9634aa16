"""Starts, stops, and deploys in between."""

from tests.guards.guard import Edit, Guard

GUARDS = (
    Guard(
        "SIGTERM asks the worker to stop",
        edits=[Edit("management/commands/runjobs.py", "(signal.SIGTERM, signal.SIGINT)", "(signal.SIGINT,)")],
        tests=[
            "worker/test_processes.py::test_sigterm_right_after_the_start",
            "worker/test_processes.py::test_sigterm_among_jobs_leaves_nothing_running_and_charges_nothing",
        ],
    ),
    Guard(
        "what is claimed while a stop arrives is given back",
        edits=[
            Edit(
                "worker/producer.py",
                "            if self._stopping.is_set() or not self.situation.may_claim:\n",
                "            if not self.situation.may_claim:\n",
            )
        ],
        tests=[
            "worker/producer/test_giving_back.py::test_what_is_claimed_while_a_stop_arrives_is_given_back"
        ],
    ),
    Guard(
        "a supervisor passes on what a second signal means",
        edits=[Edit("worker/supervisor.py", "                child.lifeline.hurry()\n")],
        tests=["worker/test_supervisor_processes.py::test_a_second_signal_does_not_wait_for_the_jobs"],
    ),
    Guard(
        "a second signal at the very end is ignored",
        edits=[
            Edit("management/commands/runjobs.py", "signal.SIG_IGN if self.count else handler", "handler")
        ],
        tests=["worker/test_processes.py::test_a_second_signal_at_the_very_end_changes_nothing"],
    ),
    Guard(
        "each start is a new worker, whatever its host and process id (PostgreSQL)",
        edits=[
            Edit(
                "sql/postgresql/register_worker.sql",
                "INSERT INTO django_jobs_worker (\n    host",
                "INSERT INTO django_jobs_worker (\n    id, host",
            ),
            Edit(
                "sql/postgresql/register_worker.sql",
                "SELECT :host,",
                "OVERRIDING SYSTEM VALUE\nSELECT COALESCE((SELECT max(id) FROM django_jobs_worker WHERE host = :host "
                "AND pid = :pid), nextval(pg_get_serial_sequence('django_jobs_worker', 'id'))), :host,",
            ),
            Edit(
                "sql/postgresql/register_worker.sql",
                ") AS clock\n",
                ") AS clock\nON CONFLICT (id) DO UPDATE SET started_at = excluded.started_at\n",
            ),
        ],
        tests=["store/test_workers.py::test_each_start_is_a_new_worker"],
        databases=["postgresql"],
    ),
    Guard(
        "each start is a new worker, whatever its host and process id (SQLite)",
        edits=[
            Edit(
                "sql/sqlite/register_worker.sql",
                "INSERT INTO django_jobs_worker (\n    host",
                "INSERT OR REPLACE INTO django_jobs_worker (\n    id, host",
            ),
            Edit(
                "sql/sqlite/register_worker.sql",
                "VALUES (:host,",
                "VALUES ((SELECT max(id) FROM django_jobs_worker WHERE host = :host AND pid = :pid), :host,",
            ),
        ],
        tests=["store/test_workers.py::test_each_start_is_a_new_worker"],
        databases=["sqlite"],
    ),
    Guard(
        "what a job raises is its failure, arguments that do not fit too",
        edits=[
            Edit(
                "worker/attempt.py",
                "        except BaseException as error:\n"
                "            # SystemExit, KeyboardInterrupt and GeneratorExit are the job's own, too.\n",
                "        except BaseException as error:\n            raise\n",
            )
        ],
        tests=[
            (
                "worker/attempt/test_ends_well.py::"
                "test_arguments_that_no_longer_fit_the_function_are_the_job_s_failure"
            )
        ],
    ),
    Guard(
        "a name that was not registered for a day is a dead letter",
        edits=[
            Edit(
                "worker/outcomes.py",
                "    if since is not None and (now - since).total_seconds() >= UNREGISTERED_PATIENCE:\n",
                "    if False:\n",
            )
        ],
        tests=["worker/attempt/test_ends_well.py::test_an_unknown_name_is_a_dead_letter_after_a_day"],
    ),
)
