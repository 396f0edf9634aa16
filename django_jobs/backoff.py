"""How long a job waits after a failed attempt."""

from __future__ import annotations

import datetime as dt
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django_jobs.exceptions import seconds

logger = logging.getLogger("django_jobs.backoff")

DAY = 86_400.0


@dataclass(frozen=True)
class Polynomial:
    """``attempt`` to the power of ``exponent`` seconds: 1, 16, 81, 256 ... for the default of 4."""

    exponent: float = 4.0
    jitter: float = 0.1
    cap: float = DAY

    def __call__(self, attempt: int, exception: BaseException | None = None, job: Any = None) -> float:
        return _bounded(min(float(attempt), 1e6) ** self.exponent, self.jitter, self.cap)


@dataclass(frozen=True)
class Exponential:
    """``base`` seconds, multiplied by ``factor`` for each further attempt."""

    base: float = 1.0
    factor: float = 2.0
    jitter: float = 0.1
    cap: float = DAY

    def __call__(self, attempt: int, exception: BaseException | None = None, job: Any = None) -> float:
        try:
            delay = self.base * self.factor ** (attempt - 1)
        except OverflowError:
            delay = self.cap
        return _bounded(delay, self.jitter, self.cap)


@dataclass(frozen=True)
class Linear:
    """``step`` seconds times the attempt."""

    step: float = 60.0
    jitter: float = 0.1
    cap: float = DAY

    def __call__(self, attempt: int, exception: BaseException | None = None, job: Any = None) -> float:
        return _bounded(self.step * attempt, self.jitter, self.cap)


@dataclass(frozen=True)
class Fixed:
    """The same number of seconds each time."""

    delay: float = 60.0
    jitter: float = 0.0
    cap: float = DAY

    def __call__(self, attempt: int, exception: BaseException | None = None, job: Any = None) -> float:
        return _bounded(self.delay, self.jitter, self.cap)


def _bounded(delay: float, jitter: float, cap: float) -> float:
    if jitter:
        delay *= random.uniform(1 - jitter, 1 + jitter)  # noqa: S311 - spreads load, guards nothing
    return max(0.0, min(delay, cap))


Policy = Callable[[int, BaseException | None, Any], "float | dt.timedelta"]

DEFAULT: Policy = Polynomial()


def as_policy(backoff: Any) -> Policy:
    """Turn what ``@job(backoff=...)`` takes into a policy.

    :param backoff: seconds; a timedelta; a sequence of those, whose last one holds for all further attempts; or a
        callable of ``(attempt, exception, job)`` that returns one.
    :raises TypeError: when it is none of these.
    :raises ValueError: when a delay is negative or not finite, or the sequence is empty.
    """
    if backoff is None:
        return DEFAULT
    if isinstance(backoff, int | float | dt.timedelta) and not isinstance(backoff, bool):
        return Fixed(_checked(backoff))
    if isinstance(backoff, Sequence) and not isinstance(backoff, str | bytes):
        delays = tuple(_checked(delay) for delay in backoff)
        if not delays:
            raise ValueError("backoff is an empty sequence; give at least one delay")
        return lambda attempt, exception, job: delays[min(max(attempt, 1), len(delays)) - 1]
    if callable(backoff):
        return backoff  # type: ignore[no-any-return]
    raise TypeError(
        f"backoff is {backoff!r}; it must be seconds, a timedelta, a sequence of those, or a callable of "
        f"(attempt, exception, job)"
    )


def _checked(delay: Any) -> float:
    value = seconds(delay)
    if value < 0:
        raise ValueError(f"backoff has the negative delay {value}")
    return value


def delay_after(policy: Policy, attempt: int, exception: BaseException | None, job: Any) -> float:
    """The seconds to wait after a failed attempt, by ``policy``, capped at a day.

    A policy that raises, or gives what is no delay of zero or more, falls back to the default and is logged: the
    job must not be lost to it.
    """
    if policy is DEFAULT:
        return policy(attempt, exception, job)  # type: ignore[return-value]
    try:
        return min(_checked(policy(attempt, exception, job)), DAY)
    except Exception:
        logger.exception("The backoff of job %s failed; the default is used", getattr(job, "id", "?"))
        return DEFAULT(attempt, exception, job)  # type: ignore[return-value]
