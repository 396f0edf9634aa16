"""What an operation on many jobs did."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

# So many ids are kept of those done, and of those not done for each reason: enough to look at, whatever the number.
KEPT = 100


@dataclass
class Result:
    """How many jobs were done, and why the others were not.

    :param done: how many.
    :param skipped: for each reason, how many were not done.
    :param done_ids: the ids of the first hundred that were done.
    :param skipped_ids: for each reason, the ids of the first hundred.
    :param next: where to go on, if it was told to stop after a number of steps before all was done.
    """

    done: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    done_ids: list[int] = field(default_factory=list)
    skipped_ids: dict[str, list[int]] = field(default_factory=dict)
    next: str | None = None

    def did(self, job_id: int) -> None:
        """Count one that was done."""
        self.done += 1
        if len(self.done_ids) < KEPT:
            self.done_ids.append(job_id)

    def skip(self, job_id: int, why: str) -> None:
        """Count one that was not done."""
        self.skipped[why] += 1
        ids = self.skipped_ids.setdefault(why, [])
        if len(ids) < KEPT:
            ids.append(job_id)

    def describe(self, done: str) -> str:
        """In a sentence: ``3 jobs cancelled; not 2: it had ended already (7, 9).``

        :param done: what was done, as a participle.
        """
        text = f"{self.done} {'job' if self.done == 1 else 'jobs'} {done}"
        for why, count in self.skipped.items():
            ids = self.skipped_ids[why]
            few = ", ".join(map(str, ids[:5])) + (", ..." if count > 5 else "")
            text += f"; not {count}: {why} ({few})"
        return f"{text}."
