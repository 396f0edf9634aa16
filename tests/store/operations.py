"""Every operation of a store, made to do what it is for: for the tests that look at statements and plans."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

from django_jobs.store import Store
from django_jobs.store.outcomes import COMPLETED, FAILED, RETRY, SNOOZED
from django_jobs.store.rows import NewJob, NewSchedule, Outcome
from django_jobs.store.schedules import Tick
from django_jobs.store.selecting import Criteria
from django_jobs.store.statistics import Fold, StatRow
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
    mixed, completed, whole, released, asked, going = (make.claimed(worker, count=size) for _ in range(6))
    noted = make.claimed(worker, count=size)
    make.store.cancel([noted[0].id], now=now)
    rescued = make.worker()
    make.claimed(rescued, count=3, queue_name="rescued")
    dying = make.worker()
    dying_held = make.claimed(dying, count=3, queue_name="held")
    lost = make.worker(lease=1.0)
    make.claimed(lost, count=3, queue_name="lost")
    make.store.stop_worker(lost, now=now)
    gone = make.insert(size, queue_name="gone")
    ended = make.finished("cancelled", count=size, queue_name="gone")

    def select(store: Store, **criteria: Any) -> list[int]:
        return store.select(Criteria(**criteria), look=5, now=now).ids

    dead = make.finished("failed", count=size)
    make.finished("cancelled", count=3)
    make.insert(5, queue_name="waiting")
    make.insert(5, queue_name="later", run_after=make.clock.after(-10))
    ticking = make.planned(now, "ticking")
    waiting, failing = make.schedule("waiting"), make.schedule("failing")
    make.schedule("gone")
    declared = [
        NewSchedule(key, "tests.job", "every 60 s") for key in ("ticking", "waiting", "failing", "new")
    ]
    due = make.insert(size, queue_name="due", delay=1.0)
    keyed = [NewJob("tests.job", unique_key=f"key {number}") for number in range(size + 1)]
    holding = make.store.insert_many(keyed, now=now)
    pending = make.insert(size, queue_name="pending", pending=True)
    make.insert(3, queue_name="waits", pending=True)
    hour = now.replace(minute=0, second=0, microsecond=0)
    stat = StatRow("default", "tests.job", "failed", "ValueError", 1, 0.5, 0.5, 1.0, 1.0)
    make.store.record_stats([stat], now=now)
    kinds = cycle([COMPLETED, RETRY, FAILED, SNOOZED])
    return {
        "insert": lambda store: store.insert(new._replace(priority=1, delay=5.0), now=now),
        "insert_now": lambda store: store.insert(new),
        "insert_many": lambda store: store.insert_many(
            [new, new._replace(priority=1, delay=5.0)] * 5, now=now
        ),
        "insert_unique": lambda store: store.insert(new._replace(unique_key="new"), now=now),
        "insert_unique, duplicate": lambda store: store.insert(keyed[0], now=now).is_duplicate,
        "insert_many_unique": lambda store: store.insert_many(
            [new, *(job._replace(unique_key=f"new {job.unique_key}", unique_for=60) for job in keyed)],
            now=now,
        ),
        "insert_many_unique, duplicates": lambda store: (
            store.insert_many([*keyed, new], now=now)[0].is_duplicate
        ),
        "replace": lambda store: store.replace({job.id: new for job in holding[:size]}, now=now),
        "release_pending": lambda store: store.release_pending([job.id for job in pending], now=now),
        "claim": lambda store: store.claim(worker, "waiting", 3, now=now),
        "finish": lambda store: store.finish(
            [Outcome(job.id, job.claims, kind, delay=5.0) for job, kind in zip(mixed, kinds, strict=False)],
            now=now,
        ),
        "complete": lambda store: store.finish(
            [Outcome(job.id, job.claims, COMPLETED) for job in completed], now=now
        ),
        "finish, whole rows": lambda store: store.finish(
            [Outcome(job.id, job.claims, COMPLETED) for job in whole], now=now, whole_rows=True
        ),
        "finish_and_delete": lambda store: store.finish_and_delete(
            [Outcome(job.id, job.claims, kind) for job, kind in zip(going, kinds, strict=False)],
            {job.id: ["completed", "failed"] for job in going},
            now=now,
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
        "rescue, some jobs": lambda store: store.rescue(worker_id=dying, ids=[dying_held[0].id], now=now),
        "rescue, one worker": lambda store: store.rescue(worker_id=rescued, now=now),
        "update": lambda store: store.update([job.id for job in due], priority=5, delay=60.0, now=now),
        "edit": lambda store: store.edit(due[0], args="[1]", run_after=make.clock.after(60), now=now),
        "delete": lambda store: store.delete([job.id for job in gone], now=now),
        "delete, ended": lambda store: store.delete(
            [job.id for job in ended], "cancelled", now, whole_rows=False
        ),
        "select_newest": select,
        "select_finished": lambda store: select(store, state="failed"),
        "select_running": lambda store: select(store, state="running"),
        "select_scheduled": lambda store: select(store, state="scheduled"),
        "select_available": lambda store: select(store, state="available", queue_name="waiting"),
        "select_pending": lambda store: select(store, state="pending"),
        "select_queues": lambda store: select(store, state="available"),
        "select_given": lambda store: store.select(Criteria(), ids=[job.id for job in due], now=now).ids,
        "select_expired": lambda store: (
            store.select_expired("failed", 0.0, other_than=["mail"], look=5, now=now).ids
        ),
        "purge": lambda store: store.purge("cancelled", 0.0, limit=2, now=now),
        "select_finished, in arguments": lambda store: (
            store.search(Criteria(state="failed"), "[", now=now).number
        ),
        "glance": lambda store: store.glance([job.id for job in due]),
        "get": lambda store: store.get([job.id for job in due]),
        "running": lambda store: store.running(worker),
        "held_jobs": lambda store: store.held_jobs([worker, idle], 3),
        "record_stats": lambda store: store.record_stats([stat], now=now) is None,
        "history": lambda store: store.history(hour, make.clock.after(60), 60),
        "queue_history": lambda store: store.queue_history(3600.0, now=make.clock.after(60)),
        "failures": lambda store: store.failures(10, now=now),
        "unfolded_stats": lambda store: store.unfolded_stats(Fold(0.0, 3600), now=make.clock.after(3600)),
        "fold_stats": lambda store: store.fold_stats(hour, 3600),
        "purge_stats": lambda store: store.purge_stats(0.0, now=make.clock.after(3600)),
        "count_states": lambda store: store.count_states(5),
        "count_queues": lambda store: store.count_queues(5),
        "count_available": lambda store: store.count_available(["waiting", "none"], 3),
        "count_dead": lambda store: store.count_dead(5),
        "waiting": lambda store: store.waiting(100, now=now),
        "live_workers": lambda store: store.live_workers(now=now)[1],
        "waiting_queues": lambda store: store.waiting_queues(),
        "register_worker": lambda store: store.register_worker("host", 1, '["*"]', 4, "1", 30.0, now=now),
        "heartbeat": lambda store: store.heartbeat(worker, 30.0, now=now),
        "lose_workers": lambda store: late in [each.id for each in store.lose_workers(now=now)],
        "lose_worker": lambda store: store.lose_worker(dying, now=now),
        "stop_worker": lambda store: store.stop_worker(idle, now=now),
        "ask_worker": lambda store: store.ask_worker(worker, quiet=True, stop=True, now=now),
        "purge_workers": lambda store: store.purge_workers(0.0, now=now),
        "upsert_queue": lambda store: store.upsert_queue("mail", pause=True, metadata="{}", now=now),
        "due_schedules": lambda store: store.due_schedules(now=now).schedules,
        "tick_schedule": lambda store: store.tick_schedule(
            Tick(ticking, now, make.clock.after(300), new, "{}"), now=now
        ),
        "advance_schedule": lambda store: store.advance_schedule(waiting, make.clock.after(300), now=now),
        "fail_schedule": lambda store: store.fail_schedule(failing.id, "no", now=now) is None,
        "run_schedule": lambda store: store.run_schedule(failing.id, new, "{}", now=now),
        "pause_schedule": lambda store: store.pause_schedule("waiting", True, now=now),
        "upsert_schedules": lambda store: store.upsert_schedules(declared, now=now),
        "remove_schedules": lambda store: store.remove_schedules([each.key for each in declared], now=now),
        "schedules": lambda store: store.schedules(),
        "acquire_leadership": lambda store: store.acquire_leadership("keeper", "a", 30.0, now=now),
        "resign_leadership": lambda store: store.resign_leadership("keeper", "a", now=now),
    }


def expected_statement(name: str) -> str:
    """The statement that the operation of that name is made of."""
    return name.partition(",")[0]


def expected_statements(name: str, vendor: str) -> list[str]:
    """All statements that the operation of that name is made of: one, but for those that SQLite can't say in one."""
    if vendor == "sqlite" and name == "tick_schedule":
        return ["run_schedule", "tick_schedule"]
    if vendor == "sqlite" and name == "finish_and_delete":
        return ["finish", "finish_and_delete"]
    if vendor == "sqlite" and name == "fold_stats":
        return ["fold_stats", "purge_stats"]
    return [expected_statement(name)]
