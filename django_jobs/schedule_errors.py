"""What keeps a schedule from running: as the keeper writes it into the row, and as pages show it.

It is written in English, which whoever reads the row reads, and a page is in the language of its reader. What keeps it
can as a rule be found out again where the page is made, since it is about the schedule's row and the code: so that is
done, and where it comes out the same, it is shown in the language of the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import get_language

from django_jobs import scheduling, timing
from django_jobs.exceptions import InvalidJob, InvalidSchedule
from django_jobs.redaction import HIDDEN, Redactor
from django_jobs.serialization import Undecodable, printable, shown

if TYPE_CHECKING:
    from django_jobs.models import Schedule

# How many characters of an error are kept.
LONGEST = 2000
#: What :func:`error_text` reads of a schedule.
FIELDS = ("last_error", "name", "expression", "timezone", "args", "kwargs", "options")


def redacted(name: str, args: Any, kwargs: Any, text: str) -> str:
    """A text about a schedule without what is hidden of its arguments.

    :param args: decoded, as ``kwargs``; what does not decode is hidden whole, as pages hide it, or not at all.
    """
    redactor = Redactor.of(name)
    for value in (args, kwargs):
        if isinstance(value, Undecodable) and redactor.value(value) == HIDDEN:
            text = text.replace(shown(value), HIDDEN)
    return redactor.text(text, args, kwargs)


def stored(text: str) -> str:
    """A text as the row can hold it."""
    return printable(text)[:LONGEST]


def error_text(schedule: Schedule) -> str:
    """The last error of a schedule in the active language, where that is known; else as it was written.

    :param schedule: a row with at least :data:`FIELDS`.
    """
    written = schedule.last_error
    if not written or (get_language() or "en").startswith("en"):
        return written
    name, args, kwargs = schedule.name, schedule.args, schedule.kwargs
    try:
        timing.parse(schedule.expression, schedule.timezone)
        scheduling.prepared(name, args, kwargs, schedule.options)
    except (InvalidSchedule, InvalidJob) as error:
        if stored(redacted(name, args, kwargs, str(error))) == written:
            return redacted(name, args, kwargs, error.translated)
    except Exception:  # noqa: BLE001 - a row may hold anything: then the error is told as it was written
        return written
    return written
