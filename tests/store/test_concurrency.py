"""Many workers at once, each a thread with a store of its own."""

import itertools
import random
from collections import Counter
from functools import partial

from django_jobs.store.outcomes import COMPLETED, RELEASED, RETRY, SNOOZED
from django_jobs.store.rows import NewJob
from tests.store.builders import in_threads, outcome

WORKERS = 6


def test_every_job_runs_exactly_once(open_store, make, clock):
    stores = [open_store() for _ in range(WORKERS)]
    workers = [make.worker() for _ in range(WORKERS)]
    wanted = {job.id for job in make.insert(3000)}

    def work(store, worker, limit):
        ran = []
        while jobs := store.claim(worker, "default", limit, now=clock.now):
            assert len(jobs) <= limit
            ended = store.finish([outcome(job) for job in jobs], now=clock.now)
            assert {(each.id, each.state, each.stored) for each in ended} == {
                (job.id, "completed", True) for job in jobs
            }
            ran += [(job.id, job.attempt, job.claims, job.worker_id) for job in jobs]
        return ran

    runs = in_threads(
        *(
            partial(work, stores[index], workers[index], limit)
            for index, limit in enumerate([50, 7, 23, 100, 1, 64])
        )
    )

    for worker, ran in zip(workers, runs, strict=True):
        assert all(each[1:] == (1, 1, worker) for each in ran)
    ran = [each[0] for each in itertools.chain(*runs)]
    assert len(ran) == 3000
    assert set(ran) == wanted
    assert [row for row in make.store.count_states(5000) if row.number] == [("completed", 3000)]


def test_claims_at_once_never_exceed_their_limit(open_store, make, clock):
    stores = [open_store() for _ in range(WORKERS)]
    workers = [make.worker() for _ in range(WORKERS)]
    for _ in range(20):
        make.insert(40)
        claims = in_threads(
            *(
                partial(store.claim, worker, "default", 5, now=clock.now)
                for store, worker in zip(stores, workers, strict=True)
            )
        )
        ids = [job.id for claim in claims for job in claim]
        assert max(len(claim) for claim in claims) == 5
        assert len(ids) == len(set(ids)) == 30
        rest = stores[0].claim(workers[0], "default", 100, now=clock.now)
        assert len(rest) == 10


def test_a_claim_has_one_outcome_whoever_writes_at_once(open_store, make, clock):
    """Two late finishes, a rescue and a release of the same claims: each claim ends once, with one attempt."""
    stores = [open_store() for _ in range(4)]
    worker = make.worker()
    for _ in range(10):
        jobs = make.claimed(worker, count=100)
        completed = [outcome(job) for job in jobs]
        failed = [outcome(job, RETRY, delay=60.0) for job in reversed(jobs)]

        first, second, rescued, released = in_threads(
            partial(stores[0].finish, completed, now=clock.now),
            partial(stores[1].finish, failed, now=clock.now),
            partial(stores[2].rescue, worker_id=worker, now=clock.now),
            partial(stores[3].release, jobs[::2], now=clock.now),
        )

        ended = Counter(
            itertools.chain(
                (each.id for each in first if each.stored),
                (each.id for each in second if each.stored),
                (job.id for job in rescued),
                (job.id for job in released),
            )
        )
        # Whoever comes late may find a row locked and leave it (a rescue) or find it ended: never end it again.
        assert ended == Counter(job.id for job in jobs)
        assert all(job.attempt == (job.state != "available") for job in make.store.get(ended))
        make.store.cancel(sorted(ended), now=clock.now)


def test_a_storm_of_writes_keeps_every_promise(open_store, make, clock):
    """Everything at once on the same rows, in any order of ids: nothing deadlocks, fails, or runs twice."""
    ids = [job.id for job in make.insert(200, max_attempts=32_000)]
    workers = [make.worker() for _ in range(3)]
    holders: dict[tuple[int, int], int] = {}  # (id, claims) -> worker

    def claim_and_finish(store, worker, seed):
        rng = random.Random(seed)
        for _ in range(80):
            jobs = store.claim(worker, "default", 60, now=clock.now)
            for job in jobs:
                assert holders.setdefault((job.id, job.claims), worker) == worker
            rng.shuffle(jobs)
            kept = jobs[:10]
            kinds = [COMPLETED, RETRY, SNOOZED, RELEASED]
            store.finish([outcome(job, rng.choice(kinds)) for job in jobs[10:]], now=clock.now)
            store.release(kept, now=clock.now)

    def operate(store, seed):
        rng = random.Random(seed)
        for _ in range(80):
            rng.shuffle(ids_of_mine := list(ids))
            store.cancel(ids_of_mine[:100], now=clock.now)
            store.retry(ids_of_mine, now=clock.now)

    def maintain(store):
        purged = []
        for _ in range(80):
            for worker in workers:
                store.rescue(worker_id=worker, spread=0.0, now=clock.now)
            store.promote(now=clock.now)
            store.insert_many([NewJob("tests.job", queue_name="other")] * 20, now=clock.now)
            purged += store.purge("cancelled", 0.0, limit=1, now=clock.now)
        return purged

    *_, purged = in_threads(
        *(partial(claim_and_finish, open_store(), worker, worker) for worker in workers),
        partial(operate, open_store(), 1),
        partial(operate, open_store(), 2),
        partial(maintain, open_store()),
    )

    jobs = make.store.get(ids)
    assert {job.id for job in jobs} == set(ids) - set(purged)
    assert purged
    assert len(holders) > 200
    assert all(0 <= job.attempt <= job.claims for job in jobs)
