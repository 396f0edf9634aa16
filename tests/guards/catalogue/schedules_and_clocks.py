"""One job for each tick, whoever runs it and whatever the clocks say."""

from tests.guards.guard import Edit, Guard
from tests.guards.statements import each_database, postgresql, sqlite

TICKER = "worker/test_ticker.py::TestTicks"
TICKER_FAILURES = "worker/test_ticker.py::TestFailures"
SCHEDULES = "store/test_schedules.py"
TIMING = "test_timing.py"
RESTARTS = "worker/test_restarts_postgresql.py"

# The ledger has no tick: what was run is forgotten at once.
_NO_LEDGER = postgresql(
    "tick_schedule",
    "SET last_tick = :tick::timestamptz, next_tick = :following::timestamptz,",
    "SET last_tick = NULLIF(:tick::timestamptz, :tick::timestamptz),"
    " next_tick = NULLIF(:following::timestamptz, :following::timestamptz),",
)
_LITE_NO_LEDGER = sqlite(
    "tick_schedule",
    "SET last_tick = :tick, next_tick = :following,",
    "SET last_tick = NULLIF(:tick, :tick), next_tick = NULLIF(:following, :following),",
)

GUARDS = (
    # -- the ledger ----------------------------------------------------------------------------------------------------
    Guard(
        "a tick locks the schedule (PostgreSQL)",
        edits=[
            postgresql(
                "tick_schedule",
                "      AND (last_tick IS NULL OR last_tick < :tick::timestamptz)\n    FOR UPDATE\n",
                "      AND (last_tick IS NULL OR last_tick < :tick::timestamptz)\n",
            )
        ],
        tests=[
            f"{SCHEDULES}::TestTicks::test_of_many_keepers_at_once_one_runs_each_tick",
            f"{SCHEDULES}::TestMeetings::test_a_tick_that_waited_for_a_change_is_not_run",
        ],
        databases=["postgresql"],
    ),
    *each_database(
        # Both: the row is as it was read, and the tick is later than the last one.
        "who read the same row comes too late",
        tests=[
            f"{TICKER}::test_two_keepers_overlap",
            f"{SCHEDULES}::TestTicks::test_whoever_read_the_same_row_is_too_late",
            f"{SCHEDULES}::TestTicks::test_of_many_keepers_at_once_one_runs_each_tick",
        ],
        on_postgresql=[
            postgresql(
                "tick_schedule",
                "      AND next_tick IS NOT DISTINCT FROM :read_next_tick::timestamptz\n"
                "      AND (last_tick IS NULL OR last_tick < :tick::timestamptz)\n",
                "      AND (:read_next_tick::timestamptz IS NULL OR true)\n",
            )
        ],
        on_sqlite=[
            sqlite(
                "tick_schedule",
                "  AND next_tick IS :read_next_tick\n  AND (last_tick IS NULL OR last_tick < :tick)\n",
                "  AND (:read_next_tick IS NULL OR true)\n",
            )
        ],
    ),
    Guard(
        "who comes too late takes its job back (SQLite)",
        edits=[
            Edit(
                "store/sqlite.py",
                "                    raise FenceLost\n",
                "                    return None\n",
            )
        ],
        tests=[
            f"{TICKER}::test_two_keepers_overlap",
            f"{SCHEDULES}::TestTicks::test_whoever_read_the_same_row_is_too_late",
        ],
        databases=["sqlite"],
    ),
    Guard(
        "a tick is not run before its time",
        edits=[
            Edit(
                "worker/ticker.py",
                "        if first > at:\n            return first\n        ticks =",
                "        ticks =",
            )
        ],
        tests=[
            f"{TICKER}::test_a_clock_that_steps_back",
            f"{TICKER}::test_the_next_tick_is_worked_out_and_then_run",
        ],
    ),
    *each_database(
        # All three: the next tick is worked out from the last one on, is looked at again, and the ledger only grows.
        "no tick is run twice, whatever the clock and the declarations do",
        tests=[f"{TICKER}::test_a_clock_that_steps_back_as_the_code_changes_and_changes_back"],
        on_postgresql=[
            Edit(
                "worker/ticker.py",
                "if first is None or (last is not None and first <= last):",
                "if first is None:",
            ),
            Edit("worker/ticker.py", "since if last is None else max(since, last)", "since"),
            postgresql("tick_schedule", "      AND (last_tick IS NULL OR last_tick < :tick::timestamptz)\n"),
        ],
        on_sqlite=[
            Edit(
                "worker/ticker.py",
                "if first is None or (last is not None and first <= last):",
                "if first is None:",
            ),
            Edit("worker/ticker.py", "since if last is None else max(since, last)", "since"),
            sqlite("tick_schedule", "\n  AND (last_tick IS NULL OR last_tick < :tick)"),
        ],
    ),
    *each_database(
        "the ledger only grows",
        tests=[f"{SCHEDULES}::TestTicks::test_no_tick_is_run_twice_whatever_was_written_meanwhile"],
        on_postgresql=[
            postgresql("tick_schedule", "      AND (last_tick IS NULL OR last_tick < :tick::timestamptz)\n")
        ],
        on_sqlite=[sqlite("tick_schedule", "\n  AND (last_tick IS NULL OR last_tick < :tick)")],
    ),
    *each_database(
        "ticks have a ledger, which does not depend on the jobs",
        tests=[
            f"{TICKER}::test_a_job_that_was_purged_before_a_slow_keeper_looks",
            f"{TICKER_FAILURES}::test_a_tick_that_is_stored_though_the_answer_is_lost_is_one_job",
        ],
        on_postgresql=[_NO_LEDGER],
        on_sqlite=[_LITE_NO_LEDGER],
    ),
    Guard(
        "a schedule that fails harms no other one",
        edits=[
            Edit(
                "worker/ticker.py",
                "            except Exception as error:\n                wait = min(wait, self._postpone",
                "            except InvalidSchedule as error:\n                wait = min(wait, self._postpone",
            )
        ],
        tests=[f"{TICKER_FAILURES}::test_an_insert_that_fails"],
    ),
    # -- when it ticks -------------------------------------------------------------------------------------------------
    Guard(
        # Minute by minute as time passes, by what the zone's clock shows: in one night never, in another one twice.
        "a time of the day comes once, whatever the clock shows",
        edits=[
            Edit(
                "timing.py",
                "        for tick in CronSim(self._fields, moment.astimezone(self.zone)):\n"
                "            tick = tick.astimezone(dt.UTC)\n"
                "            if tick > moment:\n",
                "        tick = moment.replace(second=0, microsecond=0)\n"
                "        while True:\n"
                "            tick += dt.timedelta(minutes=1)\n"
                "            local = tick.astimezone(self.zone).replace(tzinfo=None)\n"
                "            if next(CronSim(self._fields, local - dt.timedelta(minutes=1))) == local:\n",
            )
        ],
        tests=[
            f"{TICKER}::test_daylight_saving",
            f"{TIMING}::TestTheHourThatComesTwice::test_half_past_one_where_that_comes_twice",
        ],
    ),
    Guard(
        "in the hour that comes twice no tick of the past is the next one",
        edits=[
            Edit(
                "timing.py",
                "            if tick > moment:\n                return tick\n",
                "            return tick\n",
            )
        ],
        tests=[
            f"{TIMING}::TestTheHourThatComesTwice::test_whoever_looks_in_between_finds_no_tick_of_the_past"
        ],
    ),
    Guard(
        "of missed ticks the latest is run",
        edits=[Edit("timing.py", "ticks = [self.latest(first, now)]", "ticks = [first]")],
        tests=[f"{TICKER}::test_a_keeper_that_was_down_for_three_hours"],
    ),
    Guard(
        "what is done about missed ticks is as the schedule says",
        edits=[
            Edit(
                "worker/ticker.py",
                "timing.owed(first, at, schedule.missed)",
                'timing.owed(first, at, "latest")',
            )
        ],
        tests=[f"{TICKER}::test_a_keeper_that_was_down_for_three_hours"],
    ),
    Guard(
        "missed ticks that are run are a hundred at most",
        edits=[Edit("timing.py", " and len(ticks) < MOST_CAUGHT_UP")],
        tests=[f"{TIMING}::TestOwed::test_all_are_a_hundred_at_most_the_newest"],
    ),
    # -- whose clock ---------------------------------------------------------------------------------------------------
    Guard(
        "the time is the database's (PostgreSQL)",
        edits=[
            Edit(
                "store/postgresql.py",
                "return None if now is None else now.astimezone(dt.UTC).isoformat()",
                "return (now or dt.datetime.now(dt.UTC)).astimezone(dt.UTC).isoformat()",
            )
        ],
        tests=[
            "store/test_insert.py::test_without_a_given_time_the_databases_own_is_used",
            f"{RESTARTS}::test_nothing_is_promoted_or_rescued_by_a_clock_that_is_two_hours_wrong",
        ],
        databases=["postgresql"],
    ),
    Guard(
        "a clock that is wrong is told once",
        edits=[Edit("worker/heartbeat.py", " and not self._skew_told")],
        tests=["worker/test_heartbeat.py::test_a_wrong_clock_is_told_once"],
    ),
    Guard(
        "a clock that is wrong is told",
        edits=[Edit("worker/heartbeat.py", "        self._compare_clocks(heartbeat, sent_at)\n")],
        tests=["worker/test_heartbeat.py::test_a_wrong_clock_is_told_once"],
    ),
    # -- moments as texts ----------------------------------------------------------------------------------------------
    Guard(
        # Without a fraction where that is zero: the Z comes after the point of a later moment.
        "moments have as many digits always (SQLite)",
        edits=[
            Edit(
                "serialization.py",
                'return moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")',
                'return moment.astimezone(dt.UTC).isoformat(" ").replace("+00:00", "Z")',
            )
        ],
        tests=["store/test_purge.py::test_a_whole_second_and_a_fraction_compare_as_times"],
        databases=["sqlite"],
    ),
)
