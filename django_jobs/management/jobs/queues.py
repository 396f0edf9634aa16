"""``pause``, ``resume`` and ``stats``."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import translation

from django_jobs import operations
from django_jobs.management.jobs.base import Subcommand
from django_jobs.management.jobs.output import Output
from django_jobs.operations.status import COUNTED
from django_jobs.operations.trouble import in_words
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
        if name not in {queue.name for queue in operations.queues(using=using)}:
            raise CommandError(f"The queue {name!r} was never paused; manage.py jobs stats lists the queues.")
        return operations.resume(name, using=using)

    def say(self, queue: QueueRow) -> str:
        """That it goes on."""
        return f"The queue {queue.name} is not paused any more."


class Stats(Subcommand):
    """Counts."""

    name = "stats"
    help = "how each queue stands: what waits, since when, and what became of jobs lately"

    def run(self, out: Output, using: str, options: dict[str, Any]) -> None:
        """A row for each queue."""
        records = [
            {
                "queue": queue.name,
                **{state: getattr(queue, state) for state in COUNTED},
                "oldest": None if queue.oldest is None else round(queue.oldest, 3),
                "per_minute": queue.per_minute,
                "workers": len(queue.workers),
                "paused": queue.paused_at is not None,
            }
            for queue in operations.queue_status(using=using)
        ]
        if not out.as_json:
            for record in records:
                record.update({state: str(record[state]) for state in COUNTED})
                if record["oldest"] is not None:
                    with translation.override(None):  # English, as all that the command says
                        record["oldest"] = in_words(record["oldest"])
        if not out.table(["queue", *COUNTED, "oldest", "per_minute", "workers", "paused"], records):
            out.line("There are no queues.")
