"""What becomes of old statistics: after two days they are kept by the hour, and after their retention not at all."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable

from django_jobs import conf
from django_jobs.store import Store
from django_jobs.store.statistics import BY_MINUTE_SECONDS

# How often old ones are looked for. An hour takes as many rows as it had kinds of jobs, so a look finds one at a time.
LOOK_SECONDS = 600.0
BATCH = 1000
# Batches and hours that one round does, so that the keeper comes to its other work.
MOST = 20


class Archive:
    """Folds and purges statistics, as ``DJANGO_JOBS["STATISTICS_RETENTION"]`` says when it is made."""

    def __init__(self) -> None:
        self.retention = conf.statistics_retention()
        self._looked_at = float("-inf")
        self._folded: dt.datetime | None = None  # no hour before it is kept by the minute

    def keep(self, store: Store, stopping: Callable[[], bool] = lambda: False) -> bool:
        """One round, if it is time for one; whether there may be more to do."""
        now = time.monotonic()
        if stopping() or now - self._looked_at < LOOK_SECONDS:
            return False
        more = self.purge(store, stopping) or self.fold(store, stopping)
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

    def fold(self, store: Store, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Fold the hours that are old enough, a bounded number; whether there are more."""
        hours = store.unfolded_hours(BY_MINUTE_SECONDS, self._folded)
        for hour in hours[:MOST]:
            if stopping():
                return False
            store.fold_stats(hour)
            self._folded = hour
        return len(hours) > MOST
