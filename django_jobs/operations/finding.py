"""Reading jobs: one, a page of those that match, those that name something."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from django.db.models import Model

from django_jobs import limits
from django_jobs.databases import jobs_database
from django_jobs.operations.filters import Filter, InvalidFilter, as_filter
from django_jobs.serialization import find_problem, parse_timestamp, shown
from django_jobs.states import State
from django_jobs.store import Store, django_store
from django_jobs.store.rows import JobRow
from django_jobs.store.selecting import LOOK, MOST, Criteria, Found, Position
from django_jobs.texts import text as _

# The newest jobs among which those with a tag are looked for: tags have no index, which every insert would pay for.
TAG_WINDOW = 100_000
# One page looks at this many rows at most; what it has found by then is the page.
PAGE_LOOKS = 100_000

# What can stand in a Position: it comes back from a URL, and a database refuses other numbers and texts.
_LARGEST = 2**63 - 1
_HIGHEST_RANK = 1000  # but of running jobs, where it is the worker
# PostgreSQL has no offsets of sixteen hours or more.
_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?([+-](0\d|1[0-5])(:\d\d){0,2})?", re.ASCII
)


class Page(NamedTuple):
    """Some of the jobs that match, in order. ``next``: what to pass as ``after`` for those behind; None: no more.

    A page may be short, or empty, and have a ``next`` all the same: it looks at a bounded number of jobs.
    """

    jobs: list[JobRow]
    next: str | None


def get(job_id: int, *, using: str | None = None) -> JobRow | None:
    """The job as it is now, or None if there is none with this id.

    :raises InvalidFilter: when ``job_id`` is no whole number.
    """
    given: Any = job_id
    if not isinstance(given, int) or isinstance(given, bool):
        raise InvalidFilter(f"job_id is {shown(given)}; the id of a job is a whole number.")
    if not 0 < job_id <= _LARGEST:
        return None
    jobs = _knowing(using, django_store(jobs_database(using)).get([job_id]))
    return jobs[0] if jobs else None


def _check_whole(name: str, value: Any, lowest: int, highest: int | None = None) -> None:
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or value < lowest
        or (highest is not None and value > highest)
    ):
        most = " or more" if highest is None else f" to {highest}"
        raise InvalidFilter(f"{name} is {shown(value)}; it must be a whole number, {lowest}{most}.")


def _knowing(using: str | None, jobs: list[JobRow]) -> list[JobRow]:
    """Let jobs know the database that was asked for, so that ``refresh()`` and ``wait()`` ask there too."""
    if using is not None:
        for job in jobs:
            job.using = using
    return jobs


def list_jobs(
    jobs: Filter | int | Iterable[int] = Filter(),  # noqa: B008 - it is frozen
    *,
    limit: int = 100,
    after: str | None = None,
    looks: int | None = None,
    whole: bool = True,
    using: str | None = None,
) -> Page:
    """One page of the jobs that match, by keyset: as quick for the thousandth page as for the first.

    In the order of the index that serves: finished jobs as they ended, the last first; available ones as they will be
    claimed; scheduled ones as they are due; running ones by worker; with no state, and pending ones, the newest first.

    :param limit: how many jobs, 1000 at most.
    :param after: :attr:`Page.next` of the page before.
    :param looks: how many jobs are looked at, about: when few of them match, the page is shorter, and has a ``next``.
        100,000 by default.
    :param whole: False for jobs as a list shows them: without results and errors, and without very large arguments.
    :raises InvalidFilter: when ``after`` is not that, or ``limit`` is out of range.
    """
    wanted = as_filter(jobs, using)
    _check_whole("limit", limit, 1, MOST)
    store = django_store(jobs_database(using))
    looks = PAGE_LOOKS if looks is None else looks
    skip, position = (0, None) if after is None else parse_place(after)
    if wanted.ids is not None:
        return _page_of_ids(store, wanted, limit, position, using, whole)
    ids: list[int] = []
    looked = 0
    next_: str | None = None
    for number, criteria in enumerate(wanted.legs()):
        if number < skip:
            continue
        check_place(criteria, position, after)
        while True:
            # The first jobs are likely to match.
            look = min(LOOK, max(looks - looked, 1)) if ids or looked else max(limit, 100)
            found = store.select(criteria, position, look=look, most=limit - len(ids))
            ids += found.ids
            looked += look
            position = found.end
            if position is not None and (len(ids) >= limit or looked >= looks):
                next_ = place_text(number, position)
                break
            if position is None:
                break
        if next_ is not None:
            break
        if len(ids) >= limit or looked >= looks:
            next_ = place_text(number + 1, None)
            break
    return Page(_in_order(store, ids, using, whole), next_)


def _page_of_ids(
    store: Store, wanted: Filter, limit: int, position: Position | None, using: str | None, whole: bool
) -> Page:
    given = [id_ for id_ in wanted.id_list or () if position is None or id_ > position.id]
    chunk = given[:limit]
    ids = [id_ for found in matching_ids(store, wanted, chunk) for id_ in found.ids]
    more = place_text(0, Position(0, None, chunk[-1])) if len(given) > limit else None
    return Page(_in_order(store, ids, using, whole), more)


def matching_ids(
    store: Store, wanted: Filter, chunk: Sequence[int], finished_for: float | None = None
) -> Iterator[Found]:
    """Those of the ids that match the rest of the filter."""
    for state in [None] if wanted.state is None else wanted.states:
        yield store.select(wanted.criteria._replace(state=state, finished_for=finished_for), ids=chunk)


def _in_order(store: Store, ids: list[int], using: str | None, whole: bool = True) -> list[JobRow]:
    if not ids:
        return []
    jobs = {job.id: job for job in (store.get(ids) if whole else store.glance(ids))}
    return _knowing(using, [jobs[id_] for id_ in ids if id_ in jobs])  # one may be gone by now


def failed(*, limit: int = 100, using: str | None = None) -> list[JobRow]:
    """The dead letters, the last one first, ``limit`` (1000 at most) of them."""
    return list_jobs(Filter(state=State.FAILED), limit=limit, using=using).jobs


def tagged(
    what: str | Model, *, limit: int = 100, window: int = TAG_WINDOW, using: str | None = None
) -> list[JobRow]:
    """The jobs with a tag, the newest first, from among the ``window`` newest jobs.

    Tags have no index, since each insert would pay for it; so they are searched for in a bounded number of jobs.

    :param what: the tag, or a model instance: ``tagged(order)`` are the jobs of that order.
    :param limit: how many, at most.
    :param window: how many jobs, the newest ones, are looked at.
    :raises InvalidFilter: for what can be no tag, limit or window.
    """
    _check_whole("limit", limit, 0)
    _check_whole("window", window, 0)
    if what is None:  # to a filter, that is any tag
        raise InvalidFilter("The tag None must be a string or a model instance.")
    criteria = Filter(tag=what).criteria
    store = django_store(jobs_database(using))
    ids: list[int] = []
    position: Position | None = None
    while window > 0 and len(ids) < limit:
        found = store.select(criteria, position, look=min(LOOK, window), most=min(MOST, limit - len(ids)))
        ids += found.ids
        # A search that stopped at what it had found has looked at less; then the limit ends it.
        window -= LOOK
        position = found.end
        if position is None:
            break
    return _in_order(store, ids, using)


def place_text(number: int, position: Position | None) -> str:
    """A place in a search as text: which of its legs, and where in it."""
    if position is None:
        return f"{number}"
    moment = "" if position.moment is None else position.moment.replace(" ", "T")
    return f"{number}_{position.rank}_{position.id}_{moment}_{position.queue_name}"


def parse_place(after: str) -> tuple[int, Position | None]:
    """What :func:`place_text` wrote. Raises InvalidFilter for what it can't have written."""
    try:
        number, *rest = after.split("_", 4)
        if not rest:
            return _leg(number), None
        rank, id_, moment, queue_name = rest
        assert not moment or _MOMENT.fullmatch(moment)
        parse_timestamp(moment or None)
        assert len(queue_name) <= limits.QUEUE_LENGTH
        assert find_problem(queue_name, "queue_name") is None
        position = Position(int(rank), moment.replace("T", " ") or None, int(id_), queue_name)
        assert -_LARGEST <= position.rank <= _LARGEST
        assert 0 <= position.id <= _LARGEST
        return _leg(number), position
    except (ValueError, OverflowError, AttributeError, TypeError, AssertionError):
        raise _no_place(after) from None


def check_place(criteria: Criteria, position: Position | None, after: str | None) -> None:
    """Raise InvalidFilter for a place that is another search's."""
    if position is not None and criteria.state != State.RUNNING and abs(position.rank) > _HIGHEST_RANK:
        raise _no_place(after)


def _no_place(after: str | None) -> InvalidFilter:
    return InvalidFilter(
        _("after is %(value)s; pass what the page before said as its next.", value=shown(after))
    )


def _leg(number: str) -> int:
    assert number.isascii()
    assert number.isdigit()
    assert len(number) < 5
    return int(number)
