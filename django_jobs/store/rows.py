"""Rows as the statements return them: no model instance, nothing decoded before it is asked for."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from math import isfinite
from typing import Any, ClassVar, NamedTuple, Self

from django_jobs.serialization import decoded, stored_timestamp
from django_jobs.states import FINISHED
from django_jobs.store import following

# The last ones are those that need not come back from a claim: all of its jobs have them alike (see claims.claimed).
JOB_COLUMNS = (
    "id",
    "name",
    "args",
    "kwargs",
    "priority",
    "attempt",
    "max_attempts",
    "claims",
    "run_after",
    "created_at",
    "cancel_requested_at",
    "unique_key",
    "holds_key",
    "tags",
    "error_class",
    "errors",
    "result",
    "metadata",
    "timeout",
    "key_until",
    "attempted_at",
    "queue_name",
    "state",
    "worker_id",
    "finalized_at",
)
(
    ID,
    NAME,
    ARGS,
    KWARGS,
    PRIORITY,
    ATTEMPT,
    MAX_ATTEMPTS,
    CLAIMS,
    RUN_AFTER,
    CREATED_AT,
    CANCEL_REQUESTED_AT,
    UNIQUE_KEY,
    HOLDS_KEY,
    TAGS,
    ERROR_CLASS,
    ERRORS,
    RESULT,
    METADATA,
    TIMEOUT,
    KEY_UNTIL,
    ATTEMPTED_AT,
    QUEUE_NAME,
    STATE,
    WORKER_ID,
    FINALIZED_AT,
) = range(len(JOB_COLUMNS))


_MOMENTS = (RUN_AFTER, CREATED_AT, ATTEMPTED_AT, FINALIZED_AT, CANCEL_REQUESTED_AT, KEY_UNTIL)


def _plain(index: int) -> Any:
    return property(lambda row: row.values[index], doc=f"The column {JOB_COLUMNS[index]}.")


def _number(index: int) -> Any:
    def read(row: JobRow) -> Any:
        value = row.values[index]
        # SQLite takes anything from somebody's SQL, and both take what is infinite.
        return value if value is None or (isinstance(value, int | float) and isfinite(value)) else None

    return property(
        read, doc=f"The column {JOB_COLUMNS[index]}; None, too, where somebody's SQL has written no number."
    )


def _moment(index: int) -> Any:
    return property(
        lambda row: stored_timestamp(row.values[index]),
        doc=f"The column {JOB_COLUMNS[index]}: aware, or None, also where somebody's SQL has written no such time.",
    )


def _json(index: int, empty: Callable[[], Any]) -> Any:
    def read(row: JobRow) -> Any:
        text = row.values[index]
        return empty() if text is None else decoded(text)

    return property(read, doc=f"The column {JOB_COLUMNS[index]}, decoded now.")


class JobRow:
    """A job as the database last told it. It changes when it is asked to, by :meth:`refresh` and the like.

    ``args``, ``kwargs``, ``tags``, ``errors``, ``result`` and ``metadata`` are decoded each time they are read;
    ``run_after``, ``created_at``, ``attempted_at``, ``finalized_at`` and ``cancel_requested_at`` are aware datetimes
    in UTC.
    """

    # using: the alias that it was enqueued with, if one was given. Not set otherwise, so that it costs nothing.
    __slots__ = ("using", "values")
    using: str

    #: Of what an enqueue returned: whether it is a job that was there already and holds the unique key.
    is_duplicate: ClassVar[bool] = False

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values

    id: int = _plain(ID)
    name: str = _plain(NAME)
    queue_name: str = _plain(QUEUE_NAME)
    args: list[Any] = _json(ARGS, list)
    kwargs: dict[str, Any] = _json(KWARGS, dict)
    priority: int = _plain(PRIORITY)
    state: str = _plain(STATE)
    attempt: int = _plain(ATTEMPT)
    max_attempts: int = _plain(MAX_ATTEMPTS)
    claims: int = _plain(CLAIMS)
    run_after: dt.datetime = _moment(RUN_AFTER)
    created_at: dt.datetime = _moment(CREATED_AT)
    attempted_at: dt.datetime | None = _moment(ATTEMPTED_AT)
    finalized_at: dt.datetime | None = _moment(FINALIZED_AT)
    cancel_requested_at: dt.datetime | None = _moment(CANCEL_REQUESTED_AT)
    worker_id: int | None = _number(WORKER_ID)
    unique_key: str | None = _plain(UNIQUE_KEY)
    holds_key: bool = property(
        lambda row: bool(row.values[HOLDS_KEY]), doc="Whether it holds its unique key."
    )  # type: ignore[assignment]
    tags: list[str] = _json(TAGS, list)
    error_class: str | None = _plain(ERROR_CLASS)
    errors: list[dict[str, Any]] = _json(ERRORS, list)
    result: Any = _json(RESULT, lambda: None)
    metadata: dict[str, Any] = _json(METADATA, dict)
    timeout: float | None = _number(TIMEOUT)
    key_until: dt.datetime | None = _moment(KEY_UNTIL)

    # -- the job as it becomes, for scripts and tests ----------------------------------------------------------------

    @property
    def is_finished(self) -> bool:
        """Whether the job was completed, failed for good, or was cancelled, when the database last told."""
        return self.values[STATE] in FINISHED

    def refresh(self, using: str | None = None) -> Self:
        """Read the row again, into this object, which is returned.

        :param using: the alias of the database; by default the one that the job was enqueued with.
        :raises Job.DoesNotExist: when there is no such job any more.
        """
        return following.refresh(self, using)

    async def arefresh(self, using: str | None = None) -> Self:
        """:meth:`refresh`, from async code."""
        return await following.arefresh(self, using)

    def wait(self, timeout: float | None = None, using: str | None = None) -> Self:
        """Wait until the job is finished: completed, failed for good, or cancelled.

        :param timeout: seconds to wait at most; None to wait for as long as it takes.
        :returns: this object, with ``state``, ``result`` and ``errors`` as they are then.
        :raises TimeoutError: when the job is not finished by then; this object has its latest state.
        :raises Job.DoesNotExist: when there is no such job any more.
        :raises TransactionManagementError: inside ``transaction.atomic()``, where a job that was enqueued waits for
            the commit.
        """
        return following.wait(self, timeout, using)

    async def await_end(self, timeout: float | None = None, using: str | None = None) -> Self:  # noqa: ASYNC109
        """:meth:`wait`, from async code."""
        return await following.await_end(self, timeout, using)

    def __repr__(self) -> str:
        return f"<job {self.id} {self.name} {self.state}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JobRow):
            return False
        # The same moment is text on one connection and a datetime on another.
        return other.values == self.values or _with_moments(other) == _with_moments(self)

    def __hash__(self) -> int:
        return hash(self.values[ID])


def _with_moments(job: JobRow) -> list[Any]:
    values = list(job.values)
    for index in _MOMENTS:
        # What somebody's SQL wrote there is compared as it is.
        values[index] = stored_timestamp(values[index]) or values[index]
    return values


class Duplicate(JobRow):
    """The job that an enqueue found instead of inserting one. (A class, so that no other row carries a flag.)"""

    __slots__ = ()

    is_duplicate: ClassVar[bool] = True


class NewJob(NamedTuple):
    """What is inserted. All of it has been checked; ``args``, ``kwargs``, ``tags`` and ``metadata`` are encoded; times
    in seconds.

    With ``unique_for`` the key is held for the rest of the current period of that many seconds, which is part of the
    key. ``replace``: a waiting job that holds the key takes over these arguments and this time.
    """

    name: str
    queue_name: str = "default"
    priority: int = 0
    max_attempts: int = 5
    run_after: dt.datetime | None = None
    delay: float | None = None
    args: str = "[]"
    kwargs: str = "{}"
    pending: bool = False
    timeout: float | None = None
    tags: str | None = None
    unique_key: str | None = None
    unique_for: int | None = None
    replace: bool = False
    metadata: str | None = None

    @property
    def shape(self) -> tuple[Any, ...]:
        """The options, without what is each job's own: few jobs of one call differ in them."""
        return (*self[:6], *self[8:11], self[14])


class Outcome(NamedTuple):
    """How a claim ended. ``(id, claims)`` is the claim; ``kind`` a word of :mod:`django_jobs.store.outcomes`."""

    id: int
    claims: int
    kind: str
    delay: float | None = None
    error_class: str | None = None
    errors: str | None = None
    result: str | None = None


class WorkerRow(NamedTuple):
    """A worker as its statements return it."""

    id: int
    host: str
    pid: int
    started_at: Any
    heartbeat_at: Any
    expires_at: Any
    quiet_requested_at: Any
    stop_requested_at: Any
    stopped_at: Any
    lost_at: Any


WORKER_COLUMNS = WorkerRow._fields


class ScheduleRow(NamedTuple):
    """A schedule as its statements return it: JSON and times are texts, and one that does not decode harms no other.

    ``args``, ``kwargs`` and ``options`` are JSON; :func:`~django_jobs.serialization.parse_timestamp` reads the times.
    """

    id: int
    key: str
    name: str
    expression: str
    timezone: str
    missed: str
    args: str
    kwargs: str
    options: str
    owed_after: Any
    last_tick: Any
    next_tick: Any
    last_job_id: int | None
    last_error: str
    paused_at: Any
    removed_at: Any


SCHEDULE_COLUMNS = ScheduleRow._fields


class NewSchedule(NamedTuple):
    """A schedule as the code declares it. All of it has been checked; ``args``, ``kwargs``, ``options`` are JSON."""

    key: str
    name: str
    expression: str
    timezone: str = "UTC"
    missed: str = "latest"
    args: str = "[]"
    kwargs: str = "{}"
    options: str = "{}"


class QueueRow(NamedTuple):
    """A queue's row."""

    name: str
    paused_at: dt.datetime | None
    metadata: dict[str, Any]


class LeadershipRow(NamedTuple):
    """Who leads, until when; ``term`` counts the holders."""

    name: str
    holder: str
    term: int
    expires_at: dt.datetime
