"""What a database gives, in data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantees:
    """What this database gives, in data: see :meth:`Store.guarantees <django_jobs.store.base.Store.guarantees>`."""

    database: str
    exclusive_across_processes: bool
    exclusive_across_hosts: bool
    wakes_by: str
    wakes_within: float
    concurrent_completion_writes: int
    clock: str

    def describe(self) -> str:
        """One line for people."""
        reach = (
            "any number of hosts" if self.exclusive_across_hosts else "any number of processes on one host"
        )
        writes = self.concurrent_completion_writes
        return (
            f"{self.database}: a job is claimed by one worker at a time across {reach}; woken by {self.wakes_by} "
            f"(polls every {self.wakes_within:g} s while that fails); {writes} completion "
            f"{'write' if writes == 1 else 'writes'} at once; time is {self.clock}'s"
        )
