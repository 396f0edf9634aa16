"""When a schedule ticks: cron expressions in a time zone, and intervals. No clock is read here.

A tick is a moment in UTC. It is what the expression says, whoever asks and when: so a ledger of ticks can tell which
were run, on any host.

Daylight saving, for cron expressions:

- Where minute and hour are given (``0 2 * * *``, ``30 1 * * *``, ``0 9-17 * * MON``), a day has the ticks that its
  clock says, each once. One in the hour that does not exist comes at the first moment after it (02:30 at 03:00), one
  with others of that hour. In the hour that comes twice the first one counts.
- Where minute or hour begins with ``*`` (``*/15 * * * *``, ``0 * * * *``), the ticks follow time as it passes: nothing
  in the hour that does not exist, and both hours of the one that comes twice. So ``*/15 2 * * *`` has no tick on the
  one day and eight on the other; write ``0-59/15 2 * * *`` for the first rule.

Intervals know no time zone: their ticks are the multiples of the interval since 1970-01-01 00:00 UTC.
"""

from __future__ import annotations

import datetime as dt
import functools
from abc import ABC, abstractmethod
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from django.utils.translation import gettext_noop

from django_jobs import limits
from django_jobs.exceptions import InvalidSchedule
from django_jobs.serialization import shown
from django_jobs.texts import Text, ntext as ngettext, text as _

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SHORTEST_INTERVAL = dt.timedelta(seconds=1)
LONGEST_INTERVAL = dt.timedelta(seconds=limits.LONGEST_DELAY)

# What to do about ticks that nobody was there to run.
LATEST, ALL, NONE = "latest", "all", "none"
MISSED = (LATEST, ALL, NONE)
# With ALL: how many are run after a long time, the newest ones.
MOST_CAUGHT_UP = 100
# With NONE: so long after its time a tick is late, which any can be while another worker takes over, and not missed.
LATE = dt.timedelta(seconds=60)

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

BAD_TIMING, BAD_ZONE = "django_jobs.E021", "django_jobs.E022"

# What cronsim says of an expression that can't be read.
_UNREADABLE = (
    gettext_noop("bad minute"),
    gettext_noop("bad hour"),
    gettext_noop("bad day-of-month"),
    gettext_noop("bad month"),
    gettext_noop("bad day-of-week"),
    gettext_noop("bad syntax"),
)
_EVERY = "every "
_RESOLUTION = dt.timedelta(microseconds=1)


class Timing(ABC):
    """When a schedule ticks. ``expression`` and ``timezone`` are how it is stored, and :func:`parse` reads them."""

    expression: str
    timezone: str

    @abstractmethod
    def describe(self) -> str:
        """In plain words, of English: ``At 02:30 on Monday through Friday``."""

    @abstractmethod
    def after(self, moment: dt.datetime) -> dt.datetime:
        """The first tick after ``moment``, in UTC."""

    def latest(self, first: dt.datetime, moment: dt.datetime) -> dt.datetime:
        """The last tick that is not after ``moment``; ``first`` is any tick that is not."""
        low, high = first, moment  # a tick; and a moment from which on, until ``moment``, there is none
        while (following := self.after(low)) <= moment:
            low = following
            middle = low + (high - low) / 2
            later = self.after(middle)
            if later <= moment:
                low = later
            else:
                high = middle
        return low

    def owed(self, first: dt.datetime, now: dt.datetime, missed: str) -> list[dt.datetime]:
        """The ticks to run now, of those from ``first`` (a tick, not after ``now``) on, in their order.

        ``missed`` is one of :data:`MISSED`. With ``all`` there are :data:`MOST_CAUGHT_UP` at most, the newest.
        """
        ticks = [self.latest(first, now)]
        if missed == NONE:
            return ticks if now - ticks[0] <= LATE else []
        if missed == ALL:
            while ticks[-1] > first and len(ticks) < MOST_CAUGHT_UP:
                ticks.append(self.latest(first, ticks[-1] - _RESOLUTION))
        return ticks[::-1]


class Cron(Timing):
    """Five fields, or a nickname such as ``@daily``, on the clock of a time zone.

    :raises InvalidSchedule: for what is neither, has no tick in fifty years, or an unknown zone.
    """

    def __init__(self, expression: Any, timezone: str = "UTC") -> None:
        if not isinstance(expression, str) or not expression.strip():
            raise InvalidSchedule(
                _("The cron expression is %(value)s.", value=shown(expression)),
                _("Write five fields: '*/5 * * * *'."),
                BAD_TIMING,
            )
        self.expression = " ".join(expression.split())
        self.zone = _zone(timezone)
        self.timezone = timezone
        self._fields = NICKNAMES.get(self.expression.lower(), self.expression)
        problem = self._problem()
        if problem is not None:
            raise InvalidSchedule(
                _("The cron expression %(value)s %(problem)s.", value=shown(expression), problem=problem),
                _(
                    "It has five fields, minute, hour, day of the month, month and day of the week: '*/5 * * * *', "
                    "'30 2 * * MON-FRI'; or it is one of %(known)s. For seconds use every=.",
                    known=", ".join(NICKNAMES),
                ),
                BAD_TIMING,
            )

    def _problem(self) -> str | None:
        if self._fields.startswith("@"):
            return _("is no nickname that is known")
        count = len(self._fields.split())
        if count != 5:
            return ngettext("has %(count)d field", "has %(count)d fields", count)
        if len(self._fields) > limits.EXPRESSION_LENGTH:
            return _("has more than %(most)d characters", most=limits.EXPRESSION_LENGTH)
        try:
            self.after(EPOCH)
        except InvalidSchedule:
            return _("never comes")
        except (CronSimError, ValueError, AssertionError) as error:
            return _("can't be read: %(error)s", error=Text(str(error).lower() or "bad syntax"))
        return None

    def describe(self) -> str:
        return str(CronSim(self._fields, EPOCH).explain())

    def after(self, moment: dt.datetime) -> dt.datetime:
        # In the hour that comes twice cronsim starts from its first pass, and can begin with ticks that are past.
        for tick in CronSim(self._fields, moment.astimezone(self.zone)):
            tick = tick.astimezone(dt.UTC)
            if tick > moment:
                return tick
        raise InvalidSchedule(
            _(
                "The cron expression %(value)s %(problem)s.",
                value=repr(self.expression),
                problem=_("never comes"),
            ),
            _("Name a day that exists."),
            BAD_TIMING,
        )


class Interval(Timing):
    """Every so many seconds, counted from 1970 in UTC: the same moments on all hosts, whenever they started.

    :raises InvalidSchedule: for less than a second, or more than a hundred years.
    """

    timezone = "UTC"

    def __init__(self, every: dt.timedelta | float) -> None:
        interval = every
        if isinstance(interval, int | float) and not isinstance(interval, bool):
            interval = (
                dt.timedelta(seconds=interval) if 0 < interval <= limits.LONGEST_DELAY else dt.timedelta()
            )
        if not isinstance(interval, dt.timedelta) or not SHORTEST_INTERVAL <= interval <= LONGEST_INTERVAL:
            raise InvalidSchedule(
                _("every is %(value)s.", value=shown(every)),
                _(
                    "It must be a timedelta, or a number of seconds, of a second or more: timedelta(minutes=5)."
                ),
                BAD_TIMING,
            )
        self.every = interval
        seconds = interval.total_seconds()
        self.expression = f"{_EVERY}{int(seconds) if seconds == int(seconds) else seconds} s"

    def describe(self) -> str:
        parts, left = [], self.every.total_seconds()
        for unit, seconds in (("day", 86400), ("hour", 3600), ("minute", 60)):
            count, left = divmod(left, seconds)
            if count:
                parts.append(f"{count:.0f} {unit}s" if count > 1 else unit)
        if left:
            parts.append("second" if left == 1 else f"{left:g} seconds")
        if len(parts) > 1:  # "every 1 hour and 30 minutes", but "every hour"
            parts = [part if part[0].isdigit() else f"1 {part}" for part in parts]
        return f"Every {' and '.join(parts)}"

    def after(self, moment: dt.datetime) -> dt.datetime:
        return EPOCH + ((moment - EPOCH) // self.every + 1) * self.every

    def latest(self, first: dt.datetime, moment: dt.datetime) -> dt.datetime:
        return max(first, EPOCH + (moment - EPOCH) // self.every * self.every)


@functools.lru_cache(maxsize=1000)
def parse(expression: str, timezone: str) -> Timing:
    """The timing that is stored as this. Raises InvalidSchedule."""
    if not expression.startswith(_EVERY):
        return Cron(expression, timezone)
    try:
        seconds = float(expression.removeprefix(_EVERY).removesuffix(" s"))
    except ValueError:
        seconds = 0.0
    return Interval(seconds)


def zone_name(timezone: Any) -> str:
    """The name of a time zone, given as such or as a tzinfo. Raises InvalidSchedule for one that is unknown."""
    if isinstance(timezone, dt.tzinfo):
        timezone = "UTC" if timezone is dt.UTC else getattr(timezone, "key", timezone)
    return _zone(timezone).key


def _zone(name: Any) -> ZoneInfo:
    try:
        if isinstance(name, str) and len(name) <= limits.ZONE_LENGTH:
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones is no file, and so an OSError
        pass
    raise InvalidSchedule(
        _("There is no time zone %(name)s on this host.", name=shown(name)),
        _("Name one of the IANA database: 'UTC', 'Europe/Berlin'. If it is one, install the package tzdata."),
        BAD_ZONE,
    )
