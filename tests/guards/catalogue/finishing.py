"""Outcomes, late ones, and jobs that are gone, complete themselves or outlive their timeout."""

from tests.guards.guard import Edit, Guard
from tests.guards.statements import each_database, postgresql, sqlite

# The fence, as the statements write it.
_CLAIM = "WHERE job.claims = outcome.claims AND job.state = 'running'"
_LITE_CLAIM = " AND django_jobs_job.claims = outcome.claims"
_LITE_RUNNING = " AND +django_jobs_job.state = 'running'"

FENCE = "store/test_finish_fence.py"
AT_ONCE = "store/test_finish_and_delete.py"
COMPLETE = "worker/test_complete.py"

GUARDS = (
    # -- the fence --
    *each_database(
        "a finish is fenced by the claim's number",
        tests=[
            f"{FENCE}::test_an_outcome_of_an_earlier_claim_changes_nothing",
            f"{FENCE}::test_the_same_worker_and_attempt_are_another_claim_after_the_attempt_was_given_back",
        ],
        on_postgresql=[postgresql("finish", _CLAIM, "WHERE job.state = 'running'")],
        on_sqlite=[sqlite("finish", _LITE_CLAIM)],
    ),
    *each_database(
        "a completion is fenced by the claim's number",
        tests=[
            f"{FENCE}::test_an_outcome_of_an_earlier_claim_changes_nothing",
            f"{FENCE}::test_the_same_worker_and_attempt_are_another_claim_after_the_attempt_was_given_back",
            f"{FENCE}::test_of_completions_those_of_an_earlier_claim_change_nothing",
        ],
        on_postgresql=[postgresql("complete", _CLAIM, "WHERE job.state = 'running'")],
        on_sqlite=[
            sqlite("parts/claims_alike", " AND claims = :claims"),
            sqlite("parts/claims_apart", _LITE_CLAIM),
        ],
    ),
    *each_database(
        "a finish is of a job that runs",
        tests=[
            f"{FENCE}::test_an_outcome_after_a_rescue_changes_nothing",
            f"{FENCE}::test_a_second_outcome_of_a_claim_changes_nothing",
        ],
        on_postgresql=[postgresql("finish", _CLAIM, "WHERE job.claims = outcome.claims")],
        on_sqlite=[sqlite("finish", _LITE_RUNNING)],
    ),
    *each_database(
        "a completion is of a job that runs",
        tests=[
            f"{FENCE}::test_an_outcome_after_a_rescue_changes_nothing",
            f"{FENCE}::test_the_same_batch_sent_again_at_the_same_moment_stores_nothing",
        ],
        on_postgresql=[postgresql("complete", _CLAIM, "WHERE job.claims = outcome.claims")],
        on_sqlite=[
            sqlite("parts/claims_alike", " AND +state = 'running'"),
            sqlite("parts/claims_apart", _LITE_RUNNING),
        ],
    ),
    Guard(
        "a finish that deletes is fenced (PostgreSQL)",
        edits=[postgresql("finish_and_delete", _CLAIM, "WHERE true")],
        tests=[
            f"{AT_ONCE}::test_a_claim_that_was_lost_is_neither_finished_nor_deleted",
            f"{AT_ONCE}::test_what_no_longer_runs_is_left_alone",
            f"{AT_ONCE}::test_one_that_waited_for_a_rescue_is_late",
        ],
        databases=["postgresql"],
    ),
    Guard(
        "only what was finished is deleted (SQLite)",
        edits=[Edit("store/sqlite.py", "if item.stored and item.state in unkept", "if item.state in unkept")],
        tests=[f"{AT_ONCE}::test_what_no_longer_runs_is_left_alone"],
        databases=["sqlite"],
    ),
    *each_database(
        "a release is fenced by the claim's number",
        tests=["store/test_release.py::test_a_release_of_an_earlier_claim_changes_nothing"],
        on_postgresql=[postgresql("release", "job.claims = claim.claims AND ")],
        on_sqlite=[sqlite("release", " AND django_jobs_job.claims = claim.claims")],
    ),
    *each_database(
        "a release is of a job that runs",
        tests=[
            "store/test_release.py::test_a_release_sent_again_changes_nothing",
            "store/test_release.py::test_only_a_running_job_is_released",
        ],
        on_postgresql=[postgresql("release", " AND job.state = 'running'")],
        on_sqlite=[sqlite("release", _LITE_RUNNING)],
    ),
    *each_database(
        "a merge into the metadata is fenced",
        tests=[
            "store/test_merge_metadata.py::test_another_claim_s_job_is_not_touched_nor_one_that_is_over_or_gone"
        ],
        on_postgresql=[
            postgresql(
                "merge_metadata", "WHERE job.claims = patch.claims AND job.state = 'running'", "WHERE true"
            )
        ],
        on_sqlite=[
            sqlite(
                "merge_metadata",
                " AND django_jobs_job.claims = patch.claims AND +django_jobs_job.state = 'running'",
            )
        ],
    ),
    # -- rows that are gone --
    Guard(
        "a completion that was sent is not taken for stored (PostgreSQL)",
        edits=[
            Edit(
                "store/postgresql.py",
                "claims=array_literal(claims))\n            return self._ended(outcomes, rows, whole_rows)",
                'claims=array_literal(claims))\n            return [Ended(id_, "completed", True) for id_ in ids]',
            )
        ],
        tests=[f"{FENCE}::test_a_deleted_row_is_dropped_and_the_rest_is_stored"],
        databases=["postgresql"],
    ),
    Guard(
        "a completion that was sent is not taken for stored (SQLite)",
        edits=[Edit("store/sqlite.py", "if changed == len(outcomes):", "if changed:")],
        tests=[f"{FENCE}::test_a_deleted_row_is_dropped_and_the_rest_is_stored"],
        databases=["sqlite"],
    ),
    Guard(
        "a job that no answer tells of is gone",
        edits=[
            Edit(
                "worker/finishing.py",
                "    by_id = {item.id: item for item in ended}\n",
                '    by_id = {each.outcome.id: Ended(each.outcome.id, "completed", True) for each in batch}\n'
                "    by_id |= {item.id: item for item in ended}\n",
            )
        ],
        tests=[
            "worker/completer/test_errors.py::test_a_job_that_is_gone_is_told_as_gone_and_the_others_are_stored"
        ],
    ),
    # -- jobs that complete themselves --
    Guard(
        "a job that has completed itself is told as that",
        edits=[Edit("worker/attempt.py", "if state.completed:", "if False:")],
        tests=[
            f"{COMPLETE}::test_complete_commits_both_and_what_is_raised_after_that_changes_nothing",
            f"{COMPLETE}::test_what_waits_for_the_commit_and_raises_hides_no_completion",
        ],
    ),
    *each_database(
        # Both: the attempt knows that it has completed itself, and the fence finds that it runs no longer.
        "a job that has completed itself stays so",
        tests=[f"{COMPLETE}::test_complete_commits_both_and_what_is_raised_after_that_changes_nothing"],
        on_postgresql=[
            Edit("worker/attempt.py", "if state.completed:", "if False:"),
            postgresql("finish", _CLAIM, "WHERE job.claims = outcome.claims"),
        ],
        on_sqlite=[
            Edit("worker/attempt.py", "if state.completed:", "if False:"),
            sqlite("finish", _LITE_RUNNING),
        ],
    ),
    Guard(
        "a completion is in the transaction of its job",
        edits=[
            Edit(
                "worker/atomic.py",
                "        context.complete_once(result)\n    return result",
                "    return result",
            )
        ],
        tests=[
            "worker/test_atomic.py::test_who_has_lost_its_claim_commits_nothing",
            "worker/test_exactly_once.py::test_effects_are_as_many_as_completed_jobs",
        ],
    ),
    Guard(
        "who has lost its claim is told so, and commits nothing",
        edits=[
            Edit(
                "context.py",
                "            self._lose(state)\n        state.completing",
                "        state.completing",
            )
        ],
        tests=[
            "worker/test_atomic.py::test_who_has_lost_its_claim_commits_nothing",
            f"{COMPLETE}::test_a_lost_claim_is_told_and_should_stop_says_so_from_then_on",
        ],
    ),
    Guard(
        "a job completes itself in a transaction",
        edits=[Edit("context.py", "if not connections[using].in_atomic_block:", "if False:")],
        tests=[f"{COMPLETE}::test_complete_outside_of_a_transaction_is_refused"],
    ),
    Guard(
        # Both: the attempt knows that it has, and the row says so.
        "a job completes itself once",
        edits=[
            Edit("context.py", "        if self._has_completed(state):\n            return False\n"),
            Edit(
                "context.py",
                "            if row is not None and row.state == COMPLETED and row.claims == self.job.claims:\n"
                "                return False\n",
            ),
        ],
        tests=[f"{COMPLETE}::test_complete_twice_is_refused_and_the_transaction_rolled_back"],
    ),
    Guard(
        "a completion counts when it is committed",
        edits=[
            Edit(
                "context.py",
                "        transaction.on_commit(state.completing, using=using)\n",
                "        state.completing()\n        transaction.on_commit(state.completing, using=using)\n",
            )
        ],
        tests=[
            f"{COMPLETE}::test_a_completion_that_is_rolled_back_is_none",
            f"{COMPLETE}::test_a_failed_commit_is_the_job_s_failure",
        ],
    ),
    Guard(
        "an atomic job that says another word leaves no effect",
        edits=[
            Edit(
                "worker/atomic.py",
                "        if issubclass(type(result), Control):\n            raise result\n",
                "        if issubclass(type(result), Control):\n            return result\n",
            )
        ],
        tests=["worker/test_atomic.py::test_whatever_is_no_completion_leaves_no_effect"],
    ),
    Guard(
        "an atomic job that ended because it was told to leaves no effect",
        edits=[Edit("worker/atomic.py", "told = context.told()", "told = None")],
        tests=["worker/test_atomic.py::test_one_that_returns_because_it_was_told_to_end_leaves_no_effect"],
    ),
    # -- timeouts --
    *each_database(
        # Both: an attempt that was given up has no outcome, and if it had one, the fence would find another claim.
        "the late word of an attempt that was given up is dropped",
        tests=[
            "worker/test_strays.py::test_a_stray_s_next_attempt_runs_beside_it_and_its_late_word_changes_nothing"
        ],
        on_postgresql=[
            Edit(
                "worker/attempt.py",
                "and not self.timeouts.end(watch):",
                "and self.timeouts.end(watch) is None:",
            ),
            postgresql("finish", _CLAIM, "WHERE job.state = 'running'"),
        ],
        on_sqlite=[
            Edit(
                "worker/attempt.py",
                "and not self.timeouts.end(watch):",
                "and self.timeouts.end(watch) is None:",
            ),
            sqlite("finish", _LITE_CLAIM),
        ],
    ),
    Guard(
        "an attempt that was given up has no outcome",
        edits=[
            Edit(
                "worker/attempt.py",
                "and not self.timeouts.end(watch):",
                "and self.timeouts.end(watch) is None:",
            )
        ],
        tests=["worker/test_strays.py::test_a_stray_thread_is_replaced_counted_and_fenced"],
    ),
    Guard(
        "an attempt ends once",
        edits=[Edit("worker/timeouts.py", "return self._over.acquire(blocking=False)", "return True")],
        tests=["worker/test_timeouts.py::test_an_attempt_ends_once_whoever_is_faster"],
    ),
)
