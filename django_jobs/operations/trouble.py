"""What is wrong at present, in words, for a page or a pager."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.db import connections
from django.utils.translation import gettext as _, ngettext

from django_jobs import schedule_errors
from django_jobs.databases import jobs_database
from django_jobs.operations.acting import aware
from django_jobs.operations.counting import Count
from django_jobs.operations.status import Queues, QueueStatus, live_workers, queues_of
from django_jobs.sound_rows import sound, sound_one
from django_jobs.store import Store, django_store
from django_jobs.store.statistics import LiveWorker
from django_jobs.texts import number_text, translated

ERROR, WARNING = "error", "warning"

# Seconds that a job may wait, a schedule may be late, and a due job unpromoted, before it is worth a word.
LATE = 60.0
SKEW = 2.0
# Dead letters within an hour that are worth a word; beyond a tenth of all that ended fewer are.
MANY_DEAD = 100
SOME_DEAD = 10
PART_DEAD = 0.1
# So many of a kind are named; the others are told by their number.
NAMED = 10


class Target(NamedTuple):
    """What a problem is about: where a page links to.

    :param kind: ``queue``, ``queues``, ``worker``, ``workers``, ``schedule``, ``failures`` or ``jobs``.
    :param key: a queue's name, a worker's id, a schedule's key, a state of jobs; empty for all.
    """

    kind: str
    key: str = ""


class Problem(NamedTuple):
    """Something that is wrong. ``level`` is ``error`` or ``warning``; ``text`` is a sentence in the active language."""

    level: str
    text: str
    target: Target


class Situation(NamedTuple):
    """How things stand.

    :param now: the database's time.
    :param workers: those that have neither stopped nor been lost.
    :param queues: as of :func:`~django_jobs.operations.queue_status`.
    :param problems: as of :func:`problems`.
    """

    now: dt.datetime
    workers: list[LiveWorker]
    queues: Queues
    problems: list[Problem]


def problems(
    *, late: float = LATE, using: str | None = None, now: dt.datetime | None = None
) -> list[Problem]:
    """What is wrong at present, errors first. It takes ten statements, on PostgreSQL eleven, each bounded, however many
    jobs there are.

    :param late: seconds that a job may wait before it is a problem.
    :param now: the moment that it is, for tests; the database's time by default.
    """
    return situation(late=late, using=using, now=now).problems


def situation(*, late: float = LATE, using: str | None = None, now: dt.datetime | None = None) -> Situation:
    """The workers, the queues, and what is wrong with them: :func:`problems`, with what that has looked at."""
    alias = jobs_database(using)
    store = django_store(alias)
    moment, workers = live_workers(store, now)
    queues = queues_of(store, alias, workers, now)
    found = [
        *_of_workers(workers, queues, moment),
        *_of_queues(queues, late),
        *_of_the_keeper(store, alias, workers, moment, now),
        *_of_failures(store, now),
        *_of_schedules(alias, moment),
        *_of_transactions(alias),
    ]
    found.sort(key=lambda problem: problem.level != ERROR)
    return Situation(moment, workers, queues, found)


def _of_workers(
    workers: Sequence[LiveWorker], queues: Sequence[QueueStatus], moment: dt.datetime
) -> Iterator[Problem]:
    alive = [worker for worker in workers if worker.expires_at >= moment]
    if not alive:
        waiting = any(queue.available for queue in queues)
        text = _("No worker runs, and jobs wait.") if waiting else _("No worker runs.")
        yield Problem(ERROR if waiting else WARNING, text, Target("workers"))
    elif all(worker.quiet_requested_at for worker in alive):
        yield Problem(WARNING, _("All workers are quiet: none takes a job."), Target("workers"))
    for worker in _named(workers):
        who = _("Worker %(id)d (%(host)s, process %(pid)d)") % worker._asdict()
        target = Target("worker", str(worker.id))
        if worker.expires_at < moment:
            silent = in_words((moment - worker.heartbeat_at).total_seconds())
            yield Problem(
                ERROR,
                _("%(worker)s has not been heard of for %(time)s; its jobs are about to be taken from it.")
                % {"worker": who, "time": silent},
                target,
            )
        if abs(worker.skew) >= SKEW:
            words = _("The clock of %(host)s is %(time)s ahead of the database's; set it (NTP).")
            if worker.skew < 0:
                words = _("The clock of %(host)s is %(time)s behind the database's; set it (NTP).")
            yield Problem(WARNING, words % {"host": worker.host, "time": in_words(abs(worker.skew))}, target)


def _of_queues(queues: Sequence[QueueStatus], late: float) -> Iterator[Problem]:
    stuck = [queue for queue in queues if queue.oldest is not None and queue.oldest >= late]
    for queue in sorted(stuck, key=lambda queue: queue.oldest or 0.0, reverse=True)[:NAMED]:
        words = {
            "queue": queue.name,
            "time": in_words(queue.oldest or 0.0),
            "jobs": _counted(queue.available),
        }
        level = WARNING
        if queue.paused_at is not None:
            text = ngettext(
                "Queue %(queue)s is paused, and %(jobs)s job waits in it, for %(time)s.",
                "Queue %(queue)s is paused, and %(jobs)s jobs wait in it; the oldest for %(time)s.",
                queue.available,
            )
        elif not queue.workers:
            level = ERROR
            text = _("Queue %(queue)s has waited %(time)s; no worker serves it.")
        else:
            text = ngettext(
                "Queue %(queue)s has waited %(time)s; %(number)d worker serves it; jobs that wait: %(jobs)s.",
                "Queue %(queue)s has waited %(time)s; %(number)d workers serve it; jobs that wait: %(jobs)s.",
                len(queue.workers),
            )
        yield Problem(level, text % {**words, "number": len(queue.workers)}, Target("queue", queue.name))
    if len(stuck) > NAMED:
        more = len(stuck) - NAMED
        text = ngettext("%(number)d more queue waits.", "%(number)d more queues wait.", more)
        yield Problem(WARNING, text % {"number": more}, Target("queues"))


def _of_the_keeper(
    store: Store, alias: str, workers: Sequence[LiveWorker], moment: dt.datetime, now: dt.datetime | None
) -> Iterator[Problem]:
    from django_jobs.models import Leadership

    due = store.next_due(now)
    if due is not None and due <= -LATE:
        text = _("Scheduled jobs have been due for %(time)s, and are not made available.")
        yield Problem(ERROR, text % {"time": in_words(-due)}, Target("jobs", "scheduled"))
    started = [worker for worker in workers if (moment - worker.started_at).total_seconds() >= LATE]
    if not started:
        return
    leader = sound_one(Leadership.objects.using(alias).filter(name="keeper").only("expires_at"))
    if leader is None or (moment - aware(leader.expires_at)).total_seconds() >= LATE:
        text = _("No worker does the maintenance: nothing is promoted, rescued, purged or scheduled.")
        yield Problem(ERROR, text, Target("workers"))


def _of_failures(store: Store, now: dt.datetime | None) -> Iterator[Problem]:
    ended = dead = 0
    for _queue, outcome, number in store.queue_history(3600.0, now):
        if outcome == "failed":
            dead += number
        if outcome in ("failed", "completed"):
            ended += number
    if dead >= MANY_DEAD or (dead >= SOME_DEAD and dead >= PART_DEAD * ended):
        text = _("%(number)s jobs have failed for good in the last hour, of %(all)s that ended.")
        words = {"number": number_text(dead), "all": number_text(ended)}
        yield Problem(WARNING, text % words, Target("failures"))


def _of_schedules(alias: str, moment: dt.datetime) -> Iterator[Problem]:
    from django_jobs.models import Schedule

    running = Schedule.objects.using(alias).filter(paused_at=None, removed_at=None).order_by("key")
    for row in sound(running.only("key", "next_tick", *schedule_errors.FIELDS)):
        key, next_tick = row.key, row.next_tick
        target = Target("schedule", key)
        if row.last_error:
            text = _("Schedule %(key)s could not run: %(error)s")
            yield Problem(ERROR, text % {"key": key, "error": schedule_errors.error_text(row)}, target)
        elif next_tick is not None and (moment - aware(next_tick)).total_seconds() >= LATE:
            text = _("Schedule %(key)s is %(time)s late.")
            words = {"key": key, "time": in_words((moment - aware(next_tick)).total_seconds())}
            yield Problem(ERROR, text % words, target)


def _of_transactions(alias: str) -> Iterator[Problem]:
    if connections[alias].vendor != "postgresql":
        return
    from django_jobs.doctor.postgresql import oldest_transaction

    oldest = oldest_transaction(alias)
    if oldest is not None:
        who, seconds = oldest
        text = _(
            "A transaction has been open for %(time)s (%(who)s): nothing that ended since can be vacuumed, and claims "
            "get slower."
        )
        yield Problem(WARNING, text % {"time": in_words(seconds), "who": translated(who)}, Target("jobs"))


def _named(workers: Sequence[LiveWorker]) -> Sequence[LiveWorker]:
    """Those that are in trouble first, and not more than a page can hold."""
    return sorted(workers, key=lambda worker: (worker.expires_at, worker.id))[: NAMED * 5]


def _counted(count: Count) -> str:
    return f"{number_text(count)}+" if count.capped else number_text(count)


def in_words(seconds: float) -> str:
    """A time, as precise as people want it: ``40 s``, ``14 min``, ``3 h``, ``2 days``."""
    if seconds < 90:
        return _("%(number)d s") % {"number": round(seconds)}
    if seconds < 90 * 60:
        return _("%(number)d min") % {"number": round(seconds / 60)}
    if seconds < 36 * 3600:
        return _("%(number)d h") % {"number": round(seconds / 3600)}
    days = round(seconds / 86_400)
    return ngettext("%(number)d day", "%(number)d days", days) % {"number": days}
