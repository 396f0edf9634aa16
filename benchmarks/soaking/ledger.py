"""What was enqueued and how it ended, job by job: the rows are read as they end, since they are purged later."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.core.meters import MARK, Meter
from benchmarks.soaking.mix import EFFECTS, KINDS, PROBE, TICK, TICK_SECONDS, of

# What ended before is looked at once more: its transaction may have been committed late.
AGAIN_SECONDS = 10.0
STATES = ("completed", "failed", "cancelled")


class Ended(NamedTuple):
    """How a job ended."""

    state: str
    attempts: int
    name: str


class Ledger:
    """Reads the notes of the load, and the rows of jobs that have ended.

    :param notes: the file that the load writes.
    """

    def __init__(self, meter: Meter, notes: Path, postgresql: bool) -> None:
        self.meter = meter
        self.postgresql = postgresql
        self.notes = notes.open()
        self.part = ""
        self.enqueued: dict[int, str] = {}  # kinds by id
        self.calls: Counter[str] = Counter()  # enqueues that were committed; several can have one job
        self.ended: dict[int, Ended] = {}
        self.effects: Counter[int] = Counter()
        self.ticks: Counter[str] = Counter()
        self.since = meter.now()

    def close(self) -> None:
        """Close the notes."""
        self.notes.close()

    def look(self) -> dict[str, list[float]]:
        """Read what is new. Returns how many milliseconds probes, and the echo, took since the last time."""
        waits = self.read_notes()
        self.take_effects()
        self.read_ended()
        return waits

    def read_notes(self) -> dict[str, list[float]]:
        """The load's new lines; of those that tell of milliseconds, these, by what they are of."""
        waits: dict[str, list[float]] = {"probe": [], "echo": []}
        lines = (self.part + self.notes.read()).split("\n")
        self.part = lines.pop()
        for line in lines:
            word, _, rest = line.partition(" ")
            first, _, last = rest.rpartition(" ")
            if word == "ms":
                waits[first].append(float(last))
            else:
                self.calls[first] += 1
                self.enqueued[int(last)] = first
        return waits

    def take_effects(self) -> None:
        """Count the effects, and remove them."""
        self.effects.update(
            row[0] for row in self.meter.run(f"DELETE {MARK} FROM {EFFECTS} RETURNING job_id")
        )

    def read_ended(self) -> None:
        """The jobs that have ended since shortly before the last time."""
        now = self.meter.now()
        since = self.moment(self.since - AGAIN_SECONDS)
        for state in STATES:
            rows = self.meter.run(
                f"SELECT {MARK} id, state, attempt, name, metadata FROM django_jobs_job "
                f"WHERE state = '{state}' AND finalized_at >= {since} AND finalized_at IS NOT NULL"
            )
            for number, state_, attempts, name, metadata in rows:
                name = name.rpartition(".")[2]
                if name == TICK and number not in self.ended:
                    self.ticks[decoded(metadata)["tick"]] += 1
                self.ended[number] = Ended(state_, attempts, name)
        self.since = now

    def moment(self, seconds: float) -> str:
        """A moment as the table of jobs has it, as SQL."""
        if self.postgresql:
            return f"to_timestamp({seconds!r})"
        return f"'{dt.datetime.fromtimestamp(seconds, dt.UTC).strftime('%Y-%m-%d %H:%M:%S.%f')}'"

    # -- at the end ------------------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> None:
        """Wait until all that was enqueued has ended, or for so long."""
        deadline = time.monotonic() + seconds
        self.look()
        while self.open_jobs() and time.monotonic() < deadline:
            time.sleep(0.2)
            self.look()

    def open_jobs(self) -> list[int]:
        """Those that must end and have not."""
        return [number for number, kind in self.enqueued.items() if not self.has_ended(number, kind)]

    def has_ended(self, number: int, kind: str) -> bool:
        expected = of(kind)
        if expected.state is None:
            return not expected.effect or number in self.effects
        return number in self.ended and (not expected.effect or number in self.effects)

    def tally(self) -> list[dict[str, Any]]:
        """A row for each kind: how many jobs, and how many of them ended as they must, otherwise, or not at all."""
        found = {
            kind: dict.fromkeys(("jobs", "as_expected", "otherwise", "lost"), 0) for kind in [*KINDS, PROBE]
        }
        for number, kind in self.enqueued.items():
            found[kind]["jobs"] += 1
            found[kind][self.verdict(number, kind)] += 1
        rows = [{"kind": kind, "calls": self.calls[kind], **numbers} for kind, numbers in found.items()]
        return [*rows, self.tally_of_ticks(), self.strangers()]

    def verdict(self, number: int, kind: str) -> str:
        """Of one job: ``as_expected``, ``otherwise``, ``lost``."""
        expected = of(kind)
        if not self.has_ended(number, kind):
            return "lost"
        if self.effects[number] != (1 if expected.effect else 0):
            return "otherwise"
        ended = self.ended.get(number)
        if expected.state is None:
            return "as_expected" if ended is None else "otherwise"
        assert ended is not None
        right = ended.state == expected.state and expected.attempts in (None, ended.attempts)
        return "as_expected" if right else "otherwise"

    def tally_of_ticks(self) -> dict[str, Any]:
        """The same of the schedule's jobs: one for each tick from the first to the last that was seen."""
        moments = sorted(dt.datetime.fromisoformat(tick) for tick in self.ticks)
        due = round((moments[-1] - moments[0]).total_seconds() / TICK_SECONDS) + 1 if moments else 0
        return {
            "kind": "ticks of a schedule",
            "calls": due,
            "jobs": self.ticks.total(),
            "as_expected": sum(1 for number in self.ticks.values() if number == 1),
            "otherwise": sum(number - 1 for number in self.ticks.values()),
            "lost": due - len(moments),
        }

    def strangers(self) -> dict[str, Any]:
        """Jobs that nobody enqueued, and effects of such."""
        unknown = {
            number for number, ended in self.ended.items() if ended.name != TICK
        } - self.enqueued.keys()
        unknown |= self.effects.keys() - self.enqueued.keys()
        return {"kind": "not enqueued", "jobs": len(unknown), "otherwise": len(unknown)}


def decoded(value: Any) -> Any:
    """JSON that the driver may have decoded already."""
    return json.loads(value) if isinstance(value, str) else value


def lost(rows: Iterable[Mapping[str, Any]]) -> int:
    """How many are lost, or did not end as they must."""
    return sum((row.get("lost") or 0) + (row.get("otherwise") or 0) for row in rows)
