"""What can't be stored, or is too large: results, errors and arguments; and what can't be read."""

from tests.guards.guard import Edit, Guard

ARGUMENTS = "test_arguments.py::TestEncode::test_what_can_not_be_stored"
GOES_ON = "test_enqueueing.py::TestTransaction::test_goes_on_after_what_was_refused"
ENDS_WELL = "worker/attempt/test_ends_well.py"
FAILURES = "worker/attempt/test_failures_told.py"

_DECODING = """        except (ValueError, TypeError) as error:
            return outcomes.undecodable(job, definition, error)
        here = [job, definition, self.signs, None]
        # A context"""
_ASYNC_DECODING = """        except (ValueError, TypeError) as error:
            return outcomes.undecodable(job, definition, error)
        here = [job, definition, self.signs, None]
        interruption"""


GUARDS = (
    # -- results and errors --
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
    Guard(
        "results have a greatest size",
        edits=[Edit("results.py", "    if size > most:\n", "    if False:\n")],
        tests=[
            f"{FAILURES}::test_how_large_a_result_may_be_is_a_setting",
            f"{FAILURES}::test_a_result_that_can_not_be_stored_is_a_dead_letter_that_says_why",
        ],
    ),
    Guard(
        "the errors of a job have a greatest size together",
        edits=[
            Edit(
                "worker/failures.py",
                "while len(text.encode()) > limits.ERRORS_BYTES and errors:",
                "while False:",
            )
        ],
        tests=["worker/test_failures.py::test_all_errors_together_are_bounded_in_bytes"],
    ),
    # -- arguments --
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
                "    check_queue_name(options.queue_name, name)\n    check_whole(",
                "    check_whole(",
            )
        ],
        tests=[GOES_ON],
    ),
    Guard(
        "a priority is checked before it is stored",
        edits=[Edit("options.py", "limits.PRIORITY_HIGHEST,\n        name,", "10**9,\n        name,")],
        tests=[GOES_ON],
    ),
    # -- what a worker can't read, or does not know --
    Guard(
        "arguments that do not decode are the job's failure",
        edits=[
            Edit("worker/attempt.py", _DECODING, _DECODING.replace("(ValueError, TypeError)", "KeyError"))
        ],
        tests=[f"{ENDS_WELL}::test_arguments_that_do_not_decode_are_the_job_s_failure"],
    ),
    Guard(
        "arguments that do not decode are an async job's failure",
        edits=[
            Edit(
                "worker/attempt.py",
                _ASYNC_DECODING,
                _ASYNC_DECODING.replace("(ValueError, TypeError)", "KeyError"),
            )
        ],
        tests=["worker/test_async.py::test_undecodable_arguments_and_a_middleware"],
    ),
    Guard(
        "arguments are a list and an object",
        edits=[
            Edit(
                "worker/attempt.py",
                "            if args.__class__ is not list or kwargs.__class__ is not dict:\n"
                '                raise ValueError("args must be a list and kwargs an object")\n' + _DECODING,
                _DECODING,
            )
        ],
        tests=[
            f"{ENDS_WELL}::test_arguments_that_do_not_decode_are_the_job_s_failure",
            f"{ENDS_WELL}::test_arguments_of_the_other_shape_are_the_job_s_failure",
        ],
    ),
    Guard(
        "JSON that is nested too deeply is no JSON",
        edits=[
            Edit(
                "serialization.py",
                "    except RecursionError:\n        raise Explained(",
                "    except KeyError:\n        raise Explained(",
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
    Guard(
        "what comes packed from a claim is exact (SQLite)",
        edits=[
            Edit(
                "store/packing.py",
                "CASE typeof({name}) WHEN 'text' THEN 't' || hex({name}) ELSE quote({name}) END",
                "quote({name})",
            )
        ],
        tests=["store/test_packing.py::test_a_claim_brings_what_a_column_holds"],
        databases=["sqlite"],
    ),
    Guard(
        "where many jobs have something columns come as they are (SQLite)",
        edits=[Edit("store/sqlite.py", "self._varied.add(queue_name)", "pass")],
        tests=["store/test_packing.py::test_where_many_have_something_all_comes_as_it_is"],
        databases=["sqlite"],
    ),
)
