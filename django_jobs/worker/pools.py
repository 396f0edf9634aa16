"""The pools of a worker: each has a producer and executors, and a buffer between them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from django_jobs.store.base import Store
from django_jobs.store.rows import JobRow
from django_jobs.worker.attempt import Runner
from django_jobs.worker.buffer import Buffer
from django_jobs.worker.completer import Completer
from django_jobs.worker.executor import Executors
from django_jobs.worker.insisting import insistently
from django_jobs.worker.options import EVERY_QUEUE, Pool
from django_jobs.worker.parts import one_line, until
from django_jobs.worker.producer import Producer, Situation
from django_jobs.worker.recycling import Retirement
from django_jobs.worker.stores import Stores

logger = logging.getLogger("django_jobs.worker")


class Surroundings(Situation, Protocol):
    """What the pools need of their worker."""

    @property
    def runner(self) -> Runner: ...
    @property
    def completer(self) -> Completer: ...
    @property
    def retirement(self) -> Retirement: ...
    @property
    def stores(self) -> Stores: ...


class PoolParts:
    """One pool's buffer, executors and producer."""

    def __init__(self, worker: Surroundings, pool: Pool, elsewhere: frozenset[str]) -> None:
        self.buffer = Buffer()
        self.executors = Executors(
            self.buffer, worker.runner, worker.completer.put, pool.size, worker.completer.is_crowded
        )
        allowance = worker.retirement.allowance
        self.producer = Producer(
            pool, self.buffer, self.executors, worker, worker.stores.open, elsewhere, allowance
        )


class Pools(list[PoolParts]):
    """The parts of all pools."""

    def __init__(self, worker: Surroundings, pools: Sequence[Pool]) -> None:
        named = frozenset(name for pool in pools for name in pool.queues if name != EVERY_QUEUE)
        super().__init__(PoolParts(worker, pool, named) for pool in pools)

    # -- what they do ----------------------------------------------------------------------------------------------

    def running(self) -> int:
        """How many jobs run."""
        return sum(len(parts.executors.running()) for parts in self)

    @property
    def idle(self) -> bool:
        """Whether nothing runs, and nothing is about to."""
        return all(parts.executors.idle for parts in self)

    @property
    def found_nothing(self) -> bool:
        """Whether they are idle, and no producer has found anything since it was last told to look."""
        return all(parts.producer.found_nothing and parts.executors.idle for parts in self)

    def look(self, queue_name: str | None = None) -> None:
        """There may be available jobs (in that queue)."""
        for parts in self:
            parts.producer.look(queue_name)

    def withdraw(self, unwanted: Callable[[JobRow], bool] = lambda _job: True) -> None:
        """Let no executor begin what is buffered, or of that the unwanted."""
        for parts in self:
            parts.producer.withdraw(unwanted)

    # -- life ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start to find jobs and to run them."""
        for parts in self:
            parts.executors.start()
            parts.producer.start()

    def recover(self) -> None:
        """See to executors that are gone."""
        for parts in self:
            parts.executors.recover()

    def stop(self) -> None:
        """Ask them to claim nothing more, and to begin nothing."""
        for parts in self:
            parts.executors.stop()
            parts.producer.stop()

    def give_back_unstarted(self, store: Store, seconds: float) -> None:
        """After a stop, give back what never started; the producers have ``seconds`` to end."""
        end = time.monotonic() + seconds
        for parts in self:
            parts.producer.join(until(end))
            jobs: list[JobRow] = [*parts.buffer.take_back(), *parts.producer.returning]
            try:
                jobs += insistently(partial(parts.producer.unanswered, store, at_once=True), end)
                if jobs:
                    insistently(partial(store.release, jobs), end)
            except Exception as error:
                # They are still this worker's, and running; the last write hands them back with the rest.
                logger.warning("%d claimed jobs could not be given back: %s", len(jobs), one_line(error))

    def wait_for_jobs(self, deadline: float, is_hurried: Callable[[], bool]) -> None:
        """After a stop, wait until the jobs that run have ended, or the deadline, or the hurry, comes."""
        running = self.running()
        if running:
            logger.info("Waiting for %d running jobs, %.0f s at most", running, until(deadline))
        while not is_hurried() and time.monotonic() < deadline:
            if all(parts.executors.join(0.02) for parts in self):
                return
