"""``manage.py jobs``: look at jobs and act on them, from the command line."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from django_jobs.databases import jobs_database
from django_jobs.exceptions import InvalidJob
from django_jobs.management.jobs.acting import Cancel, Purge, Release, Retry
from django_jobs.management.jobs.base import Subcommand
from django_jobs.management.jobs.doctor import Doctor
from django_jobs.management.jobs.enqueueing import Enqueue
from django_jobs.management.jobs.listing import List, Show
from django_jobs.management.jobs.output import Output
from django_jobs.management.jobs.queues import Pause, Resume, Stats
from django_jobs.management.jobs.workers import Schedules, Workers
from django_jobs.operations import InvalidFilter

SUBCOMMANDS: dict[str, Subcommand] = {
    each.name: each
    for each in (
        List(), Show(), Retry(), Cancel(), Release(), Purge(), Pause(), Resume(), Stats(), Enqueue(), Schedules(),
        Workers(), Doctor(),
    )
}  # fmt: skip


class Command(BaseCommand):
    """Look at jobs and act on them."""

    help = "Look at jobs and act on them: manage.py jobs SUBCOMMAND --help says how."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The subcommands; each takes --database and --json."""
        subparsers = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND")
        for subcommand in SUBCOMMANDS.values():
            below = subparsers.add_parser(subcommand.name, help=subcommand.help, description=subcommand.help)
            subcommand.add_arguments(below)
            below.add_argument("--database", metavar="ALIAS", help="the database that holds the jobs")
            below.add_argument("--json", action="store_true", help="print JSON lines")
            _add_djangos_options(below)

    def handle(self, **options: Any) -> None:
        """Run the subcommand; what is wrong with the input is said in a line."""
        if options["subcommand"] is None:
            raise CommandError(
                f"Say what to do: manage.py jobs {', '.join(SUBCOMMANDS)}. manage.py jobs SUBCOMMAND --help says how."
            )
        out = Output(self.stdout, self.stderr, self.style, options["json"])
        try:
            code = SUBCOMMANDS[options["subcommand"]].run(out, jobs_database(options["database"]), options)
        except (InvalidFilter, InvalidJob, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(
                f"The database refused: {' '.join(str(error).split())}\n"
                "If its tables are missing, run manage.py migrate."
            ) from error
        if code:
            sys.exit(code)


def _add_djangos_options(parser: ArgumentParser) -> None:
    # After the subcommand, too. Those that Django reads before it parses need only be let pass.
    for option in ("--settings", "--pythonpath"):
        parser.add_argument(option, default=SUPPRESS, help=SUPPRESS)
    for option in ("--traceback", "--no-color", "--force-color", "--skip-checks"):
        parser.add_argument(option, action="store_true", default=SUPPRESS, help=SUPPRESS)
    parser.add_argument("-v", "--verbosity", type=int, choices=range(4), default=SUPPRESS, help=SUPPRESS)
