"""What becomes of old statistics: after some hours they are kept by ten minutes, after two days by the hour, and after
their retention not at all."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable

from django_jobs import conf
from django_jobs.store import Store
from django_jobs.store.statistics import FOLDS, Fold

# How often old ones are looked for: a look finds one span or none, as a rule.
LOOK_SECONDS = 600.0
BATCH = 1000
# Batches, and spans of each length, that one round does, so that the keeper comes to its other work.
MOST = 20


class Archive:
    """Folds and purges statistics, as ``DJANGO_JOBS["STATISTICS_RETENTION"]`` says when it is made."""

    def __init__(self) -> None:
        self.retention = conf.statistics_retention()
        self._looked_at = float("-inf")
        self._folded: dict[Fold, dt.datetime] = {}  # all spans before are folded

    def keep(self, store: Store, stopping: Callable[[], bool] = lambda: False) -> bool:
        """One round, if it is time for one; whether there may be more to do."""
        now = time.monotonic()
        if stopping() or now - self._looked_at < LOOK_SECONDS:
            return False
        more = self.purge(store, stopping)
        for fold in FOLDS[::-1]:
            more = self.fold(store, fold, stopping) or more
        if not more:
            self._looked_at = now
        return more

    def purge(self, store: Store, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Delete what is past its retention, a bounded number of batches; whether there may be more."""
        if self.retention is None:
            return False
        batches = 0
        while batches < MOST and not stopping() and store.purge_stats(self.retention, BATCH) == BATCH:
            batches += 1
        return batches == MOST

    def fold(self, store: Store, fold: Fold, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Fold what is old enough, a bounded number of spans; whether there are more."""
        starts = store.unfolded_stats(fold, self._folded.get(fold))
        for start in starts[:MOST]:
            if stopping():
                return False
            store.fold_stats(start, fold.step)
            self._folded[fold] = start
        return len(starts) > MOST
