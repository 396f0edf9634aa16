"""Which jobs an operation is about."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from django.db.models import Model
from django.utils import timezone

from django_jobs import limits
from django_jobs.databases import jobs_database
from django_jobs.exceptions import InvalidJob
from django_jobs.options import EARLIEST, LATEST
from django_jobs.serialization import find_problem, shown
from django_jobs.states import State
from django_jobs.store.rows import JobRow
from django_jobs.store.selecting import Criteria
from django_jobs.tags import tag_of
from django_jobs.texts import Explained, text as _, words_of

STATES = tuple(str(state) for state in State)
_LARGEST_ID = 2**63 - 1
_TEXTS = {
    "queue_name": limits.QUEUE_LENGTH,
    "name": limits.NAME_LENGTH,
    "error_class": limits.ERROR_CLASS_LENGTH,
    "unique_key": limits.KEY_LENGTH,
    "word": limits.KEY_LENGTH,
}


class InvalidFilter(Explained):
    """A filter that can't be meant; the message names the field, and says what it takes. No SQL has run."""


@dataclass(frozen=True)
class Filter:
    """Which jobs: those for which all of this holds. A field that is not given holds for all.

    :param state: one of the states, or several.
    :param queue_name: the queue.
    :param name: the name of the job function, as the rows have it.
    :param ids: the ids.
    :param error_class: the class of the last error, as ``module.Class``.
    :param tag: one of the job's tags: a string, or a model instance (:func:`~django_jobs.tags.tag_of`).
    :param created_before: a moment, exclusive; aware (naive ones are in the default time zone with ``USE_TZ=False``).
    :param created_after: a moment, inclusive.
    :param worker_id: the worker of its last claim.
    :param finished_after: it ended then or later: a moment, inclusive.
    :param priority: the priority.
    :param unique_key: the unique key, whether it is still held or not.
    :param word: a part of the name, or the whole unique key, or one of the tags.
    :raises InvalidFilter: for a value that no job can have.
    """

    state: str | Iterable[str] | None = None
    queue_name: str | None = None
    name: str | None = None
    ids: Iterable[int] | None = None
    error_class: str | None = None
    tag: str | Model | None = None
    created_before: dt.datetime | None = None
    created_after: dt.datetime | None = None
    worker_id: int | None = None
    finished_after: dt.datetime | None = None
    priority: int | None = None
    unique_key: str | None = None
    word: str | None = None

    def __post_init__(self) -> None:
        self._set("state", None if self.state is None else _states(self.state))
        self._set("ids", None if self.ids is None else _ids(self.ids))
        for field, length in _TEXTS.items():
            self._set(field, checked_text(getattr(self, field), field, length))
        self._set("tag", None if self.tag is None else _tag(self.tag))
        for field in ("created_before", "created_after", "finished_after"):
            self._set(field, checked_moment(getattr(self, field), field))
        if self.worker_id is not None:
            checked_id(self.worker_id, "worker_id")
        if self.priority is not None:
            _priority(self.priority)

    def _set(self, field: str, value: Any) -> None:
        object.__setattr__(self, field, value)

    @property
    def states(self) -> tuple[str, ...]:
        """The states; none for all, and also where none was left."""
        return cast("tuple[str, ...]", self.state or ())

    @property
    def id_list(self) -> tuple[int, ...] | None:
        """The ids, ascending, each once."""
        return cast("tuple[int, ...] | None", self.ids)

    @property
    def is_empty(self) -> bool:
        """Whether it holds for every job."""
        return all(getattr(self, field.name) is None for field in fields(self))

    @property
    def names_ids_alone(self) -> bool:
        """Whether nothing but ids is asked for."""
        return self.ids is not None and all(
            getattr(self, field.name) is None for field in fields(self) if field.name != "ids"
        )

    def within(self, *states: str) -> Filter:
        """The same filter with only those of its states that are among ``states``; none may be left."""
        # No state that is left is not the same as none that was given, which is any.
        chosen = states if self.state is None else tuple(state for state in self.states if state in states)
        return replace(self, state=chosen)

    def describe(self) -> str:
        """In words, for a confirmation."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        parts = [
            f"{name.replace('_', ' ')} {_words(value)}" for name, value in given.items() if value is not None
        ]
        return " and ".join(parts) if parts else "any jobs at all"

    @property
    def criteria(self) -> Criteria:
        """What the store compares, but for states and ids."""
        return Criteria(
            queue_name=self.queue_name,
            name=self.name,
            error_class=self.error_class,
            worker_id=self.worker_id,
            created_before=self.created_before,
            created_after=self.created_after,
            tag=cast("str | None", self.tag),
            finished_after=self.finished_after,
            priority=self.priority,
            unique_key=self.unique_key,
            word=self.word,
        )

    def legs(self) -> Iterator[Criteria]:
        """The searches that this takes, one after the other, each by an index where there is one."""
        common = self.criteria
        if self.state is None:
            yield common
        for state in self.states:
            yield common._replace(state=state)


def as_filter(jobs: Any, using: str | None) -> Filter:
    """What an operation was given, as a filter. Raises InvalidFilter.

    :param using: what the operation was given as the database.
    """
    if isinstance(jobs, Filter):
        return jobs
    if isinstance(jobs, int | JobRow):
        return Filter(ids=[_id_of(jobs, using)])
    if isinstance(jobs, str) or not isinstance(jobs, Iterable):
        raise InvalidFilter(f"{shown(jobs)} names no jobs; pass a Filter, an id or a job, or several.")
    return Filter(ids=[_id_of(each, using) for each in jobs])


def _id_of(job: Any, using: str | None) -> Any:
    if not isinstance(job, JobRow):
        return job
    known, asked = getattr(job, "using", None), jobs_database(using)
    # Another job has that id there. A row that says nothing may be of any: a worker's, or one that a signal brought.
    if known is not None and known != asked:
        raise InvalidFilter(
            f"Job {job.id} is in the database {known!r}, and not in {asked!r}: give using={known!r}."
        )
    return job.id


def _tag(tagged: Any) -> str:
    try:
        return tag_of(tagged)
    except InvalidJob as error:
        raise InvalidFilter(words_of(error)) from None


def _states(state: Any) -> tuple[str, ...]:
    given = [state] if isinstance(state, str) else state
    if not isinstance(given, Iterable):
        raise InvalidFilter(
            f"state is {shown(state)}; it must be one of {', '.join(STATES)}, or several of them."
        )
    # In the order of a job's life, each once.
    wanted = list(given)
    for each in wanted:
        if not isinstance(each, str) or each not in STATES:
            raise InvalidFilter(f"state is {shown(each)}; the states are {', '.join(STATES)}.")
    return tuple(each for each in STATES if each in wanted)


def _ids(ids: Any) -> tuple[int, ...]:
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise InvalidFilter(f"ids is {shown(ids)}; it must be the ids of jobs, in a list.")
    return tuple(sorted({checked_id(each, "ids") for each in ids}))


def checked_id(value: Any, field: str) -> int:
    """A number that ids can be. Raises InvalidFilter."""
    if not isinstance(value, int) or isinstance(value, bool) or not -_LARGEST_ID <= value <= _LARGEST_ID:
        raise InvalidFilter(
            _("%(field)s has %(value)s; an id is a whole number of 64 bits.", field=field, value=shown(value))
        )
    return int.__int__(value)


def _priority(value: Any) -> None:
    lowest, highest = limits.PRIORITY_LOWEST, limits.PRIORITY_HIGHEST
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise InvalidFilter(
            _(
                "%(field)s is %(value)s; it must be a whole number from %(lowest)d to %(highest)d.",
                field="priority",
                value=shown(value),
                lowest=lowest,
                highest=highest,
            )
        )


def checked_text(value: Any, field: str, length: int) -> str | None:
    """A text that a column can hold. Raises InvalidFilter."""
    if value is None:
        return None
    if not isinstance(value, str) or not value or len(value) > length:
        raise InvalidFilter(
            _(
                "%(field)s is %(value)s; it must be a string that is not empty, of %(most)d characters at most.",
                field=field,
                value=shown(value),
                most=length,
            )
        )
    if problem := find_problem(value, field):
        raise InvalidFilter(problem)
    return str.__str__(value)


def checked_moment(value: Any, field: str) -> dt.datetime | None:
    """A moment, aware. Raises InvalidFilter."""
    if value is None:
        return None
    if not isinstance(value, dt.datetime):
        raise InvalidFilter(f"{field} is {shown(value)}; it must be a datetime.")
    if timezone.is_naive(value):
        from django.conf import settings

        if settings.USE_TZ:
            raise InvalidFilter(
                f"{field} is {value!r}, which has no time zone; use django.utils.timezone.now()."
            )
        value = timezone.make_aware(value, timezone.get_default_timezone())
    assert isinstance(value, dt.datetime)
    if not EARLIEST <= value <= LATEST:
        raise InvalidFilter(
            _(
                "%(field)s is %(value)s; it must lie between the years 1970 and 9000.",
                field=field,
                value=repr(value),
            )
        )
    return value


def _words(value: Any) -> str:
    if isinstance(value, tuple):
        shown_few = ", ".join(str(each) for each in value[:5])
        return shown_few if len(value) <= 5 else f"{shown_few} and {len(value) - 5} more"
    return str(value)
