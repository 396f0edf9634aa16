"""What the parts have in common: a thread that steps, waits, backs off after errors, stops and starts again."""

import logging
import sys
import threading

import pytest
from django.db.utils import OperationalError

from django_jobs.worker import parts
from django_jobs.worker.parts import LONGEST_PAUSE, Part, StopRequest, one_line, pause_after, until
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT


class Steps(Part):
    """Counts its steps, raises the errors it is given, and waits between."""

    name = "stepper"

    def __init__(self, *errors):
        super().__init__()
        self.errors = list(errors)
        self.steps = 0
        self.closed = 0
        self.woken = []

    def step(self):
        self.steps += 1
        if self.errors:
            raise self.errors.pop(0)
        self.woken.append(self._rest(TIMEOUT))

    def close(self):
        self.closed += 1


def test_a_part_steps_until_it_is_stopped_and_closes_what_it_holds(started):
    part = started(Steps())
    for count in range(1, 4):
        eventually(lambda count=count: part.steps == count)
        part.wake()
    part.stop()

    assert part.join(TIMEOUT)
    assert not part.is_alive()
    assert part.closed == 1
    assert part.woken == [True] * part.steps


def test_a_part_can_be_started_again(started):
    part = started(Steps())
    part.stop()
    assert part.join(TIMEOUT)
    before = part.steps
    started(part)

    eventually(lambda: part.steps > before)
    assert part.is_alive()


def test_a_part_that_runs_is_not_started_twice(started):
    part = started(Steps())

    with pytest.raises(RuntimeError, match="stepper runs already"):
        part.start()


def test_to_join_a_part_that_never_ran_is_no_error():
    assert Steps().join(0)


def test_a_join_has_an_end(started):
    part = started(Steps())

    assert not part.join(0.01)


def test_a_step_that_fails_is_followed_by_the_next_one_and_the_count_starts_anew(started, monkeypatch):
    pauses = []
    monkeypatch.setattr(parts, "pause_after", lambda failures, *longest: pauses.append(failures) or 0.0)
    part = started(Steps(ValueError("1"), OSError("2"), OperationalError("3")))
    eventually(lambda: part.woken or part.steps == 4)
    part.errors = [ValueError("4")]
    part.wake()
    eventually(lambda: part.steps == 6)

    assert pauses == [1, 2, 3, 1]
    assert part.is_alive()


def test_a_wake_up_does_not_skip_the_pause_after_an_error(started, monkeypatch):
    monkeypatch.setattr(parts, "pause_after", lambda *failures: TIMEOUT)
    part = started(Steps(ValueError("no")))
    eventually(lambda: part.failures == 1)
    for _ in range(20):
        part.wake()
        threading.Event().wait(0.005)

    assert part.steps == 1


def test_a_stop_ends_the_pause_after_an_error(started, monkeypatch):
    monkeypatch.setattr(parts, "pause_after", lambda *failures: 3600.0)
    part = started(Steps(ValueError("no")))
    eventually(lambda: part.failures == 1)
    part.stop()

    assert part.join(TIMEOUT)


def test_an_error_of_the_database_is_told_in_one_line_and_one_of_ours_with_its_traceback(
    started, monkeypatch, caplog
):
    monkeypatch.setattr(parts, "pause_after", lambda *failures: 0.0)
    part = started(Steps(OperationalError("server\n  closed"), ValueError("our fault")))
    eventually(lambda: part.steps == 3)

    database, ours = [record for record in caplog.records if record.name == "django_jobs.worker"]
    assert (
        database.getMessage()
        == "The stepper has a database error (1 in a row): OperationalError: server closed"
    )
    assert (database.levelno, database.exc_info) == (logging.WARNING, None)
    assert (ours.levelno, ours.exc_info[0]) == (logging.ERROR, ValueError)


def test_pauses_grow_to_a_bound_and_are_spread():
    pauses = {failures: {pause_after(failures) for _ in range(50)} for failures in range(1, 12)}

    for failures, seen in pauses.items():
        longest = min(0.1 * 2 ** (failures - 1), LONGEST_PAUSE)
        assert len(seen) > 1, "there is no jitter: workers would come back all at once"
        assert longest / 2 <= min(seen)
        assert max(seen) <= longest
    assert pause_after(100_000) <= LONGEST_PAUSE


def test_a_stop_can_be_asked_for_before_during_and_after_the_wait():
    request = StopRequest()
    assert not request.wait(0.0)
    assert (request.made, request.hurried) == (False, False)
    threading.Timer(0.01, request.make).start()
    assert request.wait(TIMEOUT)
    assert (request.made, request.hurried) == (True, False)

    request.make(hurry=True)
    assert request.wait(0.0)
    assert request.hurried
    request.make()
    assert request.hurried


def test_a_stop_can_be_asked_for_between_any_two_instructions_of_the_wait():
    """As a signal handler does, which runs in the thread that waits."""

    def ask(number):
        """Make the request as the wait comes to that line; whether it came so far."""
        request = StopRequest()
        left = [number]

        def trace(frame, event, argument):
            left[0] -= 1
            if left[0] == 0:
                request.make()
            return trace

        def wait():
            sys.settrace(trace)
            try:
                while not request.wait(0.0):
                    if left[0] > 0:
                        return
            finally:
                sys.settrace(None)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        thread.join(TIMEOUT)
        assert not thread.is_alive(), f"asked for at line {number}, it waits for itself"
        return left[0] <= 0

    lines = 1
    while ask(lines):
        lines += 1
    assert lines > 5


def test_an_error_in_one_line():
    assert one_line(ValueError("a\n b\t c")) == "ValueError: a b c"


def test_the_time_until_a_moment_that_has_passed_is_none():
    assert until(0.0) == 0.0
