"""The rows of queues, and counts."""

from django_jobs.models import Queue
from django_jobs.store.statistics import QueueStateCount
from tests.store.builders import update


def test_a_queue_needs_no_row_and_gets_one_when_something_is_to_be_noted(store, clock):
    queue = store.upsert_queue("mail", now=clock.now)

    assert tuple(queue) == ("mail", None, {})
    row = Queue.objects.get()
    assert (row.name, row.paused_at, row.created_at, row.updated_at) == ("mail", None, clock.now, clock.now)


def test_a_queue_is_paused_and_resumed(store, clock):
    made = clock.now
    assert store.upsert_queue("mail", pause=True, now=clock.now).paused_at == made
    assert store.upsert_queue("mail", pause=False, now=clock.advance(1)).paused_at is None
    assert store.upsert_queue("mail", pause=True, now=clock.advance(1)).paused_at == clock.now

    row = Queue.objects.get()
    assert (row.created_at, row.updated_at, row.paused_at) == (made, clock.now, clock.now)


def test_pausing_again_keeps_the_time_of_the_pause(store, clock):
    paused = store.upsert_queue("mail", pause=True, now=clock.now).paused_at

    assert store.upsert_queue("mail", pause=True, now=clock.advance(60)).paused_at == paused
    assert store.upsert_queue("mail", now=clock.advance(60)).paused_at == paused


def test_resuming_a_queue_without_a_row(store, clock):
    assert store.upsert_queue("mail", pause=False, now=clock.now).paused_at is None


def test_metadata_is_kept_until_it_is_replaced(store, clock):
    assert store.upsert_queue("mail", metadata='{"limit": 3}', now=clock.now).metadata == {"limit": 3}
    assert store.upsert_queue("mail", pause=True, now=clock.now).metadata == {"limit": 3}
    assert store.upsert_queue("mail", metadata='{"a": 1e22}', now=clock.now).metadata == {"a": 1e22}
    assert store.upsert_queue("mail", metadata="{}", now=clock.now).paused_at == clock.now
    assert Queue.objects.get().metadata == {}


def test_queues_do_not_meet(store, clock):
    store.upsert_queue("mail", pause=True, metadata='{"a": 1}', now=clock.now)
    store.upsert_queue("Mail", metadata='{"b": 1}', now=clock.now)

    assert store.upsert_queue("mail", now=clock.now)[1:] == (clock.now, {"a": 1})
    assert store.upsert_queue("Mail", now=clock.now)[1:] == (None, {"b": 1})


def test_a_paused_queues_jobs_wait_untouched(store, make, clock):
    job = make.one(queue_name="mail")
    store.upsert_queue("mail", pause=True, now=clock.now)

    assert make.again(job) == job


def test_counts_by_queue_and_state(store, make, clock):
    assert store.count_queues(10) == []

    make.insert(3, queue_name="b")
    make.insert(2, queue_name="a", delay=60.0)
    pending = make.one(queue_name="a")
    update([pending.id], state="pending")
    make.finished("failed", queue_name="c")
    make.running(make.worker(), queue_name="a")

    assert store.count_queues(10) == [
        QueueStateCount("a", "pending", 1),
        QueueStateCount("a", "running", 1),
        QueueStateCount("a", "scheduled", 2),
        QueueStateCount("c", "failed", 1),
    ]
    assert store.count_available(["a", "b"], 10) == {"a": 0, "b": 3}
