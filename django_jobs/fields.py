"""Model fields that store what the raw statements store, so that the ORM and the worker read alike."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.functions.datetime import TruncBase
from django.utils import timezone

from django_jobs.serialization import (
    FIRST_MOMENT,
    LAST_MOMENT,
    Undecodable,
    decoded,
    encode,
    timestamp_text,
)

if TYPE_CHECKING:
    Field = models.Field[Any, Any]
    DateTimeField = models.DateTimeField[Any, Any]
else:
    Field, DateTimeField = models.Field, models.DateTimeField


class ExactJSONField(Field):
    """JSON that comes back equal to what went in.

    ``jsonb`` (and so Django's ``JSONField``) turns 1e22 into an integer and -0.0 into 0. This field stores the
    text as it was encoded: ``json`` on PostgreSQL, ``text`` on SQLite. Text that is not JSON (written by somebody
    else's SQL) is read as an :class:`~django_jobs.serialization.Undecodable`, so a page can still show it.
    """

    description = "JSON, kept to the letter"
    empty_strings_allowed = False

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "json" if connection.vendor == "postgresql" else "text"

    def get_placeholder(self, value: Any, compiler: Any, connection: BaseDatabaseWrapper) -> str:
        return "%s::json" if connection.vendor == "postgresql" else "%s"

    def get_placeholder_sql(
        self, value: Any, compiler: Any, connection: BaseDatabaseWrapper
    ) -> tuple[str, Any]:
        """What :meth:`get_placeholder` is called from Django 6.1 on."""
        sql, params = compiler.compile(value) if hasattr(value, "as_sql") else ("%s", (value,))
        return (f"{sql}::json" if connection.vendor == "postgresql" else sql), params

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        # As text, else psycopg would decode it and a JSON string could not be told from a document's text.
        if compiler.connection.vendor == "postgresql":
            return f"({sql})::text", params
        return sql, params

    def from_db_value(self, value: str | None, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        return None if value is None else decoded(value)

    def get_prep_value(self, value: Any) -> str | None:
        if value is None:
            return None
        # What could not be read goes back as it was: saving a row must not change it.
        return str(value) if isinstance(value, Undecodable) else encode(value)

    def value_to_string(self, obj: models.Model) -> Any:
        return self.value_from_object(obj)


_FIRST, _LAST = map(timestamp_text, (FIRST_MOMENT, LAST_MOMENT))
# How a moment is selected, by database. On SQLite the date must be one of the calendar, and what follows the seconds a
# fraction or nothing ('+0 days' has it reckoned: else the 30th of February is a date). Numbers sort before texts.
_CLAMPED = {
    "postgresql": (
        "CASE WHEN {column} IS NOT NULL THEN"
        f" LEAST(GREATEST({{column}}, '{_FIRST}+00'::timestamptz), '{_LAST}+00'::timestamptz) END"
    ),
    "sqlite": (
        "CASE WHEN {column} IS NULL THEN NULL"
        f" WHEN {{column}} <= '{_FIRST}' THEN '{_FIRST}' WHEN {{column}} >= '{_LAST}' THEN '{_LAST}'"
        " WHEN replace(substr({column}, 1, 19), 'T', ' ')"
        " = strftime('%%Y-%%m-%%d %%H:%%M:%%S', substr({column}, 1, 19), '+0 days')"
        " AND replace(replace(substr({column}, 20), '+00:00', ''), 'Z', '') NOT GLOB '[^.]*'"
        " AND replace(replace(substr({column}, 21), '+00:00', ''), 'Z', '') NOT GLOB '*[^0-9]*'"
        f" THEN {{column}} ELSE '{_LAST}' END"
    ),
}


class TimestampField(DateTimeField):
    """A moment. On SQLite it is UTC text with six digits after the second, always.

    Django leaves the fraction out when it is zero, and then texts of one moment differ; statements compare texts.

    What somebody's SQL has written there and no datetime can be (PostgreSQL has infinities, SQLite takes anything) is
    read as an end of the calendar, as :func:`~django_jobs.serialization.clamped_timestamp` does: where the database
    is asked for the column, since a driver that meets such a value fails with all the rows that were asked for.
    """

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        # Of columns alone: what an expression makes of them may be dear, or of another type. Nor where rows are
        # grouped: Django would group by this, and PostgreSQL refuses to order by the column itself then.
        if params or not sql.endswith('"') or compiler.query.group_by is not None:
            return sql, params
        form = _CLAMPED.get(compiler.connection.vendor)
        return (form.format(column=sql) if form else sql), params

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        if connection.vendor != "sqlite" or value is None or hasattr(value, "resolve_expression"):
            return super().get_db_prep_value(value, connection, prepared)
        moment = self.to_python(value)
        if timezone.is_naive(moment):
            moment = timezone.make_aware(moment, timezone.get_default_timezone())
        return timestamp_text(moment)

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        # What Django truncated is in the time zone that was asked for already.
        if (
            connection.vendor != "sqlite"
            or not isinstance(value, dt.datetime)
            or isinstance(expression, TruncBase)
        ):
            return value
        moment = value.replace(tzinfo=dt.UTC)
        return moment if settings.USE_TZ else timezone.make_naive(moment, timezone.get_default_timezone())
