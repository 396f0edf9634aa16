"""A database that is away, connections that die, and answers that are lost."""

from tests.guards.guard import Edit, Guard

EVERY_STATEMENT = "faults/test_failure_points.py::test_every_statement_fails_once_and_nothing_is_lost"
ALONE = "faults/test_failure_points.py::test_a_statement_fails_alone_and_nothing_is_lost"
LOST_CLAIM = (
    "faults/test_failure_points.py::test_a_claim_whose_answer_is_lost_is_given_back_while_its_worker_lives"
)
RESTARTS = "worker/test_restarts_postgresql.py::test_a_worker_connects_again_and_loses_nothing"
AWAY = (
    "worker/test_away_postgresql.py::test_a_worker_outlasts_a_server_that_is_away_for_longer_than_its_lease"
)
FAILOVER = "worker/test_failover_postgresql.py::test_a_worker_goes_on_with_the_new_server"

GUARDS = (
    Guard(
        "a connection that broke is given up",
        edits=[
            Edit(
                "store/sessions.py",
                "if not self._usable(connection, error):",
                "if False:",
            )
        ],
        tests=[RESTARTS],
        databases=["postgresql"],
    ),
    Guard(
        "a part of the worker goes on after an error of the database",
        edits=[
            Edit(
                "worker/parts.py",
                "                except Exception as error:",
                "                except ValueError as error:",
            )
        ],
        tests=[EVERY_STATEMENT],
    ),
    Guard(
        "outcomes that could not be written are written again",
        edits=[Edit("worker/writing.py", "                if self.is_over():", "                if True:")],
        tests=[EVERY_STATEMENT],
    ),
    Guard(
        "outcomes that could not be written when the server restarted are written again",
        edits=[Edit("worker/writing.py", "                if self.is_over():", "                if True:")],
        tests=[RESTARTS],
        databases=["postgresql"],
    ),
    Guard(
        "a part of the worker goes on when the server was away for longer than the lease",
        edits=[
            Edit(
                "worker/parts.py",
                "                except Exception as error:",
                "                except ValueError as error:",
            )
        ],
        tests=[AWAY],
        databases=["postgresql"],
    ),
    Guard(
        "outcomes are kept for as long as the server is away",
        edits=[
            Edit(
                "worker/writing.py",
                "                if self.is_over():",
                "                if self.is_over() or failures > 3:",
            )
        ],
        tests=[AWAY],
        databases=["postgresql"],
    ),
    Guard(
        "a worker whose lease was over starts jobs again when it has renewed it",
        edits=[
            Edit(
                "worker/worker.py",
                "            self.signs.doubtful = False\n        self.cancel(heartbeat.cancelled)\n",
                "        self.cancel(heartbeat.cancelled)\n",
            )
        ],
        tests=[AWAY],
        databases=["postgresql"],
    ),
    Guard(
        "a connection of the site's that the server has ended during a job is not the next job's",
        edits=[
            Edit(
                "worker/connections.py",
                "        if _has_input(raw.pgconn.socket):\n            return False\n",
            )
        ],
        tests=[AWAY],
        databases=["postgresql"],
    ),
    Guard(
        "what a stop writes last is tried again",
        edits=[Edit("worker/insisting.py", "TRIES = 3", "TRIES = 1")],
        tests=[EVERY_STATEMENT],
    ),
    Guard(
        "a connection to a server that takes no writes any more is given up",
        edits=[
            Edit(
                "store/postgresql_session.py",
                "if isinstance(error.__cause__, psycopg.errors.ReadOnlySqlTransaction):",
                "if False:",
            )
        ],
        tests=[
            FAILOVER,
            "worker/test_failover_postgresql.py::test_a_read_only_error_gives_up_the_connection",
        ],
        databases=["postgresql"],
    ),
    Guard(
        "so is an executor's",
        edits=[Edit("worker/connections.py", " or _is_read_only(wrapper)")],
        tests=[FAILOVER],
        databases=["postgresql"],
    ),
    Guard(
        "a listening connection that was silent is asked whether the server is there",
        edits=[
            Edit(
                "store/postgresql_session.py",
                "        self._heard = None\n        with self._errors:",
                "        self._heard = self._connection\n        with self._errors:",
            )
        ],
        tests=["worker/test_listener.py::test_a_silent_connection_is_asked_whether_the_server_is_there"],
        databases=["postgresql"],
    ),
    Guard(
        "a listener that lost its connection says that it is not well",
        edits=[
            Edit(
                "worker/listener.py",
                '        """Wake-ups may be missed from now on."""\n        self.healthy = False\n',
            )
        ],
        tests=[
            "worker/test_listener.py::test_a_killed_connection_is_noticed_made_anew_and_all_is_looked_at_again"
        ],
        databases=["postgresql"],
    ),
    Guard(
        "polling takes over while the listener is not well",
        edits=[
            Edit(
                "worker/worker.py",
                "if self.listener is not None and self.listener.healthy:",
                "if self.listener is not None:",
            )
        ],
        tests=[
            "worker/worker/test_waking_up.py::test_while_wake_ups_can_be_missed_it_polls_as_often_as_it_was_told"
        ],
    ),
    Guard(
        "a statement has a deadline that the client keeps",
        edits=[Edit("store/sessions.py", "        watchdog.watch(deadline)\n")],
        tests=[
            "store/test_half_open_postgresql.py::test_a_query_ends_at_its_deadline_and_the_next_has_another_connection"
        ],
        databases=["postgresql"],
    ),
    Guard(
        "a worker whose lease is over, and can't be renewed, is in doubt",
        edits=[
            Edit(
                "worker/heartbeat.py",
                "        if time.monotonic() - self._last >= self.lease:\n            self.worker.doubt()\n",
            )
        ],
        tests=[
            (
                "worker/worker/test_taken_for_lost.py::"
                "test_a_worker_whose_heartbeats_fail_past_the_lease_starts_nothing_and_goes_on_afterwards"
            )
        ],
    ),
    Guard(
        "a worker in doubt claims nothing, and what it has claimed ahead is withdrawn",
        edits=[
            Edit(
                "worker/worker.py",
                "self.quiet or self.retirement.reason or signs.doubtful or signs.stopping",
                "self.quiet or self.retirement.reason or signs.stopping",
            ),
            Edit(
                "worker/worker.py",
                "            self.signs.doubtful = True\n            self.pools.withdraw()\n",
                "            self.signs.doubtful = True\n",
            ),
        ],
        tests=[
            (
                "worker/worker/test_taken_for_lost.py::"
                "test_a_worker_whose_heartbeats_fail_past_the_lease_starts_nothing_and_goes_on_afterwards"
            ),
            (
                "worker/worker/test_taken_for_lost.py::"
                "test_what_is_buffered_is_withdrawn_at_once_when_the_lease_is_in_doubt"
            ),
        ],
    ),
    Guard(
        "a claim that failed may have been stored, and is looked for",
        edits=[
            Edit("worker/producer.py", "                self._unanswered.failed(worker_id, queue, epoch)\n")
        ],
        tests=[LOST_CLAIM],
    ),
    Guard(
        "what was claimed by a statement whose answer was lost is released, and no attempt is spent",
        edits=[
            Edit(
                "worker/producer.py",
                "self.give_back(jobs)\n                self._ask",
                "self.buffer.put(jobs)\n                self._ask",
            )
        ],
        tests=[LOST_CLAIM],
    ),
    Guard(
        "a completion that a commit stored, whose answer was lost, is told as one",
        edits=[
            Edit(
                "worker/finishing.py",
                '                item.state == "completed"\n                and item.job is not None\n',
                "                False\n                and item.job is not None\n",
            )
        ],
        tests=["worker/test_complete.py::test_a_commit_whose_answer_is_lost_is_told_as_what_it_is"],
    ),
    Guard(
        "an outcome that is written again counts as stored when it is found so",
        edits=[
            Edit(
                "worker/writing.py",
                "                repeated = True\n                failures += 1\n",
                "                failures += 1\n",
            )
        ],
        tests=["worker/completer/test_errors.py::test_so_it_is_with_every_outcome"],
    ),
    # Of a completion both know that it is stored: what looks for lost answers, and what looks for jobs that have
    # completed themselves.
    Guard(
        "a completion that is written again counts as stored",
        edits=[
            Edit(
                "worker/writing.py",
                "                repeated = True\n                failures += 1\n",
                "                failures += 1\n",
            ),
            Edit(
                "worker/finishing.py",
                '                item.state == "completed"\n                and item.job is not None\n',
                "                False\n                and item.job is not None\n",
            ),
        ],
        tests=[
            (
                "worker/completer/test_errors.py::"
                "test_what_was_stored_though_the_answer_was_lost_counts_as_stored"
            ),
        ],
    ),
    Guard(
        "a completion that is written again counts as stored, and so it is on a database",
        edits=[
            Edit(
                "worker/writing.py",
                "                repeated = True\n                failures += 1\n",
                "                failures += 1\n",
            ),
            Edit(
                "worker/finishing.py",
                '                item.state == "completed"\n                and item.job is not None\n',
                "                False\n                and item.job is not None\n",
            ),
        ],
        tests=[ALONE],
    ),
)
