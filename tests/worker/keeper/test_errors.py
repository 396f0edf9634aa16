"""Errors of any kind end no keeper, and starve no other work."""

import json
import threading
from types import SimpleNamespace

from django.db import connection
from django.db.utils import OperationalError

from django_jobs.store.selecting import Found, Position
from django_jobs.worker import parts
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT
from tests.worker.keeper.helping import insert, lost_worker, states


def test_errors_back_off_and_a_wake_up_does_not_skip_that(keeper, monkeypatch):
    monkeypatch.setattr(parts, "pause_after", lambda failures: TIMEOUT)
    calls = []

    def fail(*args):
        calls.append(1)
        raise OperationalError("away")

    keeper.store.next_due = fail
    keeper.wake()
    eventually(lambda: calls)
    for _ in range(10):
        keeper.wake()
        threading.Event().wait(0.005)

    assert len(calls) == 1


def test_it_goes_on_after_errors_of_any_kind(keeper, store, monkeypatch):
    pauses = []
    monkeypatch.setattr(parts, "pause_after", lambda failures: pauses.append(failures) or 0.0)
    real = keeper.store.next_due
    errors = [OperationalError("away"), ValueError("ours"), OSError("gone")]

    def fail():
        if errors:
            raise errors.pop(0)
        return real()

    keeper.store.next_due = fail
    (due,) = insert(store, delay=0.05)
    keeper.wake()
    eventually(lambda: states()[due] == "available")

    assert pauses == [1, 2, 3]
    assert keeper.leads


def test_errors_in_one_kind_of_work_do_not_starve_another_for_ever(make, store, started, monkeypatch):
    """Retention that can't be read must not keep jobs from being promoted."""
    monkeypatch.setattr(parts, "pause_after", lambda failures: 0.0)
    (due,) = insert(store, delay=0.05)
    keeper = make()

    def fail():
        raise ValueError("RETENTION")

    keeper.purge = fail
    started(keeper)

    eventually(lambda: states()[due] == "available")
    lost_worker(store)
    keeper._rescue_at = 0.0
    eventually(lambda: "running" not in states().values())


def test_a_stop_in_the_middle_of_a_long_purge_ends_it(make, settings):
    settings.DJANGO_JOBS = {"RETENTION": {"completed": 0}}
    keeper = make()
    calls = []

    def purge(after, state, age, limit):
        calls.append(state)
        keeper.stop()
        return Found([Position(0, "", 1)] * limit, Position(0, "", 1))

    keeper._store = SimpleNamespace(purge_from=purge, purge_workers=lambda age: None, close=lambda: None)
    keeper.purge()

    assert calls.count("completed") == 1


def test_rows_that_others_wrote_do_not_stop_the_keeper(make, store, started):
    """Errors that are no list, and a name that is nobody's."""
    ids = lost_worker(store, 2)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_jobs_job SET errors = %s WHERE id = %s", [json.dumps({"a": 1}), ids[0]])
    started(make(lease=0.3))

    eventually(lambda: set(states().values()) == {"available"})
