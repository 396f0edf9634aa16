"""How long a job waits after a failed attempt."""

from __future__ import annotations

import datetime as dt
import inspect
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from django_jobs.exceptions import seconds
from django_jobs.serialization import shown

logger = logging.getLogger("django_jobs.backoff")

DAY = 86_400.0


def _checked(delay: Any) -> float:
    value = seconds(delay)
    if value < 0:
        raise ValueError(f"backoff has the negative delay {value:g}")
    return value


def _at_most_a_day(delay: Any) -> float:
    value = _checked(delay)
    if value > DAY:
        raise ValueError(f"backoff has the delay {value:g}; the longest is a day, {DAY:g} seconds")
    return value


@dataclass(frozen=True)
class _Growing:
    """What the policies have in common: their numbers are checked when they are made, not when a job has failed."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = _checked(getattr(self, field.name))
            most = {"jitter": 1.0, "cap": DAY}.get(field.name)
            if most is not None and value > most:
                raise ValueError(f"{field.name} of a backoff is {value:g}; it must be at most {most:g}")
            object.__setattr__(self, field.name, value)  # a timedelta in seconds


@dataclass(frozen=True)
class Polynomial(_Growing):
    """``attempt`` to the power of ``exponent`` seconds: 1, 16, 81, 256 ... for the default of 4."""

    exponent: float = 4.0
    jitter: float = 0.1
    cap: float = DAY

    def __call__(self, attempt: int, exception: BaseException | None = None, job: Any = None) -> float:
        return _bounded(1.0, float(attempt), self.exponent, self.jitter, self.cap)


@dataclass(frozen=True)
class Exponential(_Growing):
    """``base`` seconds, multiplied by ``factor`` for each further attempt."""

    base: float = 1.0
    factor: float = 2.0
    jitter: float = 0.1
    cap: float = DAY

    def __call__(self, attempt: int, exception: BaseException | None = None, job: Any = None) -> float:
        return _bounded(self.base, float(self.factor), attempt - 1, self.jitter, self.cap)


@dataclass(frozen=True)
class Linear(_Growing):
    """``step`` seconds times the attempt."""

    step: float = 60.0
    jitter: float = 0.1
    cap: float = DAY

    def __call__(self, attempt: int, exception: BaseException | None = None, job: Any = None) -> float:
        return _bounded(self.step, float(attempt), 1, self.jitter, self.cap)


@dataclass(frozen=True)
class Fixed(_Growing):
    """The same number of seconds each time."""

    delay: float = 60.0
    jitter: float = 0.0
    cap: float = DAY

    def __call__(self, attempt: int, exception: BaseException | None = None, job: Any = None) -> float:
        return _bounded(self.delay, 1.0, 1, self.jitter, self.cap)


def _bounded(factor: float, base: float, exponent: float, jitter: float, cap: float) -> float:
    """``factor * base ** exponent``, spread by ``jitter``, and ``cap`` at most, however large it is."""
    try:
        delay = factor * base**exponent
    except OverflowError:
        return float(cap)
    if jitter:
        delay *= random.uniform(1 - jitter, 1 + jitter)  # noqa: S311 - spreads load, guards nothing
    return max(0.0, min(float(delay), float(cap)))


Policy = Callable[[int, BaseException | None, Any], "float | dt.timedelta"]

DEFAULT: Policy = Polynomial()


def as_policy(backoff: Any) -> Policy:
    """Turn what ``@job(backoff=...)`` takes into a policy.

    :param backoff: seconds; a timedelta; a sequence of those, whose last one holds for all further attempts; or a
        callable of ``(attempt, exception, job)`` that returns one.
    :raises TypeError: when it is none of these.
    :raises ValueError: when a delay is negative, not finite or over a day, or the sequence is empty.
    """
    if backoff is None:
        return DEFAULT
    delays = in_seconds(backoff)
    if isinstance(delays, float):
        return Fixed(delays)
    if delays is not None:
        return lambda attempt, *_: delays[min(max(attempt, 1), len(delays)) - 1]
    if isinstance(backoff, type):
        raise TypeError(
            f"backoff is the class {backoff.__name__}; make an instance of it: {backoff.__name__}()"
        )
    if inspect.iscoroutinefunction(backoff):
        raise TypeError(f"backoff is the async function {backoff.__name__}; it must be a plain one")
    if callable(backoff):
        return backoff  # type: ignore[no-any-return]
    raise TypeError(
        f"backoff is {shown(backoff)}; it must be seconds, a timedelta, a sequence of those, or a callable of "
        f"(attempt, exception, job)"
    )


def in_seconds(backoff: Any) -> float | tuple[float, ...] | None:
    """The delay or the delays that are written down, in seconds; None where ``backoff`` is something else.

    :raises TypeError, ValueError: as :func:`as_policy`.
    """
    if isinstance(backoff, int | float | dt.timedelta) and not isinstance(backoff, bool):
        return _at_most_a_day(backoff)
    if isinstance(backoff, Sequence) and not isinstance(backoff, str | bytes):
        delays = tuple(_at_most_a_day(delay) for delay in backoff)
        if not delays:
            raise ValueError("backoff is an empty sequence; give at least one delay")
        return delays
    return None


def delay_after(policy: Policy, attempt: int, exception: BaseException | None, job: Any) -> float:
    """The seconds to wait after a failed attempt, by ``policy``, capped at a day.

    A policy that raises, or gives what is no delay of zero or more, falls back to the default and is logged: the
    job must not be lost to it.
    """
    if policy is DEFAULT:
        return policy(attempt, exception, job)  # type: ignore[return-value]
    try:
        return min(_checked(policy(attempt, exception, job)), DAY)
    except BaseException:  # SystemExit too: this is the site's code, in the worker's thread
        logger.exception("The backoff of job %s failed; the default is used", getattr(job, "id", "?"))
        return DEFAULT(attempt, exception, job)  # type: ignore[return-value]
