"""What all parts of the contract stand on: the session, and how parameters are written."""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django.db import OperationalError

from django_jobs.store.rows import ID, JOB_COLUMNS, JobRow
from django_jobs.store.selecting import Position
from django_jobs.store.sessions import Session
from django_jobs.store.statements import statement

_WIDTH = len(JOB_COLUMNS)
# How often a statement is sent again after a deadlock.
DEADLOCKS = 3


class StorePart(ABC):
    """Runs statements of ``sql/<vendor>/`` on a session; each database has its own way to write their parameters."""

    vendor: str

    def __init__(self, session: Session, notify: bool = True) -> None:
        self.session = session
        self.notify = notify

    # -- how parameters are written --------------------------------------------------------------------------------

    @abstractmethod
    def _time(self, now: dt.datetime | None) -> Any: ...

    @abstractmethod
    def _after(self, now: dt.datetime | None, seconds: float) -> Any:
        """``seconds`` after ``now``, in the way this database's statements take it."""

    @abstractmethod
    def _before(self, now: dt.datetime | None, seconds: float) -> Any:
        """``seconds`` before ``now``, in the way this database's statements take it."""

    @abstractmethod
    def _ids(self, ids: Iterable[int]) -> str: ...

    @abstractmethod
    def _texts(self, texts: Sequence[str]) -> str: ...

    @abstractmethod
    def _given(self, moment: dt.datetime | None) -> str | None:
        """A given moment as a parameter; None stays None."""

    # How "first" and "last", the ends of time, are written, and what comes before all that a row may hold instead.
    _limits: ClassVar[dict[str | None, Any]]

    def _from(self, position: Position) -> dict[str, Any]:
        """The parameters of a statement that goes on after a position, by time and id."""
        return {
            "after_moment": self._limits.get(position.moment, position.moment),
            "after_id": position.id,
        }

    # -- statements ------------------------------------------------------------------------------------------------

    def _run(self, name: str, now: dt.datetime | None, /, **parameters: Any) -> list[tuple[Any, ...]]:
        return self._run_with(name, {"now": self._time(now), "notify": self.notify, **parameters})

    def _run_with(
        self, name: str, parameters: dict[str, Any], whole_rows: bool = True
    ) -> list[tuple[Any, ...]]:
        chosen = statement(self.vendor, name, whole_rows)
        for _ in range(DEADLOCKS):
            try:
                return self.session.fetch(chosen, parameters)
            except OperationalError as error:
                # Rows are locked in the order of ids and keys are taken in theirs, but a retry does both. Alone in its
                # transaction, a statement that was ended for that has left nothing behind, and may be sent again.
                if not self.is_deadlock(error) or self.session.in_transaction:
                    raise
        return self.session.fetch(chosen, parameters)

    def is_deadlock(self, error: Exception) -> bool:
        """Whether the database ended a statement since it and another one waited for each other."""
        return False

    def _jobs(self, rows: list[tuple[Any, ...]]) -> list[JobRow]:
        return sorted((JobRow(row[:_WIDTH]) for row in rows), key=lambda job: job.values[ID])
