"""What the subcommands read from the command line, with errors that say how it should look."""

from __future__ import annotations

import datetime as dt
import json
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from django_jobs.lengths import parse_length
from django_jobs.operations import Filter
from django_jobs.operations.filters import STATES


def age(text: str) -> dt.timedelta:
    """``90``, ``90s``, ``15m``, ``12h``, ``7d``, ``2w``."""
    length = parse_length(text)
    if length is None:
        raise ArgumentTypeError(
            f"{text!r} is no length of time; write 90s, 15m, 12h, 7d or 2w, up to a hundred years"
        )
    return length


def moment(text: str) -> dt.datetime:
    """A date and time, or a length of time ago. Without a zone it is in the site's."""
    try:
        return timezone.now() - age(text)
    except ArgumentTypeError:
        pass
    try:
        value = parse_datetime(text)
    except ValueError:
        value = None
    if value is None:
        raise ArgumentTypeError(
            f"{text!r} is no moment; write 2031-05-06T07:08, with a zone if need be, or 7d for a week ago"
        )
    return timezone.make_aware(value) if timezone.is_naive(value) else value


def job_id(text: str) -> int:
    """The id of a job."""
    return _id(text, "job")


def worker_id(text: str) -> int:
    """The id of a worker."""
    return _id(text, "worker")


def _id(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 2**63):
        raise ArgumentTypeError(f"{text!r} is no id of a {what}; an id is a whole number")
    return int(text)


def count(highest: int) -> Any:
    """A whole number from 1 to ``highest``."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= highest):
            raise ArgumentTypeError(f"{text!r} is not a whole number from 1 to {highest}")
        return int(text)

    return read


def json_value(kind: type, example: str) -> Any:
    """JSON of one kind."""

    def read(text: str) -> Any:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, kind):
            raise ArgumentTypeError(f"{text!r} is not JSON of the right kind; write {example}")
        return value

    return read


def add_filter(parser: ArgumentParser, *, states: bool = True, ids: bool = True) -> None:
    """The options that say which jobs are meant."""
    if ids:
        parser.add_argument("ids", nargs="*", type=job_id, metavar="ID", help="ids of jobs")
    if states:
        parser.add_argument(
            "--state", action="append", choices=STATES, help="in this state; may be given again"
        )
    parser.add_argument("--queue", metavar="NAME", help="of this queue")
    parser.add_argument("--name", metavar="NAME", help="of this job function")
    parser.add_argument("--error", metavar="CLASS", help="whose last error is of this class, as module.Class")
    parser.add_argument("--tag", metavar="TAG", help="with this tag; a model instance is app.model:pk")
    parser.add_argument("--worker", type=job_id, metavar="ID", help="last claimed by this worker")
    parser.add_argument(
        "--created-before", type=moment, metavar="WHEN", help="a date and time, or how long ago: 7d, 12h"
    )
    parser.add_argument(
        "--created-after", type=moment, metavar="WHEN", help="a date and time, or how long ago"
    )


def filter_of(options: dict[str, Any]) -> Filter:
    """The filter that the options make."""
    return Filter(
        state=options.get("state"),
        queue_name=options["queue"],
        name=options["name"],
        ids=options.get("ids") or None,
        error_class=options["error"],
        tag=options["tag"],
        created_before=options["created_before"],
        created_after=options["created_after"],
        worker_id=options["worker"],
    )


def chosen(options: dict[str, Any]) -> Filter:
    """The filter, which must not be empty unless ``--all`` says so."""
    wanted = filter_of(options)
    if wanted.is_empty and not options["all"]:
        raise CommandError("Which jobs? Give ids, or --queue, --name, --error, --tag or the like, or --all.")
    if options["all"] and not wanted.is_empty:
        raise CommandError(
            "--all means every job that this can be done to; leave it out beside ids and filters."
        )
    return wanted
