"""Every operation of a store, made to do what it is for: for the tests that look at statements and plans."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

from django_jobs.store import Store
from django_jobs.store.base import COMPLETED, FAILED, RETRY, SNOOZED
from django_jobs.store.rows import NewJob, Outcome
from tests.store.builders import Builder

Operation = Callable[[Store], Any]


def operations(make: Builder, size: int = 6) -> dict[str, Operation]:
    """Operations by name, each to be called once, with rows that wait for it; each returns something true.

    :param size: how many jobs those that find jobs by id are about.
    """
    now = make.clock.now
    new = NewJob("tests.job")
    worker, idle, late, stopped = make.worker(), make.worker(), make.worker(lease=-1.0), make.worker()
    make.store.stop_worker(stopped, now=now)
    mixed, completed, whole, released, asked = (make.claimed(worker, count=size) for _ in range(5))
    noted = make.claimed(worker, count=size)
    make.store.cancel([noted[0].id], now=now)
    rescued = make.worker()
    make.claimed(rescued, count=3, queue_name="rescued")
    lost = make.worker(lease=1.0)
    make.claimed(lost, count=3, queue_name="lost")
    make.store.stop_worker(lost, now=now)
    dead = make.finished("failed", count=size)
    make.finished("cancelled", count=3)
    make.insert(5, queue_name="waiting")
    make.insert(5, queue_name="later", run_after=make.clock.after(-10))
    due = make.insert(size, queue_name="due", delay=1.0)
    kinds = cycle([COMPLETED, RETRY, FAILED, SNOOZED])
    return {
        "insert": lambda store: store.insert(new, now=now),
        "insert_many": lambda store: store.insert_many(
            [new, new._replace(priority=1, delay=5.0)] * 5, now=now
        ),
        "claim": lambda store: store.claim(worker, "waiting", 3, now=now),
        "finish": lambda store: store.finish(
            [Outcome(job.id, job.claims, kind, delay=5.0) for job, kind in zip(mixed, kinds, strict=False)],
            now=now,
        ),
        "finish, completed": lambda store: store.finish(
            [Outcome(job.id, job.claims, COMPLETED) for job in completed], now=now
        ),
        "finish, whole rows": lambda store: store.finish(
            [Outcome(job.id, job.claims, COMPLETED) for job in whole], now=now, whole_rows=True
        ),
        "merge_metadata": lambda store: store.merge_metadata(
            [(job.id, job.claims, '{"a":1}') for job in noted], now=now
        ),
        "cancel_requests": lambda store: store.cancel_requests(worker),
        "release": lambda store: store.release(released, now=now),
        "cancel": lambda store: store.cancel([job.id for job in asked], now=now),
        "retry": lambda store: store.retry([job.id for job in dead], now=now),
        "promote": lambda store: store.promote(limit=2, now=make.clock.after(2)),
        "next_due": lambda store: store.next_due(now=now),
        "rescue": lambda store: store.rescue(limit=100, now=now),
        "rescue, one worker": lambda store: store.rescue(worker_id=rescued, now=now),
        "purge": lambda store: store.purge("cancelled", 0.0, limit=2, now=now),
        "get": lambda store: store.get([job.id for job in due]),
        "stats": lambda store: store.stats(),
        "waiting_queues": lambda store: store.waiting_queues(),
        "register_worker": lambda store: store.register_worker("host", 1, '["*"]', 4, "1", 30.0, now=now),
        "heartbeat": lambda store: store.heartbeat(worker, 30.0, now=now),
        "lose_workers": lambda store: late in [each.id for each in store.lose_workers(now=now)],
        "stop_worker": lambda store: store.stop_worker(idle, now=now),
        "purge_workers": lambda store: store.purge_workers(0.0, now=now),
        "upsert_queue": lambda store: store.upsert_queue("mail", pause=True, metadata="{}", now=now),
        "acquire_leadership": lambda store: store.acquire_leadership("keeper", "a", 30.0, now=now),
        "resign_leadership": lambda store: store.resign_leadership("keeper", "a", now=now),
    }


def expected_statement(name: str) -> str:
    """The statement that the operation of that name is made of."""
    return name.partition(",")[0]
