"""Time travel: the queue's own time, held by the test."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

from django.utils import timezone

from django_jobs import store as stores
from django_jobs.exceptions import seconds
from django_jobs.store import Store


class Clock:
    """The queue's time while a test travels. It stands still unless the test moves it.

    :param moment: where it begins.
    """

    def __init__(self, moment: dt.datetime) -> None:
        self.now = _aware(moment)

    def advance(self, delay: float | dt.timedelta) -> dt.datetime:
        """Move on by seconds, or a timedelta; the new time."""
        self.now += dt.timedelta(seconds=seconds(delay))
        return self.now

    def move_to(self, moment: dt.datetime) -> dt.datetime:
        """Move to a moment, also an earlier one."""
        self.now = _aware(moment)
        return self.now


_clock: Clock | None = None


def now() -> dt.datetime:
    """The time of the clock, if a test travels, else of this process."""
    return dt.datetime.now(dt.UTC) if _clock is None else _clock.now


@contextmanager
def time_travel(to: dt.datetime | None = None) -> Iterator[Clock]:
    """While it lasts, the queue's time is that of a clock that the test holds.

    What is enqueued, becomes due, runs, is retried and is scheduled goes by it, in this process, on Django's
    connections. ``timezone.now()`` is not changed: a job that asks for it gets the real time, unless the test changes
    that too, with time-machine for example.

    :param to: where the clock begins; by default now.
    """
    global _clock  # noqa: PLW0603 - there is one time
    before = _clock, stores.around
    _clock = Clock(timezone.now() if to is None else to)
    stores.around = _telling_time(_clock)
    try:
        yield _clock
    finally:
        _clock, stores.around = before


def _telling_time(clock: Clock) -> Callable[[Store], Store]:
    return lambda store: cast("Store", _Travelling(store, clock))


class _Travelling:
    """A store whose methods are told the time, where their caller does not tell it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._store, name)
        if not inspect.ismethod(value):
            return value
        signature = inspect.signature(value)
        if "now" not in signature.parameters:
            return value

        @wraps(value)
        def told(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            if bound.arguments.get("now") is None:
                bound.arguments["now"] = self._clock.now
            return value(*bound.args, **bound.kwargs)

        return told


def _aware(moment: dt.datetime) -> dt.datetime:
    if not isinstance(moment, dt.datetime):
        raise TypeError(f"a moment is a datetime, not {type(moment).__name__}")
    if timezone.is_naive(moment):
        moment = timezone.make_aware(moment, timezone.get_default_timezone())
    return moment.astimezone(dt.UTC)
