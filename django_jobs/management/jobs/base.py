"""What a subcommand is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import ArgumentParser
from typing import Any

from django_jobs.management.jobs.output import Output


class Subcommand(ABC):
    """One word after ``manage.py jobs``."""

    name: str
    help: str

    def add_arguments(self, parser: ArgumentParser) -> None:  # noqa: B027
        """Add the options of its own; by default it has none."""

    @abstractmethod
    def run(self, out: Output, using: str, options: dict[str, Any]) -> int | None:
        """Do it; an exit code that is not 0 becomes that of the process.

        :param using: the alias of the database that holds the jobs.
        """
