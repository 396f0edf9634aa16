"""The ticker: brings the declared schedules into the database, and runs their ticks for the keeper."""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from django.db import Error as DatabaseError

from django_jobs import scheduling
from django_jobs.exceptions import InvalidJob, InvalidSchedule
from django_jobs.schedule_errors import redacted, stored
from django_jobs.serialization import decoded, parse_timestamp, stored_timestamp
from django_jobs.store.base import Store
from django_jobs.store.rows import ScheduleRow
from django_jobs.store.schedules import Tick
from django_jobs.timing import MOST_CAUGHT_UP, parse
from django_jobs.worker.parts import one_line, pause_after

logger = logging.getLogger("django_jobs.schedules")

# How soon a change is noticed that no notification tells of; otherwise the ticker sleeps until the next tick.
REFRESH_SECONDS = 5.0
# A tick that can't be run is tried again after a second, then after twice as long each time, to this.
LONGEST_PAUSE = 60.0
# How soon a schedule is read anew that somebody else has just written.
AGAIN = 0.1

_LOOK = "The schedules can't be looked at"
_SYNCHRONISE = "The schedules can't be synchronised"


class Ticker:
    """Runs what is due. It holds no thread and no connection; callers take turns.

    Nothing that it does depends on its being the only one: the ledger has one job for each tick whoever runs it.

    :param using: the database.
    :param on_available: called with the name of a queue that got a job.
    """

    def __init__(self, using: str, on_available: Callable[[str], None]) -> None:
        self.using = using
        self._on_available = on_available
        self._turn = threading.Lock()
        self._synchronised = False
        self._failures: Counter[str] = Counter()
        self._synchronise_at = self._look_at = 0.0
        self._retries: dict[int, _Retry] = {}

    def look(self) -> None:
        """A schedule may have changed: read them at the next opportunity."""
        self._look_at = 0.0

    def synchronise(self, store: Store) -> float | None:
        """Declare this process's schedules, once; seconds until it should be tried again, None when it is done.

        The worker does not depend on it: what fails is logged.
        """
        with self._turn:
            if self._synchronised:
                return None
            if (wait := self._synchronise_at - time.monotonic()) > 0:
                return wait
            try:
                scheduling.synchronise(store, self.using)
            except Exception as error:
                pause = self._failed(_SYNCHRONISE, error)
                self._synchronise_at = time.monotonic() + pause
                return pause
            self._synchronised = True
            self.look()
            return None

    def maintain(self, store: Store) -> float:
        """Run what is due, if it is time to look; seconds until it is next. Errors are logged, and back off."""
        with self._turn:
            before = time.monotonic()
            if before < self._look_at:
                return self._look_at - before
            # First, so that what becomes known while this looks makes it look again.
            self._look_at = before + REFRESH_SECONDS
            try:
                wait = min(self.run(store), REFRESH_SECONDS)
                self._failures[_LOOK] = 0
            except Exception as error:
                wait = self._failed(_LOOK, error)
            if self._look_at:
                self._look_at = before + wait
            return max(0.0, self._look_at - time.monotonic())

    def _failed(self, what: str, error: Exception) -> float:
        self._failures[what] += 1
        failures = self._failures[what]
        if isinstance(error, DatabaseError | OSError):
            logger.warning("%s (%d in a row): %s", what, failures, one_line(error))
        else:
            logger.exception("%s (%d in a row)", what, failures)
        return pause_after(failures)

    def run(self, store: Store, now: dt.datetime | None = None) -> float:
        """Run what is due; seconds until there is more to do, infinite when nothing is known.

        A schedule that fails harms no other one. Raises what the database does when even that can't be noted.
        """
        due = store.due_schedules(now)
        if due.now is None:
            return float("inf")
        wait = float("inf")
        for schedule in due.schedules:
            retry = self._retries.get(schedule.id)
            if retry is not None and retry.seconds() > 0 and schedule.next_tick == retry.tick:
                wait = min(wait, retry.seconds())
                continue
            try:
                following = self._serve(store, schedule, due.now, now)
                self._retries.pop(schedule.id, None)
            except Exception as error:
                wait = min(wait, self._postpone(store, schedule, error, now))
            else:
                wait = min(wait, AGAIN if following is None else (following - due.now).total_seconds())
        return wait

    def _serve(
        self, store: Store, schedule: ScheduleRow, at: dt.datetime, now: dt.datetime | None
    ) -> dt.datetime | None:
        """Run the ticks that one schedule owes; its next tick.

        None when the row is not as it was read: another keeper was first, or it was changed. It is to be read anew.
        """
        timing = parse(schedule.expression, schedule.timezone)
        # A next tick that is no moment, as somebody's SQL may have left it, is worked out again. Of a last one that is
        # none nobody can tell what was run: that is an error, which the schedule's page tells.
        first, last = stored_timestamp(schedule.next_tick), parse_timestamp(schedule.last_tick)
        if first is None or (last is not None and first <= last):
            since = parse_timestamp(schedule.owed_after)
            assert since is not None
            first = timing.after(since if last is None else max(since, last))
            if first > at:
                return first if store.advance_schedule(schedule, first, now=now) else None
        if first > at:
            return first
        ticks = timing.owed(first, at, schedule.missed)
        self._tell_missed(schedule, first, ticks)
        following = timing.after(at)
        if not ticks:
            return following if store.advance_schedule(schedule, following, now=now) else None
        for tick, next_tick in zip(ticks, [*ticks[1:], following], strict=True):
            new, metadata = scheduling.job_of(schedule, tick)
            ticked = store.tick_schedule(Tick(schedule, tick, next_tick, new, metadata), now=now)
            if ticked is None:
                return None
            schedule = ticked.schedule
            if ticked.job is None:
                logger.info(
                    "Schedule %r: a live job stands for the tick %s, by its unique key", schedule.key, tick
                )
            else:
                logger.debug("Schedule %r: job %d for the tick %s", schedule.key, ticked.job.id, tick)
                self._on_available(ticked.job.queue_name)
        return following

    def _tell_missed(self, schedule: ScheduleRow, first: dt.datetime, ticks: list[dt.datetime]) -> None:
        if not ticks or ticks[0] > first:
            logger.info(
                "Schedule %r: ticks from %s on were missed; %s",
                schedule.key,
                first,
                f"{len(ticks)} of them, from {ticks[0]} on, {'is' if len(ticks) == 1 else 'are'} run"
                + (f" (the most of missed='all' is {MOST_CAUGHT_UP})" if len(ticks) == MOST_CAUGHT_UP else "")
                if ticks
                else "none is run",
            )

    def _postpone(
        self, store: Store, schedule: ScheduleRow, error: Exception, now: dt.datetime | None
    ) -> float:
        """Note what went wrong with a schedule; seconds until it is tried again."""
        known = self._retries.get(schedule.id)
        failures = 1 if known is None else known.failures + 1
        retry = _Retry(schedule.next_tick, failures)
        self._retries[schedule.id] = retry
        told = isinstance(error, InvalidSchedule | InvalidJob)
        # Where it is kept, and in the log, too: it may tell the arguments, of which some are not to be seen.
        args, kwargs = decoded(schedule.args), decoded(schedule.kwargs)
        text = redacted(schedule.name, args, kwargs, str(error) if told else one_line(error))
        logger.warning(
            "Schedule %r (%s): its tick can't be run (%d in a row), and is tried again in %.0f s: %s",
            schedule.key,
            schedule.name,
            failures,
            retry.seconds(),
            text,
            exc_info=None if told or isinstance(error, DatabaseError | OSError) else error,
        )
        text = stored(text)
        if text != schedule.last_error:
            store.fail_schedule(schedule.id, text, now=now)
        return retry.seconds()


class _Retry:
    """When a schedule is tried again."""

    def __init__(self, tick: object, failures: int) -> None:
        self.tick = tick
        self.failures = failures
        self.at = time.monotonic() + min(2.0 ** min(failures - 1, 10), LONGEST_PAUSE)

    def seconds(self) -> float:
        return self.at - time.monotonic()
