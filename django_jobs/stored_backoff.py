"""A backoff of one job's own, ``.using(backoff=...)``: written into its row, and read when an attempt has failed.

It stands in the metadata under a key that nothing else writes to: a delay as a number of seconds, a sequence as a list
of them, a policy as an object that names it. What has to be called can't be written down, and stays the function's.
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django_jobs import limits
from django_jobs.backoff import Exponential, Fixed, Linear, Policy, Polynomial, as_policy, in_seconds
from django_jobs.exceptions import InvalidJob
from django_jobs.serialization import encode, shown
from django_jobs.store.rows import METADATA, JobRow

if TYPE_CHECKING:
    from django_jobs.definitions import JobDefinition

logger = logging.getLogger("django_jobs.backoff")

#: The key of the metadata. Handlers see it, and can't merge into it.
KEY = "django_jobs.backoff"

Growing = Polynomial | Exponential | Linear | Fixed
#: What a job can carry, once checked: seconds, or one of the policies.
Stored = float | tuple[float, ...] | Growing

_POLICIES: dict[str, type[Growing]] = {
    kind.__name__: kind for kind in (Polynomial, Exponential, Linear, Fixed)
}


def check(backoff: Any, name: str) -> Stored:
    """Return the backoff as a row can hold it, else raise InvalidJob."""
    try:
        as_policy(backoff)
        delays = in_seconds(backoff)
    except (TypeError, ValueError) as error:
        raise InvalidJob(f"backoff of {name}: {error}.") from None
    if isinstance(delays, tuple) and len(delays) > limits.MOST_DELAYS:
        raise InvalidJob(
            f"backoff of {name} has {len(delays)} delays, and a job's row takes {limits.MOST_DELAYS} at most; the last "
            f"one holds on. Give fewer, or put it on the function: @job(backoff=...)."
        )
    if delays is not None:
        return delays
    # Of a subclass only the worker's code knows what it does.
    if type(backoff) in _POLICIES.values():
        policy: Growing = backoff
        return policy
    raise InvalidJob(
        f"backoff of {name} is {shown(backoff)}, which can't be written into a job's row. Give using() seconds, a "
        f"timedelta, a sequence of those, or a policy of django_jobs.backoff; a callable of your own goes on the "
        f"function: @job(backoff=...)."
    )


def encoded(backoff: Stored) -> str:
    """The metadata of a job that carries this backoff, as JSON."""
    value = {"policy": type(backoff).__name__, **asdict(backoff)} if isinstance(backoff, Growing) else backoff
    return encode({KEY: value})


def policy_of(job: JobRow, definition: JobDefinition[Any, Any]) -> Policy:
    """The policy of a job that has failed: its own, or its function's.

    A row may have been written by other code, or by somebody's SQL: what can't be read there is logged, and counts as
    none.
    """
    if job.values[METADATA] is None:
        return definition.backoff
    try:
        metadata: Any = job.metadata
        if not isinstance(metadata, dict) or KEY not in metadata:
            return definition.backoff
        return _decoded(metadata[KEY])
    except Exception as error:  # noqa: BLE001 - whatever stands there, the failure must be recorded
        logger.error(
            "The backoff that job %s carries can't be read, and its function's is used: %s", job.id, error
        )
        return definition.backoff


def _decoded(value: Any) -> Policy:
    if isinstance(value, dict):
        numbers = dict(value)
        name = numbers.pop("policy", None)
        if not isinstance(name, str) or name not in _POLICIES:
            raise ValueError(f"there is no policy {shown(name)}")
        return _POLICIES[name](**numbers)
    if value is None:
        raise TypeError("it is null")
    return as_policy(value)
