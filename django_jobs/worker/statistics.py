"""What a worker has done since its start."""

from __future__ import annotations

from dataclasses import dataclass, field

from django_jobs.store.base import Store
from django_jobs.worker.measures import Measures, Snapshot
from django_jobs.worker.tallies import Tallies


@dataclass
class Statistics:
    """Counts since the worker's start; changed by the completer alone, once for each stored batch."""

    completed: int = 0
    retried: int = 0  # attempts that failed, with another one to come
    dead: int = 0  # jobs that became dead letters
    snoozed: int = 0
    cancelled: int = 0
    timed_out: int = 0  # attempts that took longer than their timeout; among those that failed
    dropped: int = 0  # outcomes of claims that were no longer this worker's
    tallies: Tallies = field(default_factory=Tallies, repr=False)
    measures: Measures | None = field(default=None, repr=False)  # for a scraper, if there is one
    stores: list[Store] = field(default_factory=list, repr=False)

    @property
    def failed(self) -> int:
        """Attempts that failed, the last ones included."""
        return self.retried + self.dead

    @property
    def attempts(self) -> int:
        """Attempts that ended, however."""
        return self.completed + self.retried + self.dead + self.snoozed + self.cancelled

    @property
    def statements(self) -> int:
        """Statements that the worker's own parts have run; those of the jobs themselves are not counted."""
        return sum(store.session.statements for store in list(self.stores))

    @property
    def connects(self) -> int:
        """Connections that the worker's own parts have opened."""
        return sum(getattr(store.session, "connects", 0) for store in list(self.stores))

    def snapshot(self, gauges: dict[str, int]) -> Snapshot:
        """What was measured since the start, with how the worker is now."""
        counters = {
            "statements": self.statements,
            "connects": self.connects,
            "timed_out": self.timed_out,
            "dropped": self.dropped,
        }
        return (self.measures or Measures()).snapshot(counters, gauges)
