"""How a claim can end, and what there is to tell when all of a batch have ended alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django_jobs.store.answers import Ended
from django_jobs.store.rows import Outcome

# How a claim can end (``Outcome.kind``).
COMPLETED = "completed"
RETRY = "retry"  # failed; a dead letter if that was the last attempt
FAILED = "failed"  # a dead letter at once
SNOOZED = "snoozed"
CANCELLED = "cancelled"
RELEASED = "released"


def plainly_completed(outcomes: Sequence[Outcome]) -> bool:
    """Whether all are completions without a result, of as many jobs."""
    for _, _, kind, _, _, errors, result in outcomes:
        if kind != COMPLETED or result is not None or errors is not None:
            return False
    return len({outcome[0] for outcome in outcomes}) == len(outcomes)


def completed_as_told(outcomes: Sequence[Outcome]) -> list[Ended]:
    """What to tell of completions that were all stored."""
    # A named tuple's own constructor is a function in Python.
    new: Any = tuple.__new__
    return [new(Ended, (outcome[0], COMPLETED, True, None)) for outcome in outcomes]
