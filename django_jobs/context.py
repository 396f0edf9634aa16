"""What a running job knows of itself: ``JobContext``, and ``current_job()`` for code deep inside."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_jobs.store.rows import JobRow
    from django_jobs.worker.signs import Signs


class JobContext:
    """The job that runs, given to functions with ``takes_context=True`` and to middleware.

    :param job: the job as it was claimed.
    :param signs: what the worker tells the job; None outside a worker.
    """

    __slots__ = ("_signs", "call", "job", "name")

    def __init__(self, job: JobRow | None, name: str, signs: Signs | None = None) -> None:
        self.job = job
        self.name = name
        self._signs = signs
        # The call of the function, for the innermost step of the middleware.
        self.call: Callable[[], Any] | None = None

    @classmethod
    def detached(cls, name: str) -> JobContext:
        """A context for a function that is called directly, with no job behind it."""
        return cls(None, name)

    def __repr__(self) -> str:
        return (
            f"<context of {self.job!r}>"
            if self.job is not None
            else f"<context of a direct call of {self.name}>"
        )

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.job.attempt if self.job is not None else 1

    def is_last_attempt(self) -> bool:
        """Whether a failure now makes the job a dead letter."""
        return self.job is None or self.job.attempt >= self.job.max_attempts

    def should_stop(self) -> bool:
        """Whether the job should end soon: its worker stops, it was cancelled, or its claim was lost."""
        return self.job is not None and self._signs is not None and self._signs.should_stop(self.job)


# Set by the executor to (job, definition, signs): the context is only made when somebody asks for it.
running: ContextVar[tuple[Any, Any, Any] | None] = ContextVar("django_jobs.running", default=None)


def current_job() -> JobContext | None:
    """The context of the job that runs here, or None outside of one."""
    here = running.get()
    if here is None:
        return None
    job, definition, signs = here
    return JobContext(job, definition.name, signs)
