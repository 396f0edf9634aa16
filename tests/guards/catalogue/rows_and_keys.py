"""What can't be stored, what can't be read, what a job raises or leaves behind, and unique keys."""

from tests.guards.guard import Edit, Guard
from tests.guards.statements import each_database, postgresql, sqlite

ARGUMENTS = "test_arguments.py::TestEncode::test_what_can_not_be_stored"
GOES_ON = "test_enqueueing.py::TestTransaction::test_goes_on_after_what_was_refused"
ENDS_WELL = "worker/attempt/test_ends_well.py"
FAILURES = "worker/attempt/test_failures_told.py"
CONNECTIONS = "worker/test_connections.py"
SOUND = f"{CONNECTIONS}::test_the_next_job_has_a_sound_connection"
UNIQUE = "store/test_unique.py"
PURGE = "store/test_purge.py"

# As somebody would write it who knows only Exceptions. (A KeyboardInterrupt that goes on would end pytest.)
_ALMOST_ALL = "(Exception, KeyboardInterrupt)"
_DECODING = """        except (ValueError, TypeError) as error:
            return outcomes.undecodable(job, definition, error)
        here = [job, definition, self.signs, None]
        # A context"""

GUARDS = (
    # -- results and errors --------------------------------------------------------------------------------------------
    Guard(
        "a message is made storable",
        edits=[
            Edit(
                "worker/failures.py",
                "return cut_middle(printable(text), MESSAGE_LENGTH)",
                "return cut_middle(text, MESSAGE_LENGTH)",
            )
        ],
        tests=["worker/test_failures.py::test_a_message_that_no_database_can_hold_is_escaped"],
    ),
    Guard(
        "a message is bounded",
        edits=[
            Edit(
                "worker/failures.py",
                "return cut_middle(printable(text), MESSAGE_LENGTH)",
                "return printable(text)",
            )
        ],
        tests=["worker/test_failures.py::test_a_long_message_is_cut_in_the_middle"],
    ),
    Guard(
        "a traceback is bounded",
        edits=[
            Edit(
                "worker/failures.py",
                'return cut_middle(printable(text), conf.get("MAX_TRACEBACK_BYTES"))\n\n\ndef stack_of',
                "return printable(text)\n\n\ndef stack_of",
            )
        ],
        tests=[f"{FAILURES}::test_a_traceback_of_ten_megabytes_is_bounded"],
    ),
    Guard(
        "a batch that an outcome spoils is halved",
        edits=[
            Edit("worker/writing.py", "if of_an_outcome and len(batch) > 1:", "if False:"),
        ],
        tests=["worker/completer/test_bad_outcome.py::test_one_bad_outcome_is_one_bad_outcome"],
    ),
    Guard(
        "an outcome that can't be stored has a dead letter in its place",
        edits=[Edit("worker/writing.py", "if suspect and self._settle(store, batch[0]):", "if suspect:")],
        tests=["worker/completer/test_bad_outcome.py::test_one_bad_outcome_is_one_bad_outcome"],
    ),
    Guard(
        "a result that can't be stored is found before it is sent",
        edits=[
            Edit("results.py", "import NotStorable, encode_storable", "import NotStorable, encode"),
            Edit("results.py", 'encode_storable(result, "the result")', "encode(result)"),
        ],
        tests=[f"{FAILURES}::test_a_result_that_can_not_be_stored_is_a_dead_letter_that_says_why"],
    ),
    # -- arguments -----------------------------------------------------------------------------------------------------
    Guard(
        "NUL is refused",
        edits=[
            Edit("serialization.py", 'return text if "\\\\u0000" not in text and (', "return text if ("),
        ],
        tests=[ARGUMENTS, GOES_ON],
    ),
    Guard(
        "lone surrogates are refused",
        edits=[Edit("serialization.py", "and (text.isascii() or _is_text(text)) else None", "else None")],
        tests=[ARGUMENTS, GOES_ON],
    ),
    Guard(
        "NaN and infinity are refused",
        edits=[
            Edit(
                "serialization.py",
                'None, settings.default, json.encoder.encode_basestring, None, ":", ",", False, False, False',
                'None, settings.default, json.encoder.encode_basestring, None, ":", ",", False, False, True',
            )
        ],
        tests=[ARGUMENTS],
    ),
    Guard(
        "what would come back as another type is refused",
        edits=[
            Edit(
                "serialization.py",
                "    elif kind is not list:\n",
                "    elif not isinstance(value, (list, tuple)):\n",
            ),
        ],
        tests=[ARGUMENTS],
    ),
    Guard(
        "keys that are no strings are refused",
        edits=[
            Edit(
                "serialization.py",
                "        if not _STR.issuperset(map(type, value)):\n            return False\n",
                "",
            )
        ],
        tests=[ARGUMENTS],
    ),
    Guard(
        "arguments have a greatest size",
        edits=[Edit("arguments.py", "if size > most_bytes:", "if False:")],
        tests=["test_arguments.py::TestSize::test_over_the_limit", GOES_ON],
    ),
    Guard(
        "arguments must fit the function",
        edits=[Edit("enqueueing.py", "        definition.arguments.fit(args, kwargs)\n")],
        tests=[GOES_ON],
    ),
    Guard(
        "the name of a queue is checked before it is stored",
        edits=[
            Edit(
                "options.py",
                "    check_queue_name(options.queue_name, name)\n    _check_whole(",
                "    _check_whole(",
            )
        ],
        tests=[GOES_ON],
    ),
    Guard(
        "a priority is checked before it is stored",
        edits=[Edit("options.py", "limits.PRIORITY_HIGHEST,\n        name,", "10**9,\n        name,")],
        tests=[GOES_ON],
    ),
    # -- what a worker can't read, or does not know --------------------------------------------------------------------
    Guard(
        "arguments that do not decode are the job's failure",
        edits=[
            Edit("worker/attempt.py", _DECODING, _DECODING.replace("(ValueError, TypeError)", "KeyError"))
        ],
        tests=[f"{ENDS_WELL}::test_arguments_that_do_not_decode_are_the_job_s_failure"],
    ),
    Guard(
        "JSON that is nested too deeply is no JSON",
        edits=[
            Edit(
                "serialization.py",
                "    except RecursionError:\n        raise ValueError(",
                "    except KeyError:\n        raise ValueError(",
            )
        ],
        tests=[f"{ENDS_WELL}::test_arguments_that_do_not_decode_are_the_job_s_failure"],
    ),
    Guard(
        "a name that is not registered spends no attempt",
        edits=[
            Edit(
                "worker/outcomes.py",
                "Outcome(job.id, job.claims, SNOOZED, UNREGISTERED_DELAY",
                "Outcome(job.id, job.claims, RETRY, UNREGISTERED_DELAY",
            )
        ],
        tests=[f"{ENDS_WELL}::test_an_unknown_name_waits_a_minute_and_spends_no_attempt"],
    ),
    # -- what a job raises, and leaves behind --------------------------------------------------------------------------
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
    # -- retries -------------------------------------------------------------------------------------------------------
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
    # -- unique keys ---------------------------------------------------------------------------------------------------
    Guard(
        # As with a lock that is tried, and not waited for: who is second takes the first's word for it.
        "who inserts a key waits for another one that has just done so (PostgreSQL)",
        edits=[
            postgresql(
                "insert_unique",
                "    FROM new\n    ON CONFLICT",
                "    FROM new WHERE pg_try_advisory_xact_lock(hashtext(unique_key))\n    ON CONFLICT",
            )
        ],
        tests=["store/test_unique_races_postgresql.py::test_what_waited_for_a_rollback_is_inserted"],
        databases=["postgresql"],
    ),
    *each_database(
        "a key that is held is no error",
        tests=[f"{UNIQUE}::test_the_transaction_goes_on_after_a_duplicate"],
        on_postgresql=[
            postgresql("insert_unique", "    ON CONFLICT (unique_key) WHERE holds_key DO NOTHING\n")
        ],
        on_sqlite=[sqlite("insert_unique", "ON CONFLICT DO UPDATE SET claims = claims\n")],
    ),
    *each_database(
        "a key that is held is no error among many",
        tests=[f"{UNIQUE}::test_many_in_the_order_given"],
        on_postgresql=[
            postgresql("insert_many_unique", "    ON CONFLICT (unique_key) WHERE holds_key DO NOTHING\n")
        ],
        on_sqlite=[sqlite("insert_many_unique", "ON CONFLICT DO UPDATE SET claims = claims\n")],
    ),
    *each_database(
        "a promotion takes no key",
        tests=[f"{UNIQUE}::test_promoting_beside_a_live_twin_breaks_no_batch"],
        on_postgresql=[
            postgresql(
                "promote",
                "SET state = 'available'",
                "SET state = 'available', holds_key = unique_key IS NOT NULL",
            )
        ],
        on_sqlite=[
            sqlite(
                "promote",
                "SET state = 'available'",
                "SET state = 'available', holds_key = unique_key IS NOT NULL",
            )
        ],
    ),
    *each_database(
        "a retry looks whether another job holds the key",
        tests=[f"{UNIQUE}::test_a_refused_retry_says_why"],
        on_postgresql=[
            postgresql("retry", "WHERE live.unique_key = held.unique_key AND live.holds_key", "WHERE false")
        ],
        on_sqlite=[
            sqlite(
                "retry",
                "AND live.holds_key AND live.holds_key = 1",
                "AND false",
            )
        ],
    ),
    *each_database(
        "a retry is of finished jobs",
        tests=[f"{UNIQUE}::test_a_refused_retry_says_why"],
        on_postgresql=[
            postgresql(
                "retry", "state IN ('completed', 'failed', 'cancelled') AS finished", "true AS finished"
            )
        ],
        on_sqlite=[sqlite("retry", "job.state IN ('completed', 'failed', 'cancelled') AND (", "true AND (")],
    ),
    *each_database(
        "a job that has failed or was cancelled holds no key",
        tests=[f"{UNIQUE}::test_a_finished_job_holds_no_key"],
        on_postgresql=[
            postgresql(
                "finish",
                "OR (held.state = 'completed' AND job.key_until IS NOT NULL)",
                "OR true",
            )
        ],
        on_sqlite=[
            sqlite(
                "finish",
                "OR (ended.state = 'completed' AND key_until IS NOT NULL)",
                "OR true",
            )
        ],
    ),
    *each_database(
        "a job that is completed holds no key",
        tests=[f"{UNIQUE}::test_a_finished_job_holds_no_key"],
        on_postgresql=[
            postgresql(
                "complete",
                "holds_key = job.holds_key AND job.key_until IS NOT NULL",
                "holds_key = job.holds_key",
            )
        ],
        on_sqlite=[
            sqlite("complete", "holds_key = holds_key AND key_until IS NOT NULL", "holds_key = holds_key")
        ],
    ),
    *each_database(
        "a dead letter of a rescue holds no key",
        tests=["store/test_rescue.py::test_a_rescued_job_keeps_its_key_while_it_will_run"],
        on_postgresql=[
            postgresql(
                "rescue", "job.holds_key AND held.next_state IN ('scheduled', 'available')", "job.holds_key"
            )
        ],
        on_sqlite=[
            sqlite("rescue", "holds_key AND held.next_state IN ('scheduled', 'available')", "holds_key")
        ],
    ),
    # -- purges --------------------------------------------------------------------------------------------------------
    *each_database(
        "the age of a purge is inclusive",
        tests=[
            f"{PURGE}::test_age_zero_includes_what_ended_this_very_moment",
            f"{PURGE}::test_age_zero_includes_what_this_moments_finish_stored",
            f"{PURGE}::test_the_age_is_inclusive",
        ],
        on_postgresql=[
            postgresql(
                "purge",
                "      AND finalized_at\n          <= COALESCE(",
                "      AND finalized_at\n          < COALESCE(",
            )
        ],
        on_sqlite=[sqlite("purge", "finalized_at <= :older_than", "finalized_at < :older_than")],
    ),
    *each_database(
        "a purge spares who holds a key",
        tests=[
            f"{PURGE}::test_a_job_that_holds_its_key_is_kept",
            f"{UNIQUE}::test_purging_spares_a_job_that_holds_its_period",
        ],
        on_postgresql=[
            postgresql(
                "purge",
                "      AND (NOT holds_key OR key_until <= COALESCE(:now::timestamptz, statement_timestamp()))\n",
            )
        ],
        on_sqlite=[sqlite("purge", "\n      AND (NOT holds_key OR key_until <= :now)")],
    ),
    Guard(
        "a purge looks again under the row's lock (PostgreSQL)",
        edits=[postgresql("purge", "    FOR UPDATE SKIP LOCKED\n")],
        tests=["store/test_races_postgresql.py::test_a_purge_skips_what_is_being_retried"],
        databases=["postgresql"],
    ),
)
