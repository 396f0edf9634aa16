"""Finding jobs by what they are, in bounded statements, each of which goes on where the one before it ended."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

from django_jobs.serialization import decode, encode
from django_jobs.states import State

# Rows that one statement looks at, and finds, at most.
LOOK = 5000
MOST = 1000
# More than this the statements look at or count in no case: it stands in those of PostgreSQL.
LOOK_LIMIT = 20_000

_LAST_ID = 2**63 - 1


class Position(NamedTuple):
    """Where a search has got to: the keys of the row that it saw last, in the order that it goes by.

    :param rank: the priority of an available job, the worker of a running one, else 0.
    :param moment: ``run_after`` of a waiting job, ``finalized_at`` of a finished one, as the database writes it.
    :param queue_name: its queue, where the search goes queue by queue.
    """

    rank: int
    moment: str | None
    id: int
    queue_name: str = ""


class Criteria(NamedTuple):
    """What the jobs must be like; None: anything.

    :param finished_for: seconds since it ended, at least.
    :param tag: one of its tags.
    :param finished_after: it ended then or later.
    :param word: a part of its name, or its unique key, or one of its tags.
    """

    state: str | None = None
    queue_name: str | None = None
    name: str | None = None
    error_class: str | None = None
    worker_id: int | None = None
    created_before: dt.datetime | None = None
    created_after: dt.datetime | None = None
    finished_for: float | None = None
    tag: str | None = None
    finished_after: dt.datetime | None = None
    priority: int | None = None
    unique_key: str | None = None
    word: str | None = None


class Found(NamedTuple):
    """Jobs that match, each with its position, and where to go on; ``end`` None: all has been looked at."""

    positions: list[Position]
    end: Position | None

    @property
    def ids(self) -> list[int]:
        """The jobs' ids."""
        return [position.id for position in self.positions]


class Searched(NamedTuple):
    """What a search in arguments found.

    :param ids: of the jobs with the text somewhere in their arguments, in the order of the search; a tag that was asked
        for is only likely to be one of theirs.
    :param number: how many jobs match the criteria, among which they were searched.
    :param end: where to go on; None: all has been looked at.
    """

    ids: list[int]
    number: int
    end: Position | None


def route(criteria: Criteria) -> tuple[str, Position]:
    """The statement that goes by an index which fits, and where it starts."""
    match criteria.state:
        case State.COMPLETED | State.FAILED | State.CANCELLED:
            return "select_finished", Position(0, "last", _LAST_ID)
        case State.RUNNING:
            return "select_running", Position(-1, None, 0)
        case State.SCHEDULED:
            return "select_scheduled", Position(0, "first", 0)
        case State.PENDING:
            return "select_pending", Position(0, None, _LAST_ID)
        case State.AVAILABLE if criteria.queue_name is None:
            return "select_queues", Position(1000, "first", 0)
        case State.AVAILABLE:
            return "select_available", Position(1000, "first", 0)
    return "select_newest", Position(0, None, _LAST_ID)


def found(rows: list[tuple[Any, ...]], tag: str | None, look: int, most: int) -> Found:
    """What a ``select_*`` statement returned."""
    if not rows:
        return Found([], None)
    number, *last = rows[0][:5]
    matching = [(_position(*row[5:9]), row[9]) for row in rows if row[7] is not None]
    positions = [position for position, tags in matching if tag is None or _has_tag(tags, tag)]
    if len(matching) >= most:
        return Found(positions, matching[-1][0])
    if number < look:
        return Found(positions, None)
    return Found(positions, _position(*last))


def searched(rows: list[tuple[Any, ...]], look: int, most: int) -> Searched:
    """What a ``select_*`` statement with the ending ``searched`` returned."""
    if not rows:
        return Searched([], 0, None)
    number, looked, *last = rows[0][:6]
    ids = [row[6] for row in rows if row[6] is not None]
    return Searched(ids, number, _position(*last) if number >= most or looked >= look else None)


def _position(rank: int, moment: Any, id_: int, queue_name: str) -> Position:
    return Position(rank, _text(moment), id_, queue_name)


def _text(moment: Any) -> str | None:
    return None if moment is None else str(moment)


def tag_text(tag: str | None) -> str | None:
    """A tag as it stands in the text of the column."""
    return None if tag is None else encode(tag)


def _has_tag(tags: Any, tag: str) -> bool:
    # The statement has compared texts; '","' stands in many of them.
    try:
        value = decode(tags)
    except (ValueError, TypeError):
        return False
    return isinstance(value, list) and tag in value
