"""The operations that are compared: each done by the queue, and by the ORM (``benchmarks.with_orm``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from benchmarks import with_orm
from benchmarks.core.history import fill
from benchmarks.core.meters import Meter
from benchmarks.jobs import noop
from django_jobs.store import Store, django_store, own_store
from django_jobs.store.outcomes import COMPLETED, RETRY
from django_jobs.store.rows import JobRow, NewJob, Outcome

ERROR = {"number": 1, "attempt": 1, "class": "ValueError", "message": "no", "traceback": "Traceback ..."}
PURGED = 100


@dataclass(frozen=True)
class Case:
    """One operation.

    :param prepare: makes so many things to do it to, one for each call.
    :param before: does it by the ORM.
    :param after: does it by the queue.
    """

    name: str
    prepare: Callable[[int], Sequence[Any]]
    before: Callable[[Any], object]
    after: Callable[[Any], object]


class Cases:
    """Makes the cases, on Django's connection and on one of the worker's own, as each is used."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.own: Store = own_store("default")
        self.shared: Store = django_store("default")
        self.worker = self.own.register_worker("host", 1, '["*"]', 10, "1", 86_400.0).id
        self.queues = (f"queue {number}" for number in count())

    @property
    def statements(self) -> int:
        """How many statements the worker's own connection has run."""
        return self.own.session.statements

    def close(self) -> None:
        """Close the worker's connection."""
        self.own.close()

    # -- things to do it to ------------------------------------------------------------------------------------------

    def numbers(self, n: int) -> Sequence[int]:
        """Just numbers."""
        return range(n)

    def waiting(self, n: int, queue_name: str = "waiting") -> list[int]:
        """Ids of jobs that wait."""
        return [job.id for job in self.own.insert_many([NewJob(noop.name, queue_name, args="[1]")] * n)]

    def running(self, n: int) -> list[JobRow]:
        """Jobs that this worker has claimed."""
        queue_name = next(self.queues)
        self.waiting(n, queue_name)
        return self.own.claim(self.worker, queue_name, n)

    def completed(self, n: int) -> list[int]:
        """Ids of jobs that have completed."""
        jobs = self.running(n)
        self.own.finish([Outcome(job.id, job.claims, COMPLETED) for job in jobs])
        return [job.id for job in jobs]

    def batches(self, n: int, size: int = 50) -> list[str]:
        """Names of queues, each with so many jobs."""
        names = [next(self.queues) for _ in range(n)]
        for name in names:
            self.waiting(size, name)
        return names

    def running_batches(self, n: int, size: int = 50) -> list[list[JobRow]]:
        """Batches of claimed jobs."""
        jobs = self.running(n * size)
        return [jobs[first : first + size] for first in range(0, len(jobs), size)]

    # -- the cases ---------------------------------------------------------------------------------------------------

    def all(self) -> list[Case]:
        """Those that work on an ordinary table."""
        own, shared, worker = self.own, self.shared, self.worker
        claim_one = Case(
            "claim a job",
            lambda n: self.batches(n, 1),
            lambda name: with_orm.claim(worker, name, 1),
            lambda name: own.claim(worker, name, 1),
        )
        claim_batch = Case(
            "claim a batch of 50",
            self.batches,
            lambda name: with_orm.claim(worker, name, 50),
            lambda name: own.claim(worker, name, 50),
        )
        return [
            Case("insert a job", self.numbers, with_orm.insert, noop.enqueue),
            Case(
                "insert a pending job",
                self.numbers,
                lambda n: with_orm.insert(n, pending=True),
                noop.using(pending=True).enqueue,
            ),
            claim_one,
            claim_batch,
            Case("complete", self.running, lambda job: with_orm.complete(job.id, job.claims), self.complete),
            Case(
                "claim and complete",
                lambda n: self.batches(n, 1),
                self.claim_and_complete_by_orm,
                lambda name: self.complete(own.claim(worker, name, 1)[0]),
            ),
            Case(
                "complete a batch of 50",
                self.running_batches,
                self.complete_each_by_orm,
                self.complete_all,
            ),
            Case(
                "fail and retry later",
                self.running,
                lambda job: with_orm.fail(job.id, job.claims, ERROR, 60.0),
                self.fail,
            ),
            Case(
                "merge metadata",
                self.running,
                lambda job: with_orm.merge_metadata(job.id, job.claims, {"a": 1}),
                lambda job: own.merge_metadata([(job.id, job.claims, '{"a":1}')]),
            ),
            Case("cancel", self.waiting, with_orm.cancel, lambda id_: shared.cancel([id_])),
            Case("retry", self.completed, with_orm.retry, lambda id_: shared.retry([id_])),
            Case(
                "update",
                self.waiting,
                lambda id_: with_orm.update(id_, 5),
                lambda id_: shared.update([id_], priority=5),
            ),
            Case("delete", self.waiting, with_orm.delete, lambda id_: shared.delete([id_])),
            Case(
                f"purge {PURGED}",
                lambda n: [*range(n), *self.completed(2 * (n + 1) * PURGED)][:n],
                lambda _: with_orm.purge(PURGED),
                lambda _: own.purge("completed", 0.0, limit=PURGED),
            ),
            Case(
                "read 50 jobs",
                lambda n: [self.waiting(50)] * n,
                with_orm.read,
                shared.get,
            ),
            *self.of_names(),
        ]

    def of_names(self) -> list[Case]:
        """Queues and leadership."""
        own = self.own
        return [
            Case(
                "insert a queue",
                lambda n: [next(self.queues) for _ in range(n)],
                lambda name: with_orm.upsert_queue(name, {"a": 1}),
                lambda name: own.upsert_queue(name, metadata='{"a":1}'),
            ),
            Case(
                "update a queue",
                lambda n: ["mail"] * n,
                lambda name: with_orm.upsert_queue(name, {"a": 1}),
                lambda name: own.upsert_queue(name, metadata='{"a":1}'),
            ),
            Case(
                "acquire leadership",
                self.numbers,
                lambda _: with_orm.acquire_leadership("by the ORM", "a", 30.0),
                lambda _: own.acquire_leadership("keeper", "a", 30.0),
            ),
            Case(
                "resign leadership",
                lambda n: [self.led(n)] * n,
                lambda n: with_orm.resign_leadership(f"by the ORM {next(n[0])}", "a"),
                lambda n: own.resign_leadership(f"keeper {next(n[1])}", "a"),
            ),
        ]

    def stale(self, size: int) -> list[Case]:
        """Completions while the planner knows of nothing but completed jobs. To be called last."""
        self.meter.empty()
        postgresql = hasattr(self.meter, "has_statements")
        if postgresql:
            self.meter.run("ALTER TABLE django_jobs_job SET (autovacuum_enabled = off)")
        fill(self.meter, size)
        self.meter.run("ANALYZE django_jobs_job")
        self.worker = self.own.register_worker("host", 1, '["*"]', 10, "1", 86_400.0).id
        fill(self.meter, size, "available", queue_name="'other'")
        fill(self.meter, size // 10, "running", worker_id=self.worker + 1)
        return [
            Case(
                "complete, stale statistics",
                self.running,
                lambda job: with_orm.complete(job.id, job.claims),
                self.complete,
            ),
            Case(
                "complete 1,000 in one UPDATE, stale statistics",
                lambda n: self.running_batches(n, 1000),
                lambda jobs: with_orm.complete_many([job.id for job in jobs]),
                self.complete_all,
            ),
        ]

    # -- parts of them -----------------------------------------------------------------------------------------------

    def complete(self, job: JobRow) -> None:
        """Complete one."""
        self.own.finish([Outcome(job.id, job.claims, COMPLETED)])

    def complete_all(self, jobs: Sequence[JobRow]) -> None:
        """Complete many."""
        self.own.finish([Outcome(job.id, job.claims, COMPLETED) for job in jobs])

    def complete_each_by_orm(self, jobs: Sequence[JobRow]) -> None:
        """Complete many, one by one."""
        for job in jobs:
            with_orm.complete(job.id, job.claims)

    def claim_and_complete_by_orm(self, name: str) -> None:
        """Claim and complete one."""
        [job] = with_orm.claim(self.worker, name, 1)
        with_orm.complete(job.pk, job.claims)

    def fail(self, job: JobRow) -> None:
        """It failed, and is to run again."""
        errors = json.dumps([*job.errors, ERROR])
        self.own.finish([Outcome(job.id, job.claims, RETRY, 60.0, "ValueError", errors)])

    def led(self, n: int) -> tuple[Any, Any]:
        """Leaderships that are held, of both."""
        for number in range(n + 2):
            with_orm.acquire_leadership(f"by the ORM {number}", "a", 300.0)
            self.own.acquire_leadership(f"keeper {number}", "a", 300.0)
        return count(), count()
