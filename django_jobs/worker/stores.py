"""The stores of a worker's parts: each part has one of its own, and what they all send is counted."""

from __future__ import annotations

import threading

from django_jobs import conf
from django_jobs.store import Store, own_store
from django_jobs.worker.options import WorkerOptions
from django_jobs.worker.statistics import Statistics


class Stores:
    """Opens stores, each on a connection of its own.

    :param options: of the worker.
    :param statistics: has all the stores, whose statements it counts.
    """

    def __init__(self, options: WorkerOptions, statistics: Statistics) -> None:
        self._options = options
        self._statistics = statistics
        self._lock = threading.Lock()

    def open(self, timeout: float | None = None) -> Store:
        """A store; ``timeout`` seconds for each statement, if not those of the options."""
        options = self._options
        return self._counted(
            own_store(options.using, timeout or options.statement_timeout, notify=options.notify)
        )

    def open_to_listen(self) -> Store:
        """One for the listener, with no pooler between where the settings name a way around it."""
        alias = conf.get("LISTEN")
        if alias is None:
            return self.open()
        return self._counted(own_store(alias, self._options.statement_timeout, direct=True))

    def open_to_report(self) -> Store:
        """One for the heartbeat: one that hangs must be noticed well before the lease is over."""
        return self.open(min(self._options.statement_timeout, max(1.0, self._options.lease / 3)))

    def _counted(self, store: Store) -> Store:
        with self._lock:
            self._statistics.stores.append(store)
        return store
