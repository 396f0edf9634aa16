"""Whether a worker that drains has come to the end: nothing runs, nothing is due, or nothing more may be claimed."""

from __future__ import annotations

import logging
from typing import Protocol

from django.db import Error as DatabaseError

from django_jobs.store.base import Store
from django_jobs.worker.completer import Completer
from django_jobs.worker.options import EVERY_QUEUE, WorkerOptions
from django_jobs.worker.parts import StopRequest, one_line
from django_jobs.worker.pools import Pools
from django_jobs.worker.ticker import Ticker

logger = logging.getLogger("django_jobs.worker")


class Draining(Protocol):
    """What the drain must know of its worker."""

    @property
    def worker_id(self) -> int: ...
    @property
    def options(self) -> WorkerOptions: ...
    @property
    def store(self) -> Store: ...
    @property
    def pools(self) -> Pools: ...
    @property
    def completer(self) -> Completer: ...
    @property
    def ticker(self) -> Ticker: ...
    @property
    def paused(self) -> frozenset[str]: ...
    @property
    def quiet(self) -> bool: ...


class Drain:
    """The end of a drain, which the thread that runs the worker looks for.

    :param stop: the worker's; it ends a pause.
    """

    def __init__(self, worker: Draining, stop: StopRequest) -> None:
        self._worker = worker
        self._stop = stop

    def is_over(self) -> bool:
        """Whether the worker has done all there is for it."""
        return self._has_fallen_quiet() or (self._at_rest() and self._nothing_due() and self._at_rest())

    def _has_fallen_quiet(self) -> bool:
        """Whether it has ended what it had and was asked to take nothing more: it would wait for ever for the rest."""
        worker = self._worker
        if not (worker.quiet and worker.pools.idle):
            return False
        logger.info("Worker %d was asked to be quiet, so its drain ends here", worker.worker_id)
        return True

    def _at_rest(self) -> bool:
        pools = self._worker.pools
        # Twice, since a job may have moved from one part to the next while we looked.
        return pools.found_nothing and self._worker.completer.idle and pools.found_nothing

    def _nothing_due(self) -> bool:
        """Promote and tick what is due, whoever leads, and look whether that, or anything, is for us."""
        worker, store = self._worker, self._worker.store
        worker.ticker.synchronise(store)
        worker.ticker.maintain(store)
        try:
            store.promote()
            waiting = [name for name in store.waiting_queues() if name not in worker.paused]
            mine = [name for name in waiting if self._serves(name)]
        except (DatabaseError, OSError) as error:
            logger.warning("The worker can't look whether all is done: %s", one_line(error))
            self._stop.wait(1.0)
            return False
        for name in mine:
            worker.pools.look(name)
        return not mine

    def _serves(self, queue_name: str) -> bool:
        pools = self._worker.options.pools
        return any(queue_name in pool.queues or EVERY_QUEUE in pool.queues for pool in pools)
