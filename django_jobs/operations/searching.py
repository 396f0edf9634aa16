"""Finding jobs by what is in their arguments, which no index knows: among a bounded number of the newest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from django_jobs import limits
from django_jobs.databases import jobs_database
from django_jobs.operations.counting import Count
from django_jobs.operations.filters import Filter, InvalidFilter
from django_jobs.redaction import HIDDEN, Redactor
from django_jobs.serialization import encode, find_problem, shown
from django_jobs.store import Store, django_store
from django_jobs.store.rows import JobRow
from django_jobs.store.selecting import Criteria, Position, Searched
from django_jobs.texts import text as _

# Of the jobs that match the filter so many are searched, and so many are looked at to find those.
WINDOW = 10_000
LOOKS = 20_000
STEP = 10_000  # looked at by one statement
CHUNK = 200  # rows read at a time

LONGEST_TEXT = 1000
LARGEST = 2**31 - 1  # arguments, in characters: any
_NAMED = re.compile(r"\s*([^\W\d]\w*)\s*=\s*(.*)", re.DOTALL)


class ArgumentMatches(NamedTuple):
    """Jobs with something in their arguments.

    :param jobs: those found, in the order of the list, or their first.
    :param searched: among how many jobs that match the filter they were searched.
    :param more: whether the filter matches more jobs than were searched.
    :param cut: whether more were found than are told.
    """

    jobs: list[JobRow]
    searched: int
    more: bool
    cut: bool


def search_arguments(
    jobs: Filter,
    text: str,
    *,
    limit: int = CHUNK,
    reads: int | None = None,
    whole: bool = True,
    using: str | None = None,
) -> ArgumentMatches:
    """The jobs that match a filter and have a value in their arguments, at any depth.

    Of the jobs that match, the first 10,000 in their order (:func:`list_jobs`) are searched. Values that are hidden
    (``DJANGO_JOBS["REDACT"]``) are not found.

    :param text: a part of a text, or a whole number or word; ``name=value`` for that of one argument or key alone.
    :param limit: how many at most.
    :param reads: how many jobs in whose JSON the text stands are read to see whether it is a value that may be seen.
    :param whole: False for jobs as a list shows them: without results and errors.
    :raises InvalidFilter: for a text that no argument can have, or a filter with ids.
    """
    wanted = Wanted(text)
    given: Any = jobs
    if not isinstance(given, Filter):
        raise InvalidFilter(f"search_arguments() got {shown(given)}; give a Filter.")
    if jobs.ids is not None:
        raise InvalidFilter(_("ids can't be searched by their arguments; give other criteria."))
    store = django_store(jobs_database(using))
    ids, searched, more = _window(
        jobs, lambda criteria, place, look, most: store.search(criteria, wanted.needle, place, look, most)
    )
    found: list[JobRow] = []
    for job in _rows(store, ids[:reads], whole):
        if wanted.is_in(job) and (jobs.tag is None or jobs.tag in _tags(job)):
            if len(found) == limit:
                return ArgumentMatches(found, searched, more, cut=True)
            found.append(job)
    return ArgumentMatches(found, searched, more, cut=reads is not None and len(ids) > reads)


def count_matching(jobs: Filter, *, using: str | None = None) -> Count:
    """How many jobs match: of 20,000 looked at and 10,000 counted, so as a rule of those that a page tells of."""
    store = django_store(jobs_database(using))

    def step(criteria: Criteria, place: Position | None, look: int, most: int) -> Searched:
        if criteria.tag is None:
            return store.search(criteria, None, place, look, most)
        found = store.select(criteria, place, look, most)  # which compares tags exactly
        return Searched([], len(found.ids), found.end)

    _, number, more = _window(jobs, step)
    return Count(number, more)


def _window(
    jobs: Filter, step: Callable[[Criteria, Position | None, int, int], Searched]
) -> tuple[list[int], int, bool]:
    """Search the first jobs that match, step by step: what was found, among how many, and whether there may be more.

    :param step: a search that goes on from a place, with how many it is to look at, and to search, at most.
    """
    ids: list[int] = []
    searched, looks = 0, LOOKS
    for criteria in jobs.legs():
        place: Position | None = None
        while True:
            if looks <= 0 or searched >= WINDOW:
                return ids, searched, True
            found = step(criteria, place, min(STEP, looks), WINDOW - searched)
            ids += found.ids
            searched += found.number
            place = found.end
            # At the end of a state it may have looked at few: there are seven at most.
            looks -= found.number if place is None else STEP
            if place is None:
                break
    return ids, searched, False


def _tags(job: JobRow) -> list[Any]:
    tags: Any = job.tags
    return tags if isinstance(tags, list) else []


def _rows(store: Store, ids: list[int], whole: bool) -> Iterator[JobRow]:
    for first in range(0, len(ids), CHUNK):
        chunk = ids[first : first + CHUNK]
        read = store.get(chunk) if whole else store.glance(chunk, LARGEST)
        rows = {job.id: job for job in read}
        yield from (rows[id_] for id_ in chunk if id_ in rows)


class Wanted:
    """What is looked for in arguments.

    :param text: what somebody wrote.
    :raises InvalidFilter: for what can stand in none.
    """

    def __init__(self, text: Any) -> None:
        if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_TEXT:
            raise InvalidFilter(
                _(
                    "The argument is %(value)s; it must be a text that is not empty, of %(most)d characters at most.",
                    value=shown(text),
                    most=LONGEST_TEXT,
                )
            )
        if problem := find_problem(text, _("The argument")):
            raise InvalidFilter(problem)
        self.text: str = text.strip()
        named = _NAMED.fullmatch(text)
        self.name = named[1] if named and named[2].strip() else None
        self.value = named[2].strip() if named and self.name else self.text
        # As it stands in JSON; the quotes around it may be further away.
        self.needle: str = encode(self.value)[1:-1]

    def is_in(self, job: JobRow) -> bool:
        """Whether an argument that may be seen has it."""
        redactor = Redactor.of(job.name)
        args: Any = redactor.args(job.args)
        kwargs: Any = redactor.kwargs(job.kwargs)
        if self._is_in(args, self.text) or self._is_in(kwargs, self.text):
            return True
        if self.name is None:
            return False
        for place, each in enumerate(args if isinstance(args, list) else ()):
            if redactor.name_of(place) == self.name and self._is_in(each, self.value):
                return True
        return self._is_under(kwargs) or self._is_under(args)

    def _is_in(self, value: Any, text: str, depth: int = 0) -> bool:
        if depth > limits.JSON_DEPTH:
            return False
        if isinstance(value, str):
            return text in value and value != HIDDEN
        if isinstance(value, dict):
            return any(self._is_in(each, text, depth + 1) for each in value.values())
        if isinstance(value, list):
            return any(self._is_in(each, text, depth + 1) for each in value)
        return json.dumps(value) == text  # of what somebody's SQL has written, too: 1e999 is infinite

    def _is_under(self, value: Any, depth: int = 0) -> bool:
        """Whether it stands under the key that was named."""
        if depth > limits.JSON_DEPTH:
            return False
        if isinstance(value, dict):
            return any(
                (key == self.name and self._is_in(each, self.value)) or self._is_under(each, depth + 1)
                for key, each in value.items()
            )
        return isinstance(value, list) and any(self._is_under(each, depth + 1) for each in value)
