"""Which jobs a page is about, as its address says it: a tab, filters, a search, and where the list has got to."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy as _

from django_jobs.lengths import parse_length
from django_jobs.operations import Filter
from django_jobs.operations.filters import STATES
from django_jobs.options import EARLIEST, LATEST
from django_jobs.states import FINISHED
from django_jobs.templatetags.django_jobs_admin import state_word
from django_jobs.texts import Text, translated, words_of

# What is offered; an address may say any length of time, or a moment.
SINCE = (
    ("", _("any time")),
    ("15m", _("15 minutes")),
    ("1h", _("1 hour")),
    ("6h", _("6 hours")),
    ("24h", _("24 hours")),
    ("7d", _("7 days")),
    ("30d", _("30 days")),
)
ARGUMENTS = "arguments"
# The filters of the form, and what they are called in messages.
FILTERS = {
    "queue": _("queue"),
    "name": _("name"),
    "worker": _("worker"),
    "priority": _("priority"),
    "since": _("since"),
    "error": _("error"),
    "tag": _("tag"),
    "key": _("unique key"),
}
# As the fields of a filter are called on the page.
FIELDS = {
    "queue_name": FILTERS["queue"],
    "name": FILTERS["name"],
    "worker_id": FILTERS["worker"],
    "priority": FILTERS["priority"],
    "error_class": FILTERS["error"],
    "unique_key": FILTERS["key"],
    "word": _("search"),
}
MOST_TRAIL = 50  # pages whose places are kept, to go back to


class JobQuery:
    """The query of a list of jobs.

    :param data: of the address, or of a form that repeats it.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.errors: list[str] = []
        self.now = dt.datetime.now(dt.UTC)
        state = _text(data, "state")
        self.state = state if state in STATES else ""
        if state and not self.state:
            self.errors.append(gettext("There is no state “%(value)s”.") % {"value": state[:50]})
        self.values = {name: value for name in FILTERS if (value := _text(data, name))}
        self.search = _text(data, "q")
        self.place = ARGUMENTS if _text(data, "in") == ARGUMENTS else ""
        self.after = _text(data, "after") or None
        self.trail = [place for place in _text(data, "trail").split("!") if place] if self.after else []
        self._filter: Filter | None = None
        try:
            self._filter = self._make()
        except ValueError as error:  # an InvalidFilter is one, too
            self.errors.append(_told(error))

    # -- what is meant ---------------------------------------------------------------------------------------------

    @property
    def filter(self) -> Filter:
        """The jobs that are meant, but for what is searched in their arguments. Not to be asked for with errors."""
        assert self._filter is not None
        return self._filter

    @property
    def is_valid(self) -> bool:
        """Whether the address can be meant."""
        return not self.errors

    @property
    def searches_arguments(self) -> bool:
        """Whether jobs are searched by what is in their arguments."""
        return bool(self.search) and self.place == ARGUMENTS

    @cached_property
    def id(self) -> int | None:
        """The id that is searched for, if the search can be one."""
        text = self.search.removeprefix("#")
        is_id = text.isascii() and text.isdigit() and len(text) < 19
        return int(text) if is_id and self.place != ARGUMENTS else None

    @property
    def is_filtered(self) -> bool:
        """Whether there is more than a tab."""
        return bool(self.values or self.search)

    def _make(self) -> Filter:
        if self.id is not None:
            return Filter(ids=[self.id])  # whatever state it is in
        since = self._moment()
        finished = self.state in FINISHED
        return Filter(
            state=self.state or None,
            queue_name=self.values.get("queue"),
            name=self.values.get("name"),
            error_class=self.values.get("error"),
            tag=self.values.get("tag"),
            unique_key=self.values.get("key"),
            worker_id=self._whole("worker"),
            priority=self._whole("priority"),
            finished_after=since if finished else None,
            created_after=None if finished else since,
            word=self.search or None if self.place != ARGUMENTS else None,
        )

    def _whole(self, name: str) -> int | None:
        text = self.values.get(name)
        if text is None:
            return None
        digits = text[1:] if text[:1] in "+-" else text
        if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
            raise ValueError(
                gettext("“%(value)s” is no whole number (%(filter)s).")
                % {"value": text[:50], "filter": FILTERS[name]}
            )
        return -int(digits) if text[0] == "-" else int(digits)

    def _moment(self) -> dt.datetime | None:
        text = self.values.get("since")
        if text is None:
            return None
        moment = self._parsed(text)
        if moment is None:
            raise ValueError(
                gettext("“%(value)s” is no length of time, such as 90s, 15m, 12h or 7d, and no moment.")
                % {"value": text[:50]}
            )
        if not EARLIEST <= moment <= LATEST:
            raise ValueError(
                gettext("“%(value)s” does not lie between the years 1970 and 9000.") % {"value": text[:50]}
            )
        return moment

    def _parsed(self, text: str) -> dt.datetime | None:
        length = parse_length(text)
        if length is not None:
            return self.now - length
        try:
            moment = parse_datetime(text)
            if moment is not None and timezone.is_naive(moment):
                moment = timezone.make_aware(moment)
            # As it is compared: at the ends of the calendar a zone can lead out of it.
            return None if moment is None else moment.astimezone(dt.UTC)
        except (ValueError, OverflowError):
            return None

    # -- in an address ---------------------------------------------------------------------------------------------

    def pairs(self, **changes: Any) -> list[tuple[str, str]]:
        """The query's names and values, without where the list has got to; None or empty leaves one out."""
        given = {
            "state": self.state,
            **self.values,
            "q": self.search,
            "in": self.place if self.search else "",
        }
        return [(name, str(value)) for name, value in {**given, **changes}.items() if value not in (None, "")]

    def address(self, **changes: Any) -> str:
        """The query as it stands in an address, with a question mark before it."""
        pairs = self.pairs(**changes)
        return f"?{urlencode(pairs, errors='replace')}" if pairs else "?"

    def next_page(self, after: str) -> str:
        """The address of the page that begins at a place."""
        trail = [*self.trail, self.after or "-"][-MOST_TRAIL:]
        return self.address(after=after, trail="!".join(trail))

    def previous_page(self) -> str | None:
        """The address of the page before, as far as the way is known; None on the first."""
        if self.after is None:
            return None
        *trail, last = self.trail or ["-"]
        return self.address() if last == "-" else self.address(after=last, trail="!".join(trail))

    def tab(self, state: str) -> str:
        """The address of another tab, with the same filters."""
        return self.address(state=state)

    def describe(self) -> str:
        """The jobs that match, in words."""
        parts = []
        if self.id is not None:
            return gettext("the job %(id)d") % {"id": self.id}
        if self.state:
            parts.append(gettext("state %(value)s") % {"value": state_word(self.state)})
        parts += [f"{FILTERS[name]} {value}" for name, value in self.values.items()]
        if self.searches_arguments:
            parts.append(gettext("with “%(value)s” in their arguments") % {"value": self.search})
        elif self.search:
            parts.append(gettext("with “%(value)s” as name, key or tag") % {"value": self.search})
        return ", ".join(str(part) for part in parts) if parts else gettext("all jobs there are")


def _told(error: ValueError) -> str:
    """Why a filter is refused, with its field as the page calls it."""
    words = words_of(error)
    if isinstance(words, Text):
        values = {
            name: FIELDS.get(value, value) if name in ("field", "where") else value
            for name, value in words.values.items()
        }
        words = Text(words.template, values, words.plural, words.number)
    return translated(words)


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    return value.strip() if isinstance(value, str) else ""
