"""Of what the load consists, and how each kind of job must have ended."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """One kind of job.

    :param share: of all jobs, per cent.
    :param state: in which it ends; None for one that must not exist at all, or whose row is deleted as it ends.
    :param attempts: how many it takes; None for any number.
    :param effect: whether it leaves exactly one effect.
    """

    share: float
    state: str | None = "completed"
    attempts: int | None = 1
    effect: bool = False


KINDS: dict[str, Kind] = {
    "bulk": Kind(50),  # all of a second in one enqueue_many
    "plain": Kind(10),
    "short": Kind(5),
    "result": Kind(7),
    "asynchronous": Kind(6),
    "atomic": Kind(5, effect=True),
    "unkept": Kind(4, state=None, effect=True),
    "scheduled": Kind(4),
    "retried": Kind(3, attempts=2),
    "failing": Kind(1, state="failed", attempts=2),
    "snoozed": Kind(1.5),
    "unique": Kind(2),
    "cancelled": Kind(0.5, state="cancelled", attempts=0),
    "told": Kind(0.5, state="cancelled", attempts=None),  # cancelled while it runs, or before under load
    "rolled back": Kind(0.5, state=None, attempts=None),
}
# The table that jobs with an effect write to: a row each time that one ran to its end. Who watches takes them away.
EFFECTS = "soak_effect"
# Beside these, some in a second by which it is measured how soon a job starts.
PROBE = "probe"
PROBES_PER_SECOND = 5
# What a schedule enqueues.
TICK = "tick"
TICK_SECONDS = 2


def of(name: str) -> Kind:
    """What is expected of that kind."""
    return KINDS.get(name, Kind(0))
