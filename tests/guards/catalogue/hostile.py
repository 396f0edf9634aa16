"""Rows that somebody's SQL has damaged, lines that go silent or deliver late, clocks that are set back."""

from tests.guards.guard import Edit, Guard

_PAGES = "hostile/test_other_rows.py::test_every_page_and_view"
_LATE = "store/test_workers.py::test_a_claim_of_an_epoch_that_its_worker_has_given_up_takes_nothing"

GUARDS = (
    Guard(
        "a moment is selected within the calendar",
        edits=[Edit("fields.py", "form = _CLAMPED.get(compiler.connection.vendor)", "form = None")],
        tests=[
            "test_fields.py::TestTimestampField::test_what_no_datetime_can_be_is_an_end_of_the_calendar",
            _PAGES,
        ],
    ),
    Guard(
        "texts of the small tables are read in any encoding",
        edits=[
            Edit(
                "sound_rows.py", "before, driver.text_factory = driver.text_factory, tolerant", "before = str"
            )
        ],
        tests=[_PAGES],
        databases=["sqlite"],
    ),
    Guard(
        "what is no value of its column is mended",
        edits=[Edit("sound_rows.py", "values[name] = mended(value)", "pass")],
        tests=[_PAGES],
        databases=["sqlite"],
    ),
    Guard(
        "live workers are told in numbers and texts",
        edits=[Edit("store/statistics.py", "whole(pid)", "pid")],
        tests=[_PAGES],
        databases=["sqlite"],
    ),
    Guard(
        "a paused queue whose name is no text is not in the way of a heartbeat",
        edits=[
            Edit("sql/sqlite/heartbeat.sql", "hex(name)", "name"),
            Edit("sql/sqlite/heartbeat.sql", " AND typeof(name) = 'text'"),
            Edit(
                "store/sqlite.py",
                '[bytes.fromhex(name).decode(errors="backslashreplace") for name in decode(paused)]',
                "decode(paused)",
            ),
        ],
        tests=["hostile/test_other_rows.py::test_the_worker"],
        databases=["sqlite"],
    ),
    Guard(
        "a pause that is no moment does not fail the driver",
        edits=[Edit("sql/sqlite/upsert_queue.sql", "+paused_at", "paused_at")],
        tests=["hostile/test_other_rows.py::test_every_operation_and_command"],
        databases=["sqlite"],
    ),
    Guard(
        "a schedule's key that only SQL can have given is told, not raised",
        edits=[
            Edit(
                "admin/schedules.py",
                "except InvalidSchedule as error:  # a key",
                "except ZeroDivisionError as error:  # a key",
            )
        ],
        tests=["hostile/test_other_rows.py::test_every_operation_and_command"],
    ),
    Guard(
        "a next tick that is no moment is worked out again",
        edits=[Edit("worker/ticker.py", "first, last = stored_timestamp(", "first, last = parse_timestamp(")],
        tests=["worker/test_ticker.py::TestFailures::test_a_next_tick_that_is_no_moment_is_worked_out_again"],
    ),
    Guard(
        "a ledger is compared with what was read",
        edits=[
            Edit(
                "store/schedules.py",
                "return self._time(value) if isinstance(value, dt.datetime) else value",
                "return None if value is None else self._time(parse_timestamp(value))",
            )
        ],
        tests=["worker/test_ticker.py::TestFailures::test_a_next_tick_that_is_no_moment_is_worked_out_again"],
    ),
    Guard(
        "nobody leads for longer than a lease (PostgreSQL)",
        edits=[
            Edit(
                "sql/postgresql/acquire_leadership.sql",
                "   OR leadership.expires_at > excluded.acquired_at + make_interval(secs => :longest::float8)\n",
            )
        ],
        tests=[
            "store/test_leadership.py::test_there_is_a_leader_again_when_the_clock_was_set_back",
            "hostile/test_other_rows.py::test_whatever_is_said_of_the_leader_there_is_one_again",
        ],
        databases=["postgresql"],
    ),
    Guard(
        "nobody leads for longer than a lease (SQLite)",
        edits=[Edit("sql/sqlite/acquire_leadership.sql", "   OR leadership.expires_at > :longest\n")],
        tests=[
            "store/test_leadership.py::test_there_is_a_leader_again_when_the_clock_was_set_back",
            "hostile/test_other_rows.py::test_whatever_is_said_of_the_leader_there_is_one_again",
        ],
        databases=["sqlite"],
    ),
    Guard(
        "a leader with a longer lease leads",
        edits=[Edit("store/workers.py", "max(lease, LONGEST_LEADERSHIP)", "LONGEST_LEADERSHIP")],
        tests=["store/test_leadership.py::test_a_leader_with_a_longer_lease_leads"],
    ),
    Guard(
        "a heartbeat of the future is a dead worker's (PostgreSQL)",
        edits=[
            Edit(
                "sql/postgresql/lose_workers.sql",
                "OR heartbeat_at > COALESCE",
                "OR false AND heartbeat_at > COALESCE",
            )
        ],
        tests=["store/test_workers.py::test_who_has_died_before_the_clock_was_set_back_is_lost"],
        databases=["postgresql"],
    ),
    Guard(
        "a heartbeat of the future is a dead worker's (SQLite)",
        edits=[Edit("sql/sqlite/lose_workers.sql", " OR heartbeat_at > :future")],
        tests=["store/test_workers.py::test_who_has_died_before_the_clock_was_set_back_is_lost"],
        databases=["sqlite"],
    ),
    Guard(
        "who has not seen the clock set back is no witness (PostgreSQL)",
        edits=[
            Edit(
                "sql/postgresql/lose_workers.sql",
                "AND witness.heartbeat_at <= COALESCE(:now::timestamptz, statement_timestamp())",
            )
        ],
        tests=[
            "store/test_workers.py::test_nobody_is_lost_on_the_word_of_a_worker_that_has_not_seen_the_clock_set_back"
        ],
        databases=["postgresql"],
    ),
    Guard(
        "who has not seen the clock set back is no witness (SQLite)",
        edits=[Edit("sql/sqlite/lose_workers.sql", "AND witness.heartbeat_at <= :now")],
        tests=[
            "store/test_workers.py::test_nobody_is_lost_on_the_word_of_a_worker_that_has_not_seen_the_clock_set_back"
        ],
        databases=["sqlite"],
    ),
    Guard(
        "there is no trust after the clock was set back",
        edits=[Edit("worker/heartbeat.py", " or passed < sent - self._last - SET_BACK_SECONDS")],
        tests=["worker/test_heartbeat.py::test_there_is_no_trust_after_the_clock_was_set_back"],
    ),
    Guard(
        "a claim of an epoch that was given up takes nothing (PostgreSQL)",
        edits=[Edit("sql/postgresql/claim.sql", " AND epoch <= :epoch", " AND :epoch::int IS NOT NULL")],
        tests=[_LATE, "faults/test_failure_points.py::test_a_claim_that_comes_late_takes_nothing"],
        databases=["postgresql"],
    ),
    Guard(
        "a claim past a mark of an epoch that was given up takes nothing",
        edits=[Edit("sql/postgresql/claim_on.sql", " AND epoch <= :epoch", " AND :epoch::int IS NOT NULL")],
        tests=[
            "store/test_low_water_postgresql.py::test_a_claim_of_an_epoch_that_was_given_up_takes_nothing_from_the_marks_on"
        ],
        databases=["postgresql"],
    ),
    Guard(
        "a claim of an epoch that was given up takes nothing (SQLite)",
        edits=[Edit("sql/sqlite/claim.sql", " AND epoch <= :epoch")],
        tests=[_LATE, "faults/test_failure_points.py::test_a_claim_that_comes_late_takes_nothing"],
        databases=["sqlite"],
    ),
    Guard(
        "an epoch only grows",
        edits=[
            Edit("sql/postgresql/heartbeat.sql", "GREATEST(epoch, :epoch)", ":epoch"),
            Edit("sql/sqlite/heartbeat.sql", "max(epoch, :epoch)", ":epoch"),
        ],
        tests=[_LATE],
    ),
    Guard(
        "a claim that failed ends its epoch",
        edits=[Edit("worker/lost_answers.py", "        self._epoch.end(epoch)\n")],
        tests=[
            "faults/test_failure_points.py::test_a_claim_that_comes_late_takes_nothing",
            "worker/test_lost_answers.py::test_what_comes_late_is_found_when_no_more_can_come",
        ],
    ),
    Guard(
        "what came late is looked for when no more can come",
        edits=[
            Edit("worker/lost_answers.py", "looks = len(LOOKS) if store", "looks = len(LOOKS) - 1 if store")
        ],
        tests=["worker/test_lost_answers.py::test_what_comes_late_is_found_when_no_more_can_come"],
    ),
    Guard(
        "a statement on a line that went silent has a deadline",
        edits=[Edit("store/sessions.py", "        watchdog.watch(deadline)\n")],
        tests=[
            "worker/test_half_open_processes_postgresql.py::test_sigterm_while_a_claim_is_on_a_line_that_went_silent"
        ],
        databases=["postgresql"],
    ),
    Guard(
        "a logging handler that raises ends no part of a worker",
        edits=[
            Edit(
                "worker/logs.py",
                "except Exception as error:  # nobody",
                "except ZeroDivisionError as error:  # nobody",
            )
        ],
        tests=["worker/test_logs.py::test_every_part_goes_on"],
    ),
    *(
        Guard(
            f"a worker's session sets {name}, whatever its role has set",
            edits=[Edit("store/postgresql_session.py", line)],
            tests=["store/test_role_settings_postgresql.py::test_a_worker_goes_on_whatever_its_role_has_set"],
            databases=["postgresql"],
        )
        for name, line in (
            ("DateStyle", '    "DateStyle": "ISO, MDY",\n'),
            ("array_nulls", '    "array_nulls": "on",\n'),
            ("idle_session_timeout", '    "idle_session_timeout": "0",\n'),
        )
    ),
    Guard(
        "a process that a job forks ends with the job",
        edits=[Edit("worker/copies.py", "        copied.append(os.getpid())\n", "        pass\n")],
        tests=["worker/test_copies.py::test_the_child_ends_where_the_job_does"],
    ),
    Guard(
        "a worker whose words nobody reads works on",
        edits=[
            Edit(
                "management/commands/runjobs.py", "except (OSError, ValueError):", "except ZeroDivisionError:"
            )
        ],
        tests=["worker/test_processes.py::test_nobody_reads_what_it_says"],
    ),
    Guard(
        "a database file that was replaced is opened anew",
        edits=[Edit("store/sqlite_session.py", "if found != self._file:", "if False:")],
        tests=["store/test_files_sqlite.py::test_a_file_that_was_replaced_is_opened_anew"],
        databases=["sqlite"],
    ),
    Guard(
        "a database file that was deleted is not made anew",
        edits=[
            Edit(
                "store/sqlite_session.py",
                """raise OperationalError(
                    f"The database's file {self._path} was deleted or moved away."
                ) from None""",
                "found = (0, 0)",
            )
        ],
        tests=["store/test_files_sqlite.py::test_a_file_that_was_deleted_is_waited_for"],
        databases=["sqlite"],
    ),
    Guard(
        "a database file is found from any folder",
        edits=[Edit("store/sqlite_session.py", "str(Path(self._name).absolute())", "self._name")],
        tests=["store/test_files_sqlite.py::test_a_file_is_found_from_another_folder"],
        databases=["sqlite"],
    ),
)
