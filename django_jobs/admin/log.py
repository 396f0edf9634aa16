"""Who did what: entries of the admin's own log.

An entry is written as Django writes its own, as JSON that says which fields were changed: so Django, and whoever else
reads the log, shows it in the language of the reader. Beside that it has what was done in the room's own words, by the
text and what is filled in, which the room's pages of what operators did translate when they show it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.http import HttpRequest

from django_jobs.operations import Result
from django_jobs.states import state_text
from django_jobs.texts import Grouped, Text, joined, ntext as ngettext, of_recipe, text as _

LONGEST_NAME = 200  # of LogEntry.object_repr
NAMED = 5  # ids of jobs that were left as they are
_OURS = "django_jobs"


def record(
    request: HttpRequest,
    model: type[Model],
    object_id: Any,
    name: str,
    message: Text,
    fields: Sequence[str] = (),
    flag: int = CHANGE,
) -> None:
    """Write that the user did something.

    :param object_id: of the row it was done to; None when it was to many, or to a queue without a row.
    :param name: what that is called.
    :param message: what was done, in a sentence.
    :param fields: what it changed, as the model calls it in English.
    """
    record_many(request, model, [(object_id, name)], message, fields, flag)


def record_many(
    request: HttpRequest,
    model: type[Model],
    objects: Iterable[tuple[Any, str]],
    message: Text,
    fields: Sequence[str] = (),
    flag: int = CHANGE,
) -> None:
    """Write that the user did the same to several rows, in one statement.

    :param objects: the id, and what it is called, of each.
    """
    assert request.user.pk is not None  # the admin lets nobody else in
    content_type = ContentType.objects.get_for_model(model, for_concrete_model=False)
    LogEntry.objects.bulk_create(
        LogEntry(
            user_id=request.user.pk,
            content_type=content_type,
            object_id=None if object_id is None else str(object_id),
            object_repr=name.replace("\x00", "\\x00")[:LONGEST_NAME],
            action_flag=flag,
            change_message=_stored(model, name, message, fields, flag),
        )
        for object_id, name in objects
    )


def _stored(model: type[Model], name: str, message: Text, fields: Sequence[str], flag: int) -> str:
    django: dict[str, Any] = {"changed": {"fields": list(fields)}}
    if flag == DELETION:
        django = {"deleted": {"name": str(model._meta.model_name), "object": name}}
    # Escapes keep a NUL, and half a character, from being refused by PostgreSQL.
    return json.dumps([{**django, _OURS: message.recipe}])


def numbers_of(result: Result) -> Text:
    """How many jobs were done, and how many were not and why."""
    parts: list[Text] = [ngettext("%(count)s job done", "%(count)s jobs done", Grouped(result.done))]
    for why, count in result.skipped.items():
        ids = ", ".join(map(str, result.skipped_ids[why][:NAMED])) + (", …" if count > NAMED else "")
        parts.append(_("not %(count)s: %(why)s (%(ids)s)", count=Grouped(count), why=why, ids=ids))
    return Text("%(parts)s.", {"parts": joined(*parts, by="; ")})


def emptied(count: int, states: Iterable[str]) -> Text:
    """That jobs of a queue were deleted."""
    return ngettext(
        "Deleted %(count)s job of the queue: %(states)s.",
        "Deleted %(count)s jobs of the queue: %(states)s.",
        Grouped(count),
        states=joined(*map(state_text, states), by=", "),
    )


def message_of(entry: LogEntry) -> str:
    """What was done, in the active language; of an entry that is not the room's, as Django shows it."""
    try:
        (message,) = json.loads(entry.change_message)
        made = of_recipe(message[_OURS])
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        made = None
    if made is not None:
        return made.translated()
    return entry.get_change_message()


def told(entries: Iterable[LogEntry]) -> list[LogEntry]:
    """Entries that say in the room's words what was done, where a template asks them as it asks Django's."""
    shown = list(entries)
    for entry in shown:
        text = message_of(entry)
        entry.get_change_message = partial(str, text)  # type: ignore[method-assign]
    return shown
