"""The statements of operators' tools, for many jobs at once: find, change, delete. A part of the store's contract."""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from django_jobs.store.answers import Updated
from django_jobs.store.part import StorePart
from django_jobs.store.rows import ARGS, ID, JOB_COLUMNS, KWARGS, JobRow
from django_jobs.store.selecting import (
    LOOK,
    LOOK_LIMIT,
    MOST,
    Criteria,
    Found,
    Position,
    Searched,
    found,
    route,
    searched,
    tag_text,
)
from django_jobs.store.statements import statement

_WIDTH = len(JOB_COLUMNS)

# Bytes of arguments, as stored, up to which a list reads them.
GLANCE = 20_000


class BulkStatements(StorePart):
    """What :class:`~django_jobs.store.base.Store` has for many jobs at once."""

    def update(
        self,
        ids: Sequence[int],
        queue_name: str | None = None,
        priority: int | None = None,
        run_after: dt.datetime | None = None,
        delay: float | None = None,
        max_attempts: int | None = None,
        now: dt.datetime | None = None,
    ) -> list[Updated]:
        """Change what waiting jobs wait for and where; None leaves it.

        :param run_after: when it may run, or ``delay`` seconds from now.
        :returns: all that exist, as they now are. One that is not waiting is not changed, nor one that would have no
            attempt left.
        """
        rows = self._run(
            "update",
            now,
            ids=self._ids(sorted(set(ids))),
            queue_name=queue_name,
            priority=priority,
            max_attempts=max_attempts,
            **self._when(run_after, delay, now),
        )
        return [
            Updated(JobRow(row[:_WIDTH]), bool(row[_WIDTH])) for row in sorted(rows, key=lambda row: row[ID])
        ]

    @abstractmethod
    def _when(
        self, run_after: dt.datetime | None, delay: float | None, now: dt.datetime | None
    ) -> dict[str, Any]:
        """``run_after``, or ``delay`` seconds from now, in the way this database's statements take it."""

    def edit(
        self,
        job: JobRow,
        args: str | None = None,
        kwargs: str | None = None,
        queue_name: str | None = None,
        priority: int | None = None,
        run_after: dt.datetime | None = None,
        max_attempts: int | None = None,
        now: dt.datetime | None = None,
    ) -> JobRow | None:
        """Change one waiting job; None leaves it.

        :param job: as it was when the change was thought of.
        :param args: the arguments, encoded, as ``kwargs``.
        :returns: the job as it now is; None if it no longer waits, or has other arguments by now.
        """
        rows = self._run(
            "edit",
            now,
            id=job.id,
            seen_args=job.values[ARGS],
            seen_kwargs=job.values[KWARGS],
            args=args,
            kwargs=kwargs,
            queue_name=queue_name,
            priority=priority,
            run_after=self._given(run_after),
            max_attempts=max_attempts,
        )
        return JobRow(rows[0][:_WIDTH]) if rows else None

    def delete(
        self,
        ids: Iterable[int],
        state: str | None = None,
        now: dt.datetime | None = None,
        whole_rows: bool = True,
    ) -> list[JobRow]:
        """Delete jobs that don't run.

        :param state: delete only what has ended in it, and no longer holds its unique key.
        :param whole_rows: whether the rows that come back are whole; else they have their id alone.
        :returns: the jobs that were deleted, as they were.
        """
        parameters = {"now": self._time(now), "ids": self._ids(sorted(ids)), "state": state}
        rows = self._run_with("delete", parameters, whole_rows)
        if whole_rows:
            rows = [row[:_WIDTH] for row in rows]
        return sorted((JobRow(row) for row in rows), key=lambda job: job.values[ID])

    def select(
        self,
        criteria: Criteria,
        after: Position | None = None,
        look: int = LOOK,
        most: int = MOST,
        ids: Sequence[int] | None = None,
        now: dt.datetime | None = None,
    ) -> Found:
        """Find jobs, in the order of the index that fits (:func:`~django_jobs.store.selecting.route`).

        :param after: where the search has got to, :attr:`Found.end` of the call before.
        :param look: how many rows to look at, at most.
        :param most: how many to find, at most.
        :param ids: look at these only, all at once.
        """
        name, start = route(criteria)
        if ids is not None:
            name, look, most = (
                "select_given",
                len(ids) + 1,
                len(ids) + 1,
            )  # never all of them: there is no more
        parameters = self._search(criteria, start if after is None else after, look, most, now)
        rows = self._run_with(name, {**parameters, "ids": self._ids(() if ids is None else sorted(ids))})
        return found(rows, criteria.tag, look, most)

    def search(
        self,
        criteria: Criteria,
        argument: str | None,
        after: Position | None = None,
        look: int = LOOK,
        most: int = MOST,
        now: dt.datetime | None = None,
    ) -> Searched:
        """Find the jobs of :meth:`select` that have a text somewhere in their arguments, as JSON; count them, without.

        :param look: how many rows to look at, at most.
        :param most: in how many that match the criteria to search, at most.
        """
        name, start = route(criteria)
        parameters = self._search(criteria, start if after is None else after, look, most, now)
        parameters["argument"] = argument
        rows = self.session.fetch(statement(self.vendor, name, ending="searched"), parameters)
        return searched(rows, look, most)

    def _search(
        self, criteria: Criteria, position: Position, look: int, most: int, now: dt.datetime | None
    ) -> dict[str, Any]:
        assert look <= LOOK_LIMIT
        return {
            **self._criteria(criteria, now),
            "now": self._time(now),
            "after_rank": position.rank,
            **self._from(position),
            "after_queue": position.queue_name,
            "look": look,
            "most": most,
        }

    def _criteria(self, criteria: Criteria, now: dt.datetime | None) -> dict[str, Any]:
        age = criteria.finished_for
        return {
            "state": criteria.state,
            "queue_name": criteria.queue_name,
            "name": criteria.name,
            "error_class": criteria.error_class,
            "claimed_by": criteria.worker_id,
            "created_before": self._given(criteria.created_before),
            "created_after": self._given(criteria.created_after),
            "finished_for": None if age is None else self._before(now, age),
            "tag": tag_text(criteria.tag),
            "finished_after": self._given(criteria.finished_after),
            "priority": criteria.priority,
            "unique_key": criteria.unique_key,
            "word": criteria.word,
            "word_as_tag": tag_text(criteria.word),
        }

    def glance(self, ids: Sequence[int], most: int = GLANCE) -> list[JobRow]:
        """The jobs with these ids as a list shows them, in the order of their ids.

        Results and errors are left out, and a mark stands in the place of arguments that are larger than ``most``.
        """
        rows = self._run_with("glance", {"ids": self._ids(ids), "most": most})
        return [JobRow(row) for row in rows]

    def select_expired(
        self,
        state: str,
        older_than: float,
        queue_name: str | None = None,
        other_than: Sequence[str] = (),
        after: Position | None = None,
        look: int = MOST,
        now: dt.datetime | None = None,
    ) -> Found:
        """Find jobs to purge: those that ended in ``state`` ``older_than`` seconds ago or earlier, the oldest first.

        :param queue_name: of this queue only.
        :param other_than: not of these queues.
        :param after: where the search has got to.
        :param look: how many rows to look at, at most.
        """
        position = after or Position(0, "first", 0)
        rows = self._run(
            "select_expired",
            now,
            state=state,
            older_than=self._before(now, older_than),
            queue_name=queue_name,
            other_than=self._texts(other_than),
            **self._from(position),
            look=look,
        )
        last = next((Position(0, str(row[1]), row[2]) for row in rows if row[0] is None), None)
        return Found([Position(0, None, row[0]) for row in rows if row[0] is not None], last)
