"""What keeps a schedule from running: as the keeper writes it into the row, and as pages show it.

It is written in English, which whoever reads the row reads, and a page is in the language of its reader. What keeps it
can as a rule be found out again where the page is made, since it is about the schedule's row and the code: so that is
done, and where it comes out the same, it is shown in the language of the page.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import get_language

from django_jobs import scheduling, timing
from django_jobs.exceptions import InvalidJob, InvalidSchedule
from django_jobs.redaction import Redactor
from django_jobs.serialization import Undecodable, printable

# How many characters of an error are kept.
LONGEST = 2000
#: What :func:`error_text` is given of a schedule.
FIELDS = ("last_error", "name", "expression", "timezone", "args", "kwargs", "options")


def redacted(name: str, args: Any, kwargs: Any, text: str) -> str:
    """A text about a schedule without what is hidden of its arguments.

    :param args: decoded, as ``kwargs``; with what does not decode the text is as it was.
    """
    if isinstance(args, Undecodable) or isinstance(kwargs, Undecodable):
        return text
    return Redactor.of(name).text(text, args, kwargs)


def stored(text: str) -> str:
    """A text as the row can hold it."""
    return printable(text)[:LONGEST]


def error_text(
    *, last_error: str, name: str, expression: str, timezone: str, args: Any, kwargs: Any, options: Any
) -> str:
    """The last error of a schedule in the active language, where that is known; else as it was written."""
    if not last_error or (get_language() or "en").startswith("en"):
        return last_error
    try:
        timing.parse(expression, timezone)
        scheduling.prepared(name, args, kwargs, options)
    except (InvalidSchedule, InvalidJob) as error:
        if stored(redacted(name, args, kwargs, str(error))) == last_error:
            return redacted(name, args, kwargs, error.translated)
    except Exception:  # noqa: BLE001 - a row may hold anything: then the error is told as it was written
        return last_error
    return last_error
