"""What goes wrong and when: all of it follows from the seed."""

import random
from dataclasses import dataclass

# Fault, weight, and how long it lasts at most, in leases. A process that is killed is replaced after that.
PROCESSES = [
    ("worker killed", 5, 0.7),
    ("worker stopped past its lease", 4, 2.5),
    ("worker terminated", 3, 0.5),
    ("worker terminated twice", 2, 0.5),
    ("enqueuer killed", 2, 0.5),
    ("enqueuer stopped", 1, 1.0),
]
LINES = [
    ("line slow", 2, 1.5),
    ("line cut", 4, 1.5),
    ("line deaf", 4, 1.0),
    ("line held, then delivered", 3, 2.5),
    ("line silent, then resumed", 3, 2.0),
    ("line silent for ever", 3, 2.0),
]
SERVER = [
    ("server restarted, fast", 2, 0.3),
    ("server restarted, immediate", 2, 0.3),
    ("server killed", 2, 0.3),
    ("server stands still", 2, 2.5),
    ("server away for long", 1, 2.0),
    ("server: a session killed", 2, 0.0),
    ("server: sessions terminated", 2, 0.0),
]


@dataclass(frozen=True, order=True)
class Fault:
    """One thing that goes wrong: when, in seconds from the start, for how long, and to whom (0 to 1, of those that
    there are then)."""

    at: float
    kind: str
    seconds: float
    whom: float


def plan(seed: int, seconds: float, lease: float, has_server: bool, pace: float = 0.6) -> list[Fault]:
    """The faults of a run: each kind once, then at random, one in ``pace`` leases on the average."""
    rng = random.Random(seed)
    kinds = PROCESSES + (LINES + SERVER if has_server else [])
    first = rng.sample(kinds, len(kinds))
    # Rarely enough that there is work between them, and often enough that they meet.
    between = min(pace * lease, 0.9 * seconds / len(kinds))
    faults: list[Fault] = []
    now = 0.3 * between
    while now < seconds:
        if first:
            kind, _, longest = first.pop()
        else:
            kind, _, longest = rng.choices(kinds, [weight for _, weight, _ in kinds])[0]
        shortest = 1.1 * lease if "past its lease" in kind else 0.0
        lasting = rng.uniform(min(max(shortest, 0.2 * longest * lease), longest * lease), longest * lease)
        faults.append(Fault(now, kind, lasting, rng.random()))
        now += (1.0 if first else rng.uniform(0.2, 1.8)) * between
    return faults
