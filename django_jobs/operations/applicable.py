"""To which jobs each operation can be done: what it was given, as a filter of those."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django_jobs.operations.filters import Filter, InvalidFilter, as_filter
from django_jobs.states import FINISHED, WAITING, State
from django_jobs.store.rows import JobRow
from django_jobs.texts import text as _

Jobs = Filter | int | JobRow | Iterable[int | JobRow]


class _Reach(NamedTuple):
    """What an operation can be done to.

    :param states: of those jobs.
    :param by_default: the states it is done to where a filter names none.
    :param about: what it does, with those states in words.
    """

    states: tuple[str, ...]
    by_default: tuple[str, ...]
    about: str


_LIVE = (*WAITING, State.RUNNING.value)
_REACH = {
    "cancel": _Reach(
        _LIVE, _LIVE, _("it is for jobs that have not ended: pending, scheduled, available, running")
    ),
    "retry": _Reach(
        FINISHED, (State.FAILED.value,), _("it is for jobs that have ended: completed, failed, cancelled")
    ),
    "release": _Reach((State.PENDING.value,), (State.PENDING.value,), _("it is for pending jobs")),
    "update": _Reach(WAITING, WAITING, _("it is for jobs that wait: pending, scheduled, available")),
    "run_now": _Reach(
        (State.SCHEDULED.value,), (State.SCHEDULED.value,), _("it is for scheduled jobs, retries among them")
    ),
    "delete": _Reach(
        (*WAITING, *FINISHED),
        (*WAITING, *FINISHED),
        _("it is for jobs that do not run; cancel() stops one that does"),
    ),
    "purge": _Reach(
        FINISHED,
        FINISHED,
        _("it is for jobs that have ended: completed, failed, cancelled; delete() deletes waiting ones, too"),
    ),
}


def applicable(jobs: Jobs, operation: str, using: str | None) -> Filter:
    """What an operation was given, as a filter: without ids, of the states alone that the operation is for.

    With ids it is as it was given, so that the result tells of each job why it was left.

    :param operation: its name, as in ``operations``.
    :param using: what it was given as the database.
    :raises InvalidFilter: for a filter of states alone that the operation can never be done to.
    """
    wanted, reach = as_filter(jobs, using), _REACH[operation]
    if wanted.state is None:
        return wanted if wanted.ids is not None else wanted.within(*reach.by_default)
    narrowed = wanted.within(*reach.states)
    if wanted.states and not narrowed.states:
        raise InvalidFilter(
            _(
                "state is %(states)s; %(operation)s() can't be done to such a job: %(about)s.",
                states=", ".join(wanted.states),
                operation=operation,
                about=reach.about,
            )
        )
    return wanted if wanted.ids is not None else narrowed
