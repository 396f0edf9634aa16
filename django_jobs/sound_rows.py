"""Rows of the ORM in which each column is of its kind, whatever somebody's SQL has written there.

Pages, commands and operations read the small tables by this, so that one bad row is one bad row: it is shown with what
can be shown, and the others beside it as they are. (Jobs have rows of their own: :mod:`django_jobs.store.rows`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.conf import settings
from django.db import connections, models

from django_jobs.serialization import LAST_MOMENT
from django_jobs.stored_values import real, text, whole

Row = TypeVar("Row", bound=models.Model)


def sound(query: models.QuerySet[Any, Row]) -> list[Row]:
    """The rows of a query. What is no value of its column is the column's default, or nothing: 0, no text, the end of
    the calendar."""
    with _texts_in_any_encoding(query.db):
        rows = list(query)
    for row in rows:
        _mend(row)
    return rows


def sound_one(query: models.QuerySet[Any, Row]) -> Row | None:
    """The row of a query that finds one at most, as :func:`sound` gives it."""
    rows = sound(query)
    return rows[0] if rows else None


# The first of these that a field is one of says what its values are.
_KINDS: tuple[tuple[type[models.Field[Any, Any]], Callable[[Any], Any]], ...] = (
    (models.BooleanField, bool),
    (models.IntegerField, whole),
    (models.FloatField, real),
    (models.CharField, text),
    (models.TextField, text),
)


def _mend(row: models.Model) -> None:
    values = row.__dict__
    for field in row._meta.concrete_fields:
        name = field.attname
        if name not in values:  # it was not asked for
            continue
        value = values[name]
        if value is not None:
            for kind, mended in _KINDS:
                if isinstance(field, kind):
                    values[name] = mended(value)
                    break
        elif not field.null and isinstance(field, models.DateTimeField):
            values[name] = LAST_MOMENT if settings.USE_TZ else LAST_MOMENT.replace(tzinfo=None)


@contextmanager
def _texts_in_any_encoding(alias: str) -> Iterator[None]:
    """SQLite's driver fails with all rows where one has a text that is not UTF-8."""
    connection = connections[alias]
    if connection.vendor != "sqlite":
        yield
        return
    from django_jobs.store.sqlite_session import tolerant

    connection.ensure_connection()
    driver: Any = connection.connection
    before, driver.text_factory = driver.text_factory, tolerant
    try:
        yield
    finally:
        driver.text_factory = before
