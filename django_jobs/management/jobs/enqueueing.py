"""``enqueue``."""

from __future__ import annotations

import datetime as dt
import difflib
import json
import shlex
from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from django_jobs.job_registry import registry
from django_jobs.management.jobs.arguments import age, json_value
from django_jobs.management.jobs.base import Subcommand
from django_jobs.management.jobs.output import Output, clean, job_record
from django_jobs.options import LEFT_OUT
from django_jobs.serialization import encode


def _meant(word: str) -> Any:
    try:
        value = json.loads(word)
        encode(value)  # NaN and 1e999 can be read, and not be written
    except (ValueError, RecursionError):
        return word
    return value


def _whole(text: str) -> int:
    return int(text)


class Enqueue(Subcommand):
    """A job by hand."""

    name = "enqueue"
    help = "enqueue a call of a job function"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to call, and how."""
        parser.add_argument("name", metavar="NAME", help="the name of a registered job function")
        # There is nothing more by position; said in run(), for argparse would only call it unrecognized.
        parser.add_argument("words", nargs="*", help=SUPPRESS)
        parser.add_argument(
            "--args",
            dest="call_args",
            type=json_value(list, "'[1, \"two\"]'"),
            default=[],
            metavar="JSON",
            help="a list of arguments",
        )
        parser.add_argument(
            "--kwargs",
            dest="call_kwargs",
            type=json_value(dict, "'{\"key\": 1}'"),
            default={},
            metavar="JSON",
            help="an object of arguments by name",
        )
        parser.add_argument("--queue", metavar="NAME", help="another queue than the function's own")
        parser.add_argument("--priority", type=_whole, metavar="N", help="-100 to 100, higher first")
        parser.add_argument(
            "--max-attempts", type=_whole, metavar="N", help="how often it is attempted at most"
        )
        parser.add_argument(
            "--delay", type=age, metavar="AGE", help="not before so long from now: 90s, 15m, 12h"
        )

    def run(self, out: Output, using: str, options: dict[str, Any]) -> None:
        """Enqueue it, and print the job."""
        if options["words"]:
            values = encode([_meant(word) for word in options["words"]])
            raise CommandError(
                f"After the name there are options only; arguments are a JSON list: --args {shlex.quote(values)}"
            )
        definition = registry.get(options["name"])
        if definition is None:
            names = sorted(each.name for each in registry)
            near = difflib.get_close_matches(options["name"], names, n=1, cutoff=0.4)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names) or 'none'}."
            raise CommandError(f"No job function is registered as {options['name']!r}. {hint}")
        delay: dt.timedelta | None = options["delay"]
        most = options["max_attempts"]
        job = definition.using(
            queue_name=options["queue"],
            priority=options["priority"],
            max_attempts=LEFT_OUT if most is None else most,
            run_after=delay,
            using=using,
        ).enqueue(*options["call_args"], **options["call_kwargs"])
        if out.as_json:
            out.record(job_record(job))
            return
        if getattr(job, "is_duplicate", False):
            out.line(clean(f"Job {job.id} holds the same unique key already: {job.name}, {job.state}."))
            return
        out.line(clean(f"Job {job.id} is enqueued: {job.name}, {job.state} in the queue {job.queue_name}."))
