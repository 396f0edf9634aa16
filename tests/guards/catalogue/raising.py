"""What a job raises and leaves behind, and when it is tried again."""

from tests.guards.guard import Edit, Guard
from tests.guards.statements import each_database, postgresql, sqlite

FAILURES = "worker/attempt/test_failures_told.py"
CONNECTIONS = "worker/test_connections.py"
SOUND = f"{CONNECTIONS}::test_the_next_job_has_a_sound_connection"

# As somebody would write it who knows only Exceptions. (A KeyboardInterrupt that goes on would end pytest.)
_ALMOST_ALL = "(Exception, KeyboardInterrupt)"

GUARDS = (
    # -- what a job raises, and leaves behind --
    Guard(
        "whatever a job raises is its failure",
        edits=[
            Edit(
                "worker/attempt.py",
                "        except BaseException as error:\n            # SystemExit, KeyboardInterrupt",
                f"        except {_ALMOST_ALL} as error:\n            # SystemExit, KeyboardInterrupt",
            )
        ],
        tests=[f"{FAILURES}::test_whatever_a_job_raises_is_its_failure"],
    ),
    Guard(
        "whatever an async job raises is its failure",
        edits=[
            Edit(
                "worker/attempt.py",
                "            result = await function(*args, **kwargs)\n        except BaseException as error:",
                "            result = await function(*args, **kwargs)\n        except Exception as error:",
            )
        ],
        tests=["worker/test_async.py::test_outcomes_are_those_of_other_jobs"],
    ),
    Guard(
        "a fault of the worker's own does not end its thread",
        edits=[
            Edit(
                "worker/executor.py",
                "            except BaseException as error:\n                # Ours",
                "            except Exception as error:\n                # Ours",
            )
        ],
        tests=["worker/executor/test_at_work.py::test_a_fault_of_the_worker_s_own_is_an_outcome_too"],
    ),
    Guard(
        "a failure beside the jobs does not end a thread",
        edits=[
            Edit(
                "worker/executor.py",
                "            except BaseException:\n                # No job's error comes here.",
                "            except Exception:\n                # No job's error comes here.",
            )
        ],
        tests=["worker/executor/test_at_work.py::test_a_failure_beside_the_jobs_does_not_end_the_thread"],
    ),
    Guard(
        "an exception that can't be told is told as that",
        edits=[
            Edit(
                "worker/failures.py",
                "    except BaseException as second:  # a __str__ may raise SystemExit",
                f"    except {_ALMOST_ALL} as second:  # a __str__ may raise SystemExit",
            )
        ],
        tests=[
            f"{FAILURES}::test_whatever_a_job_raises_is_its_failure",
            "worker/test_failures.py::test_a_message_that_can_not_be_read_says_so",
        ],
    ),
    Guard(
        "a connection that is not sound is thrown away",
        edits=[
            Edit("worker/connections.py", "            if not _sound(wrapper):\n", "            if False:\n")
        ],
        tests=[SOUND, f"{CONNECTIONS}::test_the_same_after_a_job_that_used_the_connection_well"],
    ),
    Guard(
        # Where autocommit is on, that it is off tells the same.
        "a connection in a transaction of Django's is not sound",
        edits=[
            Edit(
                "worker/connections.py",
                "    if wrapper.in_atomic_block or wrapper.closed_in_transaction or wrapper.needs_rollback:\n"
                "        return False\n",
            )
        ],
        tests=[
            f"{CONNECTIONS}::test_a_site_without_autocommit_has_its_connection_kept_and_its_leftovers_rolled_back"
        ],
    ),
    Guard(
        "a connection without autocommit is not sound",
        edits=[
            Edit(
                "worker/connections.py",
                '    if not wrapper.autocommit and wrapper.settings_dict["AUTOCOMMIT"]:\n        return False\n',
            )
        ],
        tests=[SOUND],
    ),
    Guard(
        "a connection that is in a transaction by the server's word is not sound (PostgreSQL)",
        edits=[
            Edit(
                "worker/connections.py",
                "        if raw.pgconn.transaction_status != 0:",
                "        if False:",
            )
        ],
        tests=[SOUND],
        databases=["postgresql"],
    ),
    Guard(
        "a connection that the server has ended is not sound (PostgreSQL)",
        edits=[
            Edit(
                "worker/connections.py",
                "        if _has_input(raw.pgconn.socket):\n            return False\n",
            )
        ],
        tests=[SOUND],
        databases=["postgresql"],
    ),
    Guard(
        "a connection that is in a transaction by its own word is not sound (SQLite)",
        edits=[
            Edit(
                "worker/connections.py",
                'elif wrapper.vendor == "sqlite" and raw.in_transaction:',
                "elif False:",
            )
        ],
        tests=[SOUND],
        databases=["sqlite"],
    ),
    # -- retries --
    Guard(
        "a delay is a day at most",
        edits=[
            Edit(
                "backoff.py",
                "return max(0.0, min(float(delay), float(cap)))",
                "return max(0.0, float(delay))",
            )
        ],
        tests=[
            "worker/attempt/test_outcomes.py::test_three_hundred_failures_do_not_overflow",
            "test_backoff.py::TestPolicies::test_a_day_is_the_cap_and_nothing_overflows",
        ],
    ),
    Guard(
        "a delay does not overflow",
        edits=[Edit("backoff.py", "    except OverflowError:\n", "    except KeyError:\n")],
        tests=["test_backoff.py::TestPolicies::test_a_day_is_the_cap_and_nothing_overflows"],
    ),
    Guard(
        "a worker keeps so many errors",
        edits=[Edit("worker/failures.py", "    if len(errors) >= most:\n", "    if False:\n")],
        tests=["worker/test_failures.py::test_the_first_and_the_newest_are_kept"],
    ),
    *each_database(
        "a rescue keeps so many errors",
        tests=["store/test_rescue_errors.py::test_the_history_stays_bounded_over_many_losses"],
        on_postgresql=[
            postgresql(
                "rescue", "            WHERE position <> 2 OR json_array_length(held.errors) < :most_errors\n"
            )
        ],
        on_sqlite=[sqlite("rescue", "ELSE json_remove(held.earlier, '$[1]') END", "ELSE held.earlier END")],
    ),
    *each_database(
        "errors that are no list keep no job from being rescued, with another one",
        tests=["store/test_rescue_errors.py::test_after_odd_errors_the_history_goes_on"],
        on_postgresql=[
            postgresql(
                "rescue",
                "CASE WHEN json_typeof(errors) = 'array' THEN errors ELSE '[]'::json END AS errors",
                "errors",
            )
        ],
        on_sqlite=[
            sqlite(
                "rescue",
                "CASE WHEN json_type(job.errors) = 'array' THEN job.errors ELSE '[]' END",
                "job.errors",
            )
        ],
    ),
    Guard(
        "errors that are no JSON keep no job from being rescued (SQLite)",
        edits=[sqlite("rescue", "CASE WHEN json_valid(job.errors) THEN", "CASE WHEN true THEN")],
        tests=["store/test_rescue_errors.py::test_bytes_that_are_no_text_do_not_stop_the_rescue_of_others"],
        databases=["sqlite"],
    ),
    Guard(
        "a backoff that raises anything falls back to the default",
        edits=[
            Edit(
                "backoff.py",
                "    except BaseException:  # SystemExit too",
                f"    except {_ALMOST_ALL}:  # SystemExit too",
            )
        ],
        tests=[
            "worker/attempt/test_outcomes.py::test_a_broken_backoff_falls_back_to_the_default_and_is_logged"
        ],
    ),
    Guard(
        "what a backoff returns is checked",
        edits=[
            Edit(
                "backoff.py",
                "min(_checked(policy(attempt, exception, job)), DAY)",
                "policy(attempt, exception, job)",
            )
        ],
        tests=[
            "worker/attempt/test_outcomes.py::test_a_broken_backoff_falls_back_to_the_default_and_is_logged"
        ],
    ),
)
