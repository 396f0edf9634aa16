"""What an operation reads on PostgreSQL stays what it reads in an empty table, by the intended index.

The table grows from stage to stage, as a queue's does: statistics that are stale, a million rows of each kind, and a
transaction of somebody's that stays open for long. What was read for each operation in the empty table is the measure.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from django_jobs.store import Store, low_water, own_store
from django_jobs.store.outcomes import COMPLETED, FAILED, RETRY
from django_jobs.store.rows import JobRow, NewJob, Outcome
from django_jobs.store.selecting import Position
from tests.store.plans import (
    CANCEL,
    CLAIM,
    DUE,
    FINISHED,
    KEY,
    RUNNING,
    UNIQUE,
    fill,
)
from tests.store.reading import Explainer, Reading, connect, open_for_long

# The tests' own transaction, on Django's connection, stays empty: all here is on connections of their own.
pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]

SIZE = 10  # jobs of an operation
MILLION = 1_000_000
RUN = 25_000  # jobs run beside a long transaction
FAILED_BEFORE = 20_000  # and so many are purged
QUEUE = "measured"

# The operations, and the indexes of the table of jobs that they go by. What their names say of "one" is about one job.
INDEXES = {
    "claim": {CLAIM, KEY},
    "claim one": {CLAIM, KEY},
    "finish": {KEY},
    "complete": {KEY},
    "complete one": {KEY},
    "release": {KEY},
    "cancel": {KEY},
    "cancel running": {KEY},
    "retry": {KEY, UNIQUE},
    "merge_metadata": {KEY},
    "update": {KEY},
    "delete": {KEY},
    "release_pending": {KEY},
    "get": {KEY},
    "heartbeat": {CANCEL},
    "cancel_requests": {CANCEL},
    "rescue": {RUNNING, KEY},
    "purge": {FINISHED, KEY},
    "promote": {DUE, KEY},
    "next_due": {DUE},
    "waiting_queues": {CLAIM},
}
# An operation that is about little finds it in trees that are some levels higher.
LEVELS = 5
# Before PostgreSQL 17, a list of ids goes down the tree for each.
DESCENTS = {"get": 2 * SIZE}
# This one reads which queues wait, for a worker of all queues that looks at them. While a transaction keeps the index's
# old entries, it passes those of all that has run since.
PERIODICAL = ("waiting_queues",)
ENTRIES_PER_BUFFER = 30
# And a page is full of old rows, so that no update finds room on it, and each enters the indexes anew.
NO_ROOM = 2 * SIZE


class Table:
    """The table of jobs, at one stage after the other."""

    def __init__(self) -> None:
        self.connection = connect(autocommit=True)
        self.store = own_store("default")
        self.explainer = Explainer()
        self.old: psycopg.Connection[Any] | None = None
        self.marks = low_water.LowWater()  # none: from the beginning on
        self.purged: Position | None = None  # the same
        self.last_purged: Position | None = None
        self.worker = self.register()
        self.stages = iter(STAGES.items())
        self.stage = "empty"
        self.keys = itertools.count()
        # Empty as a new one is: the pages and index entries of rows that are gone are used again, and cost less.
        self.execute("TRUNCATE django_jobs_job")
        self.empty = self.read()

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement)
        return cursor.fetchall() if cursor.description else []

    def fill(self, count: int, **columns: str) -> None:
        fill(self.connection, count, **columns)

    def register(self) -> int:
        return self.store.register_worker("host", 1, "[]", 4, "1", 3600.0).id

    def reach(self, stage: str) -> None:
        while self.stage != stage:
            self.stage, grow = next(self.stages)
            grow(self)

    def claimed(self, worker: int, count: int = SIZE) -> list[JobRow]:
        self.store.insert_many([NewJob("tests.job", QUEUE)] * count)
        jobs = self.store.claim(worker, QUEUE, count)
        assert len(jobs) == count
        return jobs

    def operations(self) -> dict[str, Callable[[Store], Any]]:
        """Each is about rows that were made for it."""
        store, new = self.store, NewJob("tests.job", QUEUE)
        finished, completed, released, asked, noted = (self.claimed(self.worker) for _ in range(5))
        store.insert_many([new._replace(unique_key=f"key {next(self.keys)}") for _ in range(SIZE)])
        dead = store.claim(self.worker, QUEUE, SIZE)
        lost = self.register()
        self.claimed(lost)
        store.stop_worker(lost)
        store.finish([Outcome(job.id, job.claims, FAILED) for job in dead])
        store.insert_many([new._replace(delay=1e-6)] * SIZE)
        pending = [job.id for job in store.insert_many([new._replace(pending=True)] * SIZE)]
        waiting = [job.id for job in store.insert_many([new] * SIZE)]
        return {
            "claim": lambda store: store.claim(self.worker, QUEUE, SIZE),
            "claim one": lambda store: store.claim(self.worker, QUEUE, 1),
            "finish": lambda store: store.finish(
                [Outcome(job.id, job.claims, RETRY, delay=60.0) for job in finished]
            ),
            "complete": lambda store: store.finish(
                [Outcome(job.id, job.claims, COMPLETED) for job in completed]
            ),
            "complete one": lambda store: store.finish(
                [Outcome(completed[0].id, completed[0].claims, COMPLETED)]
            ),
            "release": lambda store: store.release(released),
            "cancel": lambda store: store.cancel(waiting),
            "cancel running": lambda store: store.cancel([job.id for job in asked]),
            "retry": lambda store: store.retry([job.id for job in dead]),
            "merge_metadata": lambda store: store.merge_metadata(
                [(job.id, job.claims, '{"a":1}') for job in noted]
            ),
            "update": lambda store: store.update(waiting, priority=5),
            "delete": lambda store: store.delete(waiting),
            "release_pending": lambda store: store.release_pending(pending),
            "get": lambda store: store.get(waiting),
            "heartbeat": lambda store: store.heartbeat(self.worker, 3600.0),
            "cancel_requests": lambda store: store.cancel_requests(self.worker),
            "rescue": lambda store: store.rescue(SIZE),
            "purge": lambda store: store.purge_from(self.purged, "failed", 0.0, SIZE),
            "promote": lambda store: store.promote(SIZE),
            "next_due": lambda store: store.next_due(),
            "waiting_queues": lambda store: store.waiting_queues(),
        }

    def read(self) -> dict[str, Reading]:
        """What each operation reads now. It is done, and undone."""
        try:
            operations = self.operations().items()
            return {name: self.explainer.explain(operation, self.marks) for name, operation in operations}
        finally:
            self.forget()

    def read_without(self, index: str, name: str) -> Reading:
        """What an operation reads when an index is missing."""
        driver = self.explainer.driver
        operation = self.operations()[name]
        driver.execute("BEGIN")
        driver.execute(f"DROP INDEX {index}")
        try:
            return self.explainer.explain(operation, self.marks)
        finally:
            driver.execute("ROLLBACK")
            self.forget()

    def read_changed(self, name: str, old: str, new: str) -> Reading:
        """What an operation reads when its statement is another one."""
        operation = self.operations()[name]

        def changed(text: str) -> str:
            assert old in text
            return text.replace(old, new)

        try:
            return self.explainer.explain(operation, self.marks, changed)
        finally:
            self.forget()

    def forget(self) -> None:
        self.execute(
            f"DELETE FROM django_jobs_job WHERE queue_name = '{QUEUE}' AND state <> 'completed' AND priority >= 0"
        )

    def close(self) -> None:
        if self.old is not None:
            self.old.close()
        for each in (self.store, self.explainer):
            each.close()
        self.execute("ALTER TABLE django_jobs_job RESET (autovacuum_enabled)")
        self.execute("TRUNCATE django_jobs_job, django_jobs_worker")
        self.connection.close()


def stale_statistics(table: Table) -> None:
    """100,000 completed jobs are all that ANALYZE has seen."""
    table.fill(100_000, state="completed", finalized_at="now() - interval '1 day'")
    table.execute("ANALYZE django_jobs_job")
    table.fill(100_000, state="available", queue_name="busy")
    table.fill(10_000, state="running", worker_id=str(table.register()))
    table.fill(20_000, state="available", queue_name=QUEUE, priority="-5")
    table.fill(FAILED_BEFORE, state="failed", finalized_at="now()")


def behind_millions(table: Table) -> None:
    """A million rows of each kind that an operation has to pass; the statistics are still those."""
    # Millions are in the table sooner when its indexes are made for all of them at once.
    indexes = table.execute(
        f"SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'django_jobs_job' AND indexname <> '{KEY}'"
    )
    for name, _ in indexes:
        table.execute(f"DROP INDEX {name}")
    table.fill(MILLION, state="completed", finalized_at="now() - interval '1 day'")
    table.fill(MILLION, state="scheduled", priority="50", run_after="now() + interval '1 day'")
    table.fill(MILLION, state="available", queue_name="busy")
    for _, definition in indexes:
        table.execute(definition)


def fresh_statistics(table: Table) -> None:
    table.execute("ANALYZE django_jobs_job")


def long_transaction(table: Table) -> None:
    """Somebody's transaction is open since before 25,000 jobs ran."""
    table.old = open_for_long()
    for _ in range(RUN // 1000):
        jobs = table.claimed(table.worker, 1000)
        table.store.finish([Outcome(job.id, job.claims, COMPLETED) for job in jobs])
    for _ in range(FAILED_BEFORE // 1000):
        table.last_purged = table.store.purge_from(table.last_purged, "failed", 0.0, 1000).end


STAGES: dict[str, Callable[[Table], None]] = {
    "stale statistics": stale_statistics,
    "behind millions": behind_millions,
    "behind millions, analyzed": fresh_statistics,
    "beside a long transaction": long_transaction,
}


@pytest.fixture(scope="module")
def table(django_db_setup: None, django_db_blocker: Any) -> Iterator[Table]:
    with django_db_blocker.unblock():
        table = Table()
        table.execute("ALTER TABLE django_jobs_job SET (autovacuum_enabled = off)")
        try:
            yield table
        finally:
            table.close()


@pytest.mark.parametrize("stage", ["stale statistics", "behind millions", "behind millions, analyzed"])
def test_an_operation_reads_what_it_reads_in_an_empty_table(table: Table, stage: str) -> None:
    table.reach(stage)
    readings = table.read()

    assert {name: reading.indexes for name, reading in readings.items()} == INDEXES
    assert {name: reading.rows for name, reading in readings.items() if name != "waiting_queues"} == {
        name: reading.rows for name, reading in table.empty.items() if name != "waiting_queues"
    }
    assert too_much(table, readings) == {}


@pytest.mark.parametrize(
    ("index", "name"),
    [(CLAIM, "claim one"), (DUE, "promote"), (DUE, "next_due"), (RUNNING, "rescue"), (FINISHED, "purge"),
     (UNIQUE, "retry")],
)  # fmt: skip
def test_without_its_index_it_reads_far_more(table: Table, index: str, name: str) -> None:
    table.reach("behind millions, analyzed")
    reading = table.read_without(index, name)

    assert reading.indexes != INDEXES[name]
    assert too_much(table, {name: reading}), (
        f"{name} does not need {index}: {reading.indexes} {reading.buffers}"
    )


def test_beside_a_long_transaction(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.reach("beside a long transaction")
    begun = table.read()
    # The worker's claims are slow, from the second on there are marks, and they stand.
    monkeypatch.setattr(low_water, "SLOW_SECONDS", 0.0)
    table.marks = table.store.low_water = low_water.LowWater(clock=lambda: 0.0)
    for _ in range(3):
        table.claimed(table.worker)
    # And a purge goes on after its last batch.
    table.purged = table.last_purged
    readings = table.read()

    assert {name: reading.indexes for name, reading in readings.items()} == INDEXES
    assert {name: reading.rows for name, reading in readings.items() if name != "waiting_queues"} == {
        name: reading.rows for name, reading in table.empty.items() if name != "waiting_queues"
    }
    assert set(too_much(table, readings, NO_ROOM)) <= set(PERIODICAL)
    for name in PERIODICAL:
        assert readings[name].buffers <= table.empty[name].buffers + RUN / ENTRIES_PER_BUFFER, name
    without = {
        **{name: begun[name] for name in ("claim", "claim one", "purge")},  # from the beginning on
        **{name: table.read_without(CANCEL, name) for name in ("heartbeat", "cancel_requests")},
        # As if no worker lived whose jobs are passed over.
        "rescue": table.read_changed("rescue", "lost_at IS NULL AND stopped_at IS NULL", "false"),
    }
    assert set(too_much(table, without, NO_ROOM)) == set(without), "not all old entries are read"


def too_much(table: Table, readings: dict[str, Reading], more: int = LEVELS) -> dict[str, tuple[int, int]]:
    """What reads more than twice what it reads in an empty table: how much, and how much there."""
    return {
        name: (reading.buffers, table.empty[name].buffers)
        for name, reading in readings.items()
        if reading.buffers > 2 * table.empty[name].buffers + max(more, DESCENTS.get(name, 0))
    }
