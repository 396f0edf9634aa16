"""Who did what: entries of the admin's own log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.http import HttpRequest

LONGEST_NAME = 200  # of LogEntry.object_repr


def record(
    request: HttpRequest,
    model: type[Model],
    object_id: Any,
    name: str,
    message: str,
    flag: int = CHANGE,
) -> None:
    """Write that the user did something.

    :param object_id: of the row it was done to; None when it was to many, or to a queue without a row.
    :param name: what that is called.
    :param message: what was done, in a sentence.
    """
    record_many(request, model, [(object_id, name)], message, flag)


def record_many(
    request: HttpRequest,
    model: type[Model],
    objects: Iterable[tuple[Any, str]],
    message: str,
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
            change_message=message.replace("\x00", "\\x00"),
        )
        for object_id, name in objects
    )
