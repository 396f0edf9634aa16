"""An hour in which somebody's transaction stays open: what the worker reads meanwhile, and what remains of it.

``DJANGO_JOBS_TEST_RUN`` is how many jobs run beside it.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from django_jobs.store import Store, low_water, own_store
from django_jobs.store.outcomes import COMPLETED
from django_jobs.store.rows import NewJob, Outcome
from tests.store.reading import Explainer, connect, open_for_long

# The tests' own transaction, on Django's connection, stays empty: all here is on connections of their own.
pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]

RUN = int(os.environ.get("DJANGO_JOBS_TEST_RUN", "100000"))
BATCH = 5000
QUEUE = "measured"
# The table and its indexes may be larger afterwards than they were, by this.
BOUND = 1.1
# Trees are some levels higher by then.
LEVELS = 5


@pytest.fixture
def console(django_db_setup: None, django_db_blocker: Any) -> Iterator[psycopg.Connection[Any]]:
    """An empty table, which nobody vacuums but the test."""
    with django_db_blocker.unblock(), connect(autocommit=True) as console:
        console.execute("TRUNCATE django_jobs_job, django_jobs_worker")
        console.execute("ALTER TABLE django_jobs_job SET (autovacuum_enabled = off)")
        try:
            yield console
        finally:
            console.execute("ALTER TABLE django_jobs_job RESET (autovacuum_enabled)")
            console.execute("TRUNCATE django_jobs_job, django_jobs_worker")


@pytest.fixture
def store(console: object) -> Iterator[Store]:
    store = own_store("default")
    yield store
    store.close()


@pytest.fixture
def explainer(console: object) -> Iterator[Explainer]:
    explainer = Explainer()
    yield explainer
    explainer.close()


def run(store: Store, worker: int, batches: int) -> None:
    """Run jobs, each batch after the one before it has been deleted: some are in the table at any time."""
    end = None
    for _ in range(batches):
        end = store.purge_from(end, "completed", 0.0, BATCH).end
        store.insert_many([NewJob("tests.job", QUEUE)] * BATCH)
        claimed = store.claim(worker, QUEUE, BATCH)
        ended = store.finish([Outcome(job.id, job.claims, COMPLETED) for job in claimed])
        assert [each.stored for each in ended] == [True] * BATCH


def read(store: Store, explainer: Explainer, worker: int) -> dict[str, int]:
    """The buffers of what a worker asks again and again, while a job waits."""
    store.insert(NewJob("tests.job", QUEUE))
    operations: dict[str, Callable[[Store], Any]] = {
        "claim": lambda store: store.claim(worker, QUEUE, 1),
        "heartbeat": lambda store: store.heartbeat(worker, 3600.0),
        "rescue": lambda store: store.rescue(),
    }
    marks = store.low_water
    found = {name: explainer.explain(asked, marks).buffers for name, asked in operations.items()}
    (job,) = store.claim(worker, QUEUE, 10)
    store.finish([Outcome(job.id, job.claims, COMPLETED)])  # what a worker holds was claimed lately
    return found


def sizes(console: psycopg.Connection[Any]) -> dict[str, int]:
    """Of the table and of each of its indexes, in pages."""
    return dict(
        console.execute(
            """
            SELECT relname, pg_relation_size(oid) / 8192 FROM pg_class
            WHERE oid = 'django_jobs_job'::regclass
               OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'django_jobs_job'::regclass)
            """
        ).fetchall()
    )


def test_while_a_transaction_stays_open_claims_stay_fast_and_afterwards_the_room_is_used_again(
    console: psycopg.Connection[Any],
    store: Store,
    explainer: Explainer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = store.register_worker("host", 1, "[]", 4, "1", 3600.0).id
    for _ in range(2):  # the pages of a new table are made
        at_first = read(store, explainer, worker)
    with open_for_long() as old:
        run(store, worker, RUN // BATCH)
        # Claims are slow, from the second on there are marks, and they stand.
        monkeypatch.setattr(low_water, "SLOW_SECONDS", 0.0)
        store.low_water = low_water.LowWater(clock=lambda: 0.0)
        for _ in range(3):
            beside = read(store, explainer, worker)
        old.rollback()

        assert all(beside[name] <= 2 * at_first[name] + LEVELS for name in at_first), (beside, at_first)
    # Pages of an index that vacuum empties are free for use when another transaction has come, and another vacuum.
    console.execute("VACUUM django_jobs_job")
    run(store, worker, 1)
    console.execute("VACUUM django_jobs_job")
    largest = sizes(console)
    for _ in range(4):
        run(store, worker, RUN // BATCH // 4)
        console.execute("VACUUM django_jobs_job")

    now = sizes(console)
    assert {name: (now[name], largest[name]) for name in now if now[name] > BOUND * largest[name]} == {}
