"""Doing something to many jobs: found in bounded batches, done by id, and told one by one.

A filter of states alone that a function can never be done to is refused with :class:`InvalidFilter`; of several states,
it is done to those that it can be done to.

Each function takes ``steps`` and ``after`` as well, for who must answer soon, as a page must: after so many searches
(of a thousand jobs at most, found among 5000) it stops, and :attr:`Result.next` is what to pass as ``after`` to go on.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.db import transaction

from django_jobs import limits
from django_jobs.databases import jobs_database
from django_jobs.exceptions import InvalidJob
from django_jobs.operations.applicable import Jobs, applicable
from django_jobs.operations.filters import Filter, InvalidFilter
from django_jobs.operations.finding import check_place, matching_ids, parse_place, place_text
from django_jobs.operations.results import Result
from django_jobs.options import check_queue_name, check_run_after, check_whole
from django_jobs.serialization import shown
from django_jobs.states import FINISHED, WAITING, State, state_text
from django_jobs.store import Store, django_store
from django_jobs.store.rows import JobRow
from django_jobs.store.selecting import MOST, Criteria
from django_jobs.store.statistics import record_ended
from django_jobs.texts import ntext as ngettext, text as _

# Why a job was left as it is.
GONE = _("there is no such job")
NO_MATCH = _("it does not match, or is not there")
KEY_IS_HELD = _("another job holds its unique key")
HOLDS_KEY = _("it holds its unique key")


def cancel(
    jobs: Jobs, *, steps: int | None = None, after: str | None = None, using: str | None = None
) -> Result:
    """Cancel jobs: waiting ones at once, running ones by request, whose handler is told.

    :param jobs: a filter, an id or a job, or several. A filter without states: all that have not ended.
    """
    wanted = applicable(jobs, "cancel", using)

    def do(store: Store, ids: list[int], result: Result) -> list[JobRow]:
        answers = store.cancel_each(ids)
        ended = [job for job, at_once in answers if at_once]
        # Not within the caller's transaction: the rows of statistics that it wrote would be locked until it ends.
        transaction.on_commit(lambda: record_ended(store, ended), using=jobs_database(using), robust=True)
        for job, _at_once in answers:
            if job.state == State.CANCELLED or job.cancel_requested_at is not None:
                result.did(job.id)
            else:
                result.skip(job.id, _("it has ended: %(state)s", state=state_text(job.state)))
        return [job for job, _at_once in answers]

    return _each_batch(wanted, using, do, steps, after)


def retry(
    jobs: Jobs, *, steps: int | None = None, after: str | None = None, using: str | None = None
) -> Result:
    """Run finished jobs again, from their first attempt; their errors stay.

    :param jobs: a filter, an id or a job, or several. A filter without states: dead letters only.
    """
    wanted = applicable(jobs, "retry", using)

    def do(store: Store, ids: list[int], result: Result) -> list[JobRow]:
        answers = store.retry(ids)
        for job, done, _row in answers:
            if done:
                result.did(job.id)
            elif job.state in FINISHED:
                result.skip(job.id, KEY_IS_HELD)
            else:
                result.skip(job.id, _not_ended(job.state))
        return [answer.job for answer in answers]

    return _each_batch(wanted, using, do, steps, after)


def release(
    jobs: Jobs, *, steps: int | None = None, after: str | None = None, using: str | None = None
) -> Result:
    """Let pending jobs run.

    :param jobs: a filter, an id or a job, or several. A filter without states: all that are pending.
    """
    wanted = applicable(jobs, "release", using)

    def do(store: Store, ids: list[int], result: Result) -> list[JobRow]:
        answers = store.release_pending(ids)
        for job, done, _row in answers:
            if done:
                result.did(job.id)
            else:
                result.skip(job.id, _("it is not pending: %(state)s", state=state_text(job.state)))
        return [answer.job for answer in answers]

    return _each_batch(wanted, using, do, steps, after)


def update(
    jobs: Jobs,
    *,
    queue_name: str | None = None,
    priority: int | None = None,
    run_after: dt.datetime | dt.timedelta | None = None,
    max_attempts: int | None = None,
    steps: int | None = None,
    after: str | None = None,
    using: str | None = None,
) -> Result:
    """Change what waiting jobs wait for and where; what is not given stays.

    :param jobs: a filter, an id or a job, or several. A filter without states: all that wait.
    :param queue_name: the queue to go to.
    :param priority: -100 to 100.
    :param run_after: a moment, or a timedelta from now.
    :param max_attempts: more than a job has spent, else that job is left as it is.
    :raises InvalidJob: for a value that is not allowed.
    """
    what = "operations.update()"
    if queue_name is not None:
        check_queue_name(queue_name, what)
    check_change(priority, "priority", limits.PRIORITY_LOWEST, limits.PRIORITY_HIGHEST, what)
    check_change(max_attempts, "max_attempts", 1, limits.MAX_ATTEMPTS_HIGHEST, what)
    if run_after is not None:
        check_run_after(run_after, what)
    if queue_name is None and priority is None and run_after is None and max_attempts is None:
        raise InvalidJob(f"{what} was given nothing to change.")
    wanted = applicable(jobs, "update", using)
    changes: dict[str, Any] = {"queue_name": queue_name, "priority": priority, "max_attempts": max_attempts}
    if isinstance(run_after, dt.timedelta):
        changes["delay"] = run_after.total_seconds()
    elif run_after is not None:
        changes["run_after"] = aware(run_after)

    def do(store: Store, ids: list[int], result: Result) -> list[JobRow]:
        answers = store.update(ids, **changes)
        for job, done in answers:
            if done:
                result.did(job.id)
            elif job.state in WAITING:
                result.skip(job.id, _spent(job.attempt))
            else:
                result.skip(job.id, _("it does not wait: %(state)s", state=state_text(job.state)))
        return [answer.job for answer in answers]

    return _each_batch(wanted, using, do, steps, after)


def run_now(
    jobs: Jobs, *, steps: int | None = None, after: str | None = None, using: str | None = None
) -> Result:
    """Let scheduled jobs, retries among them, run at once.

    :param jobs: a filter, an id or a job, or several. A filter without states: all that are scheduled.
    """
    wanted = applicable(jobs, "run_now", using)
    return update(wanted, run_after=dt.timedelta(), steps=steps, after=after, using=using)


def delete(
    jobs: Jobs, *, steps: int | None = None, after: str | None = None, using: str | None = None
) -> Result:
    """Delete jobs, whatever their state, but for running ones. There is no way back.

    :param jobs: a filter, an id or a job, or several.
    """
    wanted = applicable(jobs, "delete", using)

    def do(store: Store, ids: list[int], result: Result) -> list[JobRow]:
        deleted = store.delete(ids, whole_rows=False)
        for job in deleted:
            result.did(job.id)
        return [*deleted, *_left(store, ids, deleted, result)]

    return _each_batch(wanted, using, do, steps, after)


def purge(
    jobs: Jobs | str | None = None,
    older_than: dt.timedelta | float = dt.timedelta(),
    *,
    steps: int | None = None,
    after: str | None = None,
    using: str | None = None,
) -> Result:
    """Delete finished jobs that ended ``older_than`` ago or earlier. One that still holds its unique key is kept.

    :param jobs: a filter, an id or a job, or several, or a state. Without states: all that have ended.
    :param older_than: a timedelta, or seconds.
    """
    given = Filter(state=jobs) if isinstance(jobs, str) else Filter() if jobs is None else jobs
    wanted = applicable(given, "purge", using).within(*FINISHED)
    age = _age(older_than)
    store = django_store(jobs_database(using))
    result = Result()
    if wanted.id_list is not None:
        for chunk in _chunks(wanted.id_list):
            _purge_ids(store, wanted, chunk, age, result)
        return result
    for criteria, ids in _batches(store, wanted, result, steps, after, finished_for=age):
        assert criteria is not None
        assert criteria.state is not None
        _purge(store, criteria.state, ids, result)
    return result


def _purge(store: Store, state: str, ids: Sequence[int], result: Result) -> None:
    deleted = store.delete(ids, state, whole_rows=False)
    for job in deleted:
        result.did(job.id)
    _left(store, ids, deleted, result)


def _purge_ids(store: Store, wanted: Filter, chunk: Sequence[int], age: float, result: Result) -> None:
    left = set(chunk)
    for state in wanted.states:
        for found in matching_ids(store, wanted.within(state), chunk, age):
            if found.positions:
                _purge(store, state, found.ids, result)
                left.difference_update(found.ids)
    known = {job.id: job.state for job in store.get(sorted(left))} if left else {}
    for id_ in sorted(left):
        if id_ not in known:
            result.skip(id_, GONE)
        else:
            result.skip(id_, NO_MATCH if known[id_] in FINISHED else _not_ended(known[id_]))


def purge_failed(older_than: dt.timedelta | float = dt.timedelta(), *, using: str | None = None) -> Result:
    """Delete dead letters that are ``older_than`` old or older: a timedelta, or seconds."""
    return purge(State.FAILED, older_than, using=using)


def _left(store: Store, ids: Sequence[int], deleted: Sequence[JobRow], result: Result) -> list[JobRow]:
    """Say of those that were not deleted why."""
    if len(deleted) == len(ids):
        return []
    known = {job.id for job in deleted}
    left = store.get([id_ for id_ in ids if id_ not in known])
    for job in left:
        held = job.state in FINISHED and job.holds_key
        result.skip(job.id, HOLDS_KEY if held else _("it is %(state)s", state=state_text(job.state)))
    return left


def _not_ended(state: str) -> str:
    return _("it has not ended: %(state)s", state=state_text(state))


def _spent(attempts: int) -> str:
    return ngettext(
        "it has spent %(count)d attempt already", "it has spent %(count)d attempts already", attempts
    )


def _each_batch(
    wanted: Filter,
    using: str | None,
    do: Callable[[Store, list[int], Result], Sequence[JobRow]],
    steps: int | None = None,
    after: str | None = None,
) -> Result:
    store = django_store(jobs_database(using))
    result = Result()
    for _criteria, ids in _batches(store, wanted, result, steps, after):
        answers = do(store, ids, result)
        if len(answers) < len(ids):
            known = {job.id for job in answers}
            for id_ in ids:
                if id_ not in known:
                    result.skip(id_, GONE)
    return result


def _batches(
    store: Store,
    wanted: Filter,
    result: Result,
    steps: int | None = None,
    after: str | None = None,
    finished_for: float | None = None,
) -> Iterator[tuple[Criteria | None, list[int]]]:
    """The ids that match, a thousand at most at a time, each batch found by one statement; with what found them.

    After ``steps`` statements it stops, and :attr:`Result.next` is where to go on.
    """
    if wanted.id_list is not None:
        for chunk in _chunks(wanted.id_list):
            for ids in _given(store, wanted, chunk, result):
                yield None, ids
        return
    skip, position = (0, None) if after is None else parse_place(after)
    legs = list(wanted.legs())[skip:]
    for number, criteria in enumerate(legs, skip):
        check_place(criteria, position, after)
        while True:
            if steps is not None and steps <= 0:
                result.next = place_text(number, position)
                return
            found = store.select(criteria._replace(finished_for=finished_for), position)
            if steps is not None:
                steps -= 1
            if found.positions:
                yield criteria, sorted(found.ids)
            position = found.end
            if position is None:
                break


def _chunks(ids: Sequence[int]) -> Iterator[list[int]]:
    for first in range(0, len(ids), MOST):
        yield list(ids[first : first + MOST])


def _given(store: Store, wanted: Filter, chunk: list[int], result: Result) -> Iterator[list[int]]:
    if wanted.names_ids_alone:
        yield chunk
        return
    ids = [id_ for found in matching_ids(store, wanted, chunk) for id_ in found.ids]
    for id_ in sorted(set(chunk) - set(ids)):
        result.skip(id_, NO_MATCH)
    if ids:
        yield sorted(ids)


def _age(older_than: Any) -> float:
    age = older_than.total_seconds() if isinstance(older_than, dt.timedelta) else older_than
    if isinstance(age, bool) or not isinstance(age, int | float) or not 0 <= age <= limits.LONGEST_DELAY:
        raise InvalidFilter(
            f"older_than is {shown(older_than)}; it must be a timedelta or seconds, from 0 to a hundred years."
        )
    return float(age)


def check_change(value: Any, option: str, lowest: int, highest: int, what: str) -> None:
    """Raise InvalidJob unless this is None, for no change, or a whole number in that range."""
    if value is not None:
        check_whole(value, option, lowest, highest, what)


def aware(moment: dt.datetime) -> dt.datetime:
    """A moment with its zone: a naive one is in the site's."""
    from django.utils import timezone

    if timezone.is_naive(moment):
        moment = timezone.make_aware(moment, timezone.get_default_timezone())
    return moment
