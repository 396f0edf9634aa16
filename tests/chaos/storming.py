"""What one thread of a storm does: operations of the store at random, each noted with what it answered."""

import os
import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection, transaction

from django_jobs.store import Store, django_store, own_store
from django_jobs.store.answers import Ended
from django_jobs.store.outcomes import CANCELLED, COMPLETED, FAILED, RELEASED, RETRY, SNOOZED
from django_jobs.store.rows import JobRow, NewJob, Outcome
from django_jobs.store.statistics import StatRow
from tests.chaos.journal import note
from tests.workload.models import Effect

QUEUES = ("default", "mail")
KINDS = (COMPLETED, COMPLETED, COMPLETED, RETRY, FAILED, SNOOZED, CANCELLED, RELEASED)
FINISHED = ("completed", "failed", "cancelled")
KEYS = 8
LEASE = 1.0


class Undone(Exception):
    pass


class Shared:
    """What the threads of a process know of each other: the workers, and the ids that there were."""

    def __init__(self) -> None:
        self.workers: list[int] = []
        self.highest = 1


class Thread:
    """One thread, with a session of its own and Django's connection."""

    def __init__(self, seed: str, shared: Shared) -> None:
        self.rng = random.Random(seed)
        self.shared = shared
        self.store: Store = own_store("default")
        self.held: list[JobRow] = []
        self.over: list[JobRow] = []  # claims that have ended, to be ended again
        self.counts: dict[str, int] = {}

    def run(self, stopping: threading.Event) -> None:
        acts: dict[Callable[[], None], int] = {
            self.insert: 5, self.insert_many: 4, self.claim: 12, self.finish: 8, self.finish_with_effect: 5,
            self.finish_and_delete: 2, self.finish_again: 2, self.release: 2, self.merge_metadata: 2, self.cancel: 3,
            self.retry: 3, self.update: 2, self.release_pending: 2, self.promote: 3, self.rescue: 1,
            self.maintain: 1, self.purge: 1, self.delete: 1, self.read: 2,
        }  # fmt: skip
        self.register()
        try:
            while not stopping.wait(self.rng.uniform(0.0, 0.01)):
                act = self.rng.choices(list(acts), list(acts.values()))[0]
                try:
                    act()
                except Exception as error:
                    note("failed", act=act.__name__, error=repr(error)[:500])
                self.counts[act.__name__] = self.counts.get(act.__name__, 0) + 1
        finally:
            note("did", counts=self.counts)
            self.store.close()
            connection.close()

    # -- choosing --------------------------------------------------------------------------------------------------

    def register(self) -> None:
        row = self.store.register_worker("host", os.getpid(), '["*"]', 4, "1", LEASE)
        self.worker = row.id
        self.shared.workers.append(row.id)

    def ids(self) -> list[int]:
        """Some ids of jobs, near each other so that threads meet; in no order; perhaps gone."""
        newest = self.shared.highest
        first = max(1, newest - self.rng.choice([30, 30, 300]))
        ids = [self.rng.randint(first, newest) for _ in range(self.rng.randint(1, 20))]
        return list(dict.fromkeys(ids))

    def some(self, most: int) -> list[JobRow]:
        """Some of what is held, which then no longer is; of two claims of a job, one lost, not both at once."""
        self.rng.shuffle(self.held)
        chosen = _one_of_each(self.held[:most])
        self.held = [job for job in self.held if job not in chosen]
        return chosen

    def new(self) -> NewJob:
        rng = self.rng
        keyed = rng.random() < 0.4
        return NewJob(
            "tests.job",
            queue_name=rng.choice(QUEUES),
            priority=rng.choice([0, 0, 0, 5]),
            max_attempts=rng.randint(1, 4),
            delay=rng.choice([None, None, 0.05, 0.3]),
            pending=rng.random() < 0.1,
            unique_key=f"key {rng.randrange(KEYS)}" if keyed else None,
            replace=keyed and rng.random() < 0.3,
        )

    # -- inserting -------------------------------------------------------------------------------------------------

    def insert(self) -> None:
        self._insert(lambda store: [store.insert(self.new())])

    def insert_many(self) -> None:
        self._insert(lambda store: store.insert_many([self.new() for _ in range(self.rng.randint(2, 30))]))

    def _insert(self, insert: Callable[[Store], list[JobRow]]) -> None:
        """As a view does it: in a transaction with other writes, which now and then is rolled back."""
        jobs: list[JobRow] = []
        try:
            with transaction.atomic():
                jobs = insert(django_store("default"))
                if self.rng.random() < 0.1:
                    raise Undone
        except Undone:
            return
        note("inserted", ids=[job.id for job in jobs if not job.is_duplicate])
        self.shared.highest = max([self.shared.highest, *(job.id for job in jobs)])

    # -- claims ----------------------------------------------------------------------------------------------------

    def claim(self) -> None:
        jobs = self.store.claim(self.worker, self.rng.choice(QUEUES), self.rng.randint(1, 15))
        note("claimed", claims=[(job.id, job.claims) for job in jobs])
        self.held += jobs

    def _outcomes(self, jobs: Sequence[JobRow]) -> list[Outcome]:
        return [
            Outcome(job.id, job.claims, self.rng.choice(KINDS), delay=self.rng.choice([0.0, 0.2]))
            for job in jobs
        ]

    def _ended(self, jobs: Sequence[JobRow], ended: Sequence[Ended]) -> None:
        claims = {job.id: job.claims for job in jobs}
        note("ended", claims=[(each.id, claims[each.id]) for each in ended if each.stored])
        self.over = [*jobs, *self.over][:50]

    def finish(self) -> None:
        jobs = self.some(self.rng.randint(1, 20))
        self._ended(jobs, self.store.finish(self._outcomes(jobs), whole_rows=self.rng.random() < 0.3))

    def finish_again(self) -> None:
        """Late outcomes: of claims that have ended, or were taken away."""
        jobs = _one_of_each(self.rng.sample(self.over, min(len(self.over), 10)))
        self._ended(jobs, self.store.finish(self._outcomes(jobs)))

    def finish_with_effect(self) -> None:
        """As ``atomic=True`` does it."""
        for job in self.some(1):
            try:
                with transaction.atomic():
                    Effect.objects.create(job_id=job.id, claims=job.claims, pid=os.getpid())
                    ended = django_store("default").finish([Outcome(job.id, job.claims, COMPLETED)])
                    if not (ended and ended[0].stored):
                        raise Undone
            except Undone:
                continue
            self._ended([job], ended)
            note("left an effect", claim=(job.id, job.claims))

    def finish_and_delete(self) -> None:
        jobs = self.some(5)
        unkept = {job.id: self.rng.choice([["completed"], ["failed", "cancelled"]]) for job in jobs}
        ended = self.store.finish_and_delete(self._outcomes(jobs), unkept)
        self._ended(jobs, ended)
        note("deleted", ids=[each.id for each in ended if each.stored and each.state in unkept[each.id]])

    def release(self) -> None:
        jobs = self.some(5)
        self._over(self.store.release(jobs))

    def _over(self, jobs: Sequence[JobRow]) -> None:
        note("ended", claims=[(job.id, job.claims) for job in jobs])

    def merge_metadata(self) -> None:
        jobs = self.rng.sample(self.held, min(len(self.held), 5))
        self.store.merge_metadata([(job.id, job.claims, '{"a":1}') for job in jobs])

    # -- operators and maintenance ---------------------------------------------------------------------------------

    def cancel(self) -> None:
        self._any_store().cancel(self.ids())

    def retry(self) -> None:
        self._any_store().retry(self.ids())

    def update(self) -> None:
        self._any_store().update(
            self.ids(), priority=self.rng.choice([0, 1]), delay=self.rng.choice([None, 0.1])
        )

    def release_pending(self) -> None:
        self._any_store().release_pending(self.ids())

    def _any_store(self) -> Store:
        return self.rng.choice([self.store, django_store("default")])

    def promote(self) -> None:
        self.store.promote(self.rng.choice([10, 1000]))

    def rescue(self) -> None:
        """Take claims away: of a worker of this process, whether it lives or not, or of all that are lost."""
        chosen = self.rng.choice([None, *self.shared.workers])
        if chosen is None:
            self.store.lose_workers()
        self._over(self.store.rescue(limit=self.rng.choice([5, 1000]), spread=0.1, worker_id=chosen))

    def maintain(self) -> None:
        if self.store.heartbeat(self.worker, LEASE) is None:
            self.register()
        self.store.upsert_queue(
            self.rng.choice(QUEUES), pause=self.rng.choice([None, True, False]), metadata="{}"
        )
        self.store.record_stats([StatRow("default", "tests.job", "completed", "", 1, 0.5, 0.5, 1.0, 1.0)])
        if self.store.acquire_leadership("storm", str(self.worker), 0.1) and self.rng.random() < 0.5:
            self.store.resign_leadership("storm", str(self.worker))

    def purge(self) -> None:
        note("deleted", ids=self.store.purge(self.rng.choice(FINISHED), 0.5, limit=self.rng.choice([5, 100])))

    def delete(self) -> None:
        deleted: list[Any] = self._any_store().delete(self.ids(), whole_rows=self.rng.random() < 0.5)
        note("deleted", ids=[job.id for job in deleted])

    def read(self) -> None:
        self.store.count_states(1000)
        self.store.next_due()
        self.store.running(self.worker)
        self.store.cancel_requests(self.worker)
        self.store.waiting_queues()


def _one_of_each(jobs: Sequence[JobRow]) -> list[JobRow]:
    return list({job.id: job for job in jobs}.values())


def settle(store: Store, workers: Sequence[int]) -> None:
    """End all that has not ended: by the same operations, noted alike."""
    from django_jobs.models import Job

    row = store.register_worker("host", os.getpid(), '["*"]', 4, "1", 60.0)
    live = Job.objects.filter(state__in=["pending", "scheduled", "available", "running"])
    while live.exists():
        for worker in workers:
            rescued = store.rescue(spread=0.0, worker_id=worker)
            note("ended", claims=[(job.id, job.claims) for job in rescued])
        store.release_pending(list(live.filter(state="pending").values_list("pk", flat=True)))
        store.promote()
        for queue in QUEUES:
            while jobs := store.claim(row.id, queue, 500):
                note("claimed", claims=[(job.id, job.claims) for job in jobs])
                ended = store.finish([Outcome(job.id, job.claims, COMPLETED) for job in jobs])
                claims = {job.id: job.claims for job in jobs}
                note("ended", claims=[(each.id, claims[each.id]) for each in ended if each.stored])
