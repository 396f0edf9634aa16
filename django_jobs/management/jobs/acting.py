"""``retry``, ``cancel``, ``release`` and ``purge``."""

from __future__ import annotations

import datetime as dt
from argparse import ArgumentParser
from typing import Any

from django_jobs import operations
from django_jobs.lengths import length_text
from django_jobs.management.jobs.arguments import add_filter, age, chosen
from django_jobs.management.jobs.base import Subcommand
from django_jobs.management.jobs.output import Output, confirm
from django_jobs.operations import Filter, Result
from django_jobs.operations.applicable import applicable


class Action(Subcommand):
    """Does something to the jobs that match."""

    done: str
    destroys = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which jobs, and whether to ask."""
        add_filter(parser)
        parser.add_argument("--all", action="store_true", help="all jobs that this can be done to")
        if self.destroys:
            parser.add_argument("--yes", action="store_true", help="don't ask")

    def run(self, out: Output, using: str, options: dict[str, Any]) -> int:
        """Ask, do it, and say what was done; 1 when some of the ids given were not done."""
        wanted = chosen(options)
        applicable(wanted, self.name, using)  # before anybody is asked
        if self.destroys:
            confirm(self.question(wanted, options), options["yes"])
        result = self.act(wanted, using, options)
        if out.as_json:
            out.record(
                {"done": result.done, "skipped": dict(result.skipped), "skipped_ids": result.skipped_ids}
            )
        else:
            out.line(result.describe(self.done))
        return 1 if result.skipped and wanted.ids is not None else 0

    def question(self, wanted: Filter, options: dict[str, Any]) -> str:
        """What is asked before."""
        which = "all jobs that have not ended" if wanted.is_empty else f"jobs with {wanted.describe()}"
        return f"{self.name.capitalize()} {which}?"

    def act(self, wanted: Filter, using: str, options: dict[str, Any]) -> Result:
        """Do it."""
        raise NotImplementedError


class Retry(Action):
    """Finished jobs again."""

    name = "retry"
    help = "run finished jobs again (dead letters, where no state is given), from their first attempt"
    done = "retried"

    def act(self, wanted: Filter, using: str, options: dict[str, Any]) -> Result:
        """Retry them."""
        return operations.retry(wanted, using=using)


class Cancel(Action):
    """What has not ended."""

    name = "cancel"
    help = "cancel jobs: waiting ones at once, running ones by request"
    done = "cancelled, or asked to stop"
    destroys = True

    def act(self, wanted: Filter, using: str, options: dict[str, Any]) -> Result:
        """Cancel them."""
        return operations.cancel(wanted, using=using)


class Release(Action):
    """What is pending."""

    name = "release"
    help = "let pending jobs run"
    done = "released"

    def act(self, wanted: Filter, using: str, options: dict[str, Any]) -> Result:
        """Release them."""
        return operations.release(wanted, using=using)


class Purge(Action):
    """What has ended."""

    name = "purge"
    help = "delete finished jobs, for good"
    done = "deleted"
    destroys = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How old."""
        super().add_arguments(parser)
        parser.add_argument(
            "--older-than",
            type=age,
            default=dt.timedelta(),
            metavar="AGE",
            help="only what ended so long ago: 90s, 15m, 12h, 7d, 2w",
        )

    def question(self, wanted: Filter, options: dict[str, Any]) -> str:
        """With the age."""
        older = options["older_than"].total_seconds()
        than = f", that ended {length_text(older)} ago or earlier" if older else ""
        which = "all finished jobs" if wanted.is_empty else f"finished jobs with {wanted.describe()}"
        return f"Delete {which}{than}, for good?"

    def act(self, wanted: Filter, using: str, options: dict[str, Any]) -> Result:
        """Delete them."""
        return operations.purge(wanted, options["older_than"], using=using)
