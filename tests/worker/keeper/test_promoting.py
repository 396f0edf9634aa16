"""What is due becomes available, soon and in batches."""

import threading
from collections import Counter

import pytest

from django_jobs.models import Job
from django_jobs.worker import keeper as module
from tests.store.builders import Recorder
from tests.waiting import eventually
from tests.worker.keeper.helping import insert, states


def test_a_job_becomes_available_soon_after_it_is_due_without_a_wake_up(make, store, started):
    """The keeper knows when the next one is due, and sleeps until then."""
    (later,) = insert(store, delay=0.3, queue_name="mail")
    keeper = started(make(lease=3600.0))

    eventually(lambda: states()[later] == "available")
    assert keeper.woken == ["mail"]


def test_a_job_that_is_due_before_all_others_is_seen_when_the_keeper_is_woken(keeper, store):
    insert(store, delay=3600.0)
    keeper.wake()
    (sooner,) = insert(store, delay=0.2)
    keeper.wake()

    eventually(lambda: states()[sooner] == "available")


def test_only_what_is_due_is_promoted(keeper, store):
    (due,), (later,) = insert(store, delay=0.05), insert(store, delay=3600.0)
    keeper.wake()
    eventually(lambda: states()[due] == "available")

    assert states()[later] == "scheduled"


def test_a_crowd_is_promoted_in_batches_and_each_queue_is_told(keeper, store, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 10)
    ids = [*insert(store, 25, queue_name="a"), *insert(store, 25, queue_name="b")]
    Job.objects.filter(id__in=ids).update(state="scheduled")
    keeper.wake()
    eventually(lambda: set(states().values()) == {"available"})

    assert set(keeper.woken) == {"a", "b"}


def test_with_nothing_due_a_wake_up_costs_one_statement(keeper, store):
    """Wake-ups come with every commit on SQLite."""
    insert(store, delay=3600.0)
    looks = []
    real = keeper.store.next_due
    keeper.store.next_due = lambda: looks.append(1) or real()
    keeper.store.promote = None
    keeper.store.session = recorder = Recorder(keeper.store.session)
    for count in range(1, 11):
        keeper.wake()
        eventually(lambda count=count: len(looks) >= count)

    def sent() -> Counter[str]:
        return Counter(statement.name for statement, _ in [*recorder.seen])

    eventually(lambda: sent()["next_due"] == len(looks))

    # What else the leader does, it does by the clock, and not for each wake-up.
    assert all(count < 10 for name, count in sent().items() if name != "next_due")
    assert keeper.failures == 0


@pytest.mark.postgresql
def test_a_due_job_that_somebody_holds_is_not_asked_for_without_a_pause(keeper, store, open_store):
    (held,) = insert(store, delay=0.05)
    raw = open_store().session.connection
    with raw.transaction():
        raw.execute("SELECT 1 FROM django_jobs_job WHERE id = %s FOR UPDATE", (held,))
        keeper.wake()
        before = keeper.store.session.statements
        threading.Event().wait(0.3)
        assert keeper.store.session.statements - before < 50
        assert states()[held] == "scheduled"

    eventually(lambda: states()[held] == "available")
