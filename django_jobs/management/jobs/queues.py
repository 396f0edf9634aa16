"""``pause``, ``resume`` and ``stats``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import defaultdict
from typing import Any

from django_jobs import operations
from django_jobs.management.jobs.base import Subcommand
from django_jobs.management.jobs.output import Output
from django_jobs.operations.filters import STATES
from django_jobs.store.rows import QueueRow


class _OnQueues(Subcommand):
    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which queues."""
        parser.add_argument("queues", nargs="+", metavar="QUEUE", help="names of queues")

    def run(self, out: Output, using: str, options: dict[str, Any]) -> None:
        """One after the other."""
        for name in options["queues"]:
            queue = self.act(name, using)
            if out.as_json:
                out.record(queue._asdict())
            else:
                out.line(self.say(queue))

    def act(self, name: str, using: str) -> QueueRow:
        """Do it."""
        raise NotImplementedError

    def say(self, queue: QueueRow) -> str:
        """What was done."""
        raise NotImplementedError


class Pause(_OnQueues):
    """No more claims."""

    name = "pause"
    help = "let no worker claim from a queue; what runs goes on"

    def act(self, name: str, using: str) -> QueueRow:
        """Pause it."""
        return operations.pause(name, using=using)

    def say(self, queue: QueueRow) -> str:
        """Since when."""
        return f"The queue {queue.name} is paused."


class Resume(_OnQueues):
    """Claims again."""

    name = "resume"
    help = "let workers claim from a queue again"

    def act(self, name: str, using: str) -> QueueRow:
        """Resume it."""
        return operations.resume(name, using=using)

    def say(self, queue: QueueRow) -> str:
        """That it goes on."""
        return f"The queue {queue.name} is not paused any more."


class Stats(Subcommand):
    """Counts."""

    name = "stats"
    help = "how many jobs there are, by queue and state (it counts every row)"

    def run(self, out: Output, using: str, options: dict[str, Any]) -> None:
        """A row for each queue, and one for all."""
        paused = {queue.name for queue in operations.queues(using=using) if queue.paused_at}
        counts: dict[str, dict[str, int]] = defaultdict(dict)
        for queue_name, state, number in operations.stats_by_queue(using=using):
            counts[queue_name][state] = number
        for queue_name in paused - set(counts):
            counts[queue_name] = {}
        records = [
            {
                "queue": name,
                **{state: counts[name].get(state, 0) for state in STATES},
                "paused": name in paused,
            }
            for name in sorted(counts)
        ]
        if len(records) > 1 and not out.as_json:
            total = {state: sum(by_state.get(state, 0) for by_state in counts.values()) for state in STATES}
            records.append({"queue": "all", **total, "paused": None})
        if not out.table(["queue", *STATES, "paused"], records):
            out.line("There are no jobs.")
