"""What is done with each job as it is enqueued: run at once, or noted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from asgiref.sync import sync_to_async

from django_jobs import enqueueing
from django_jobs.databases import jobs_database
from django_jobs.store import django_store
from django_jobs.store.rows import JobRow
from django_jobs.testing.running import Hand

Follower = Callable[[list[JobRow], str], None]


@contextmanager
def immediate(*, raise_errors: bool = False) -> Iterator[None]:
    """While it lasts, a job runs as it is enqueued, if it is due: ``enqueue()`` returns it as it is then.

    In the caller's transaction, before that commits; so this is no test of what happens only after a commit.

    :param raise_errors: raise what a job raised out of ``enqueue()``, once that is recorded.
    """

    def run(jobs: list[JobRow], alias: str) -> None:
        for job in jobs:
            if job.is_duplicate or job.state != "available":
                continue
            with Hand.of(alias, raise_errors) as hand:
                for after in hand.run(hand.claim_one(job.id)):
                    job.values = after.values

    with _following(run):
        yield


class capture_jobs:  # noqa: N801 - used as a function
    """Note the jobs that are enqueued in the block: ``with capture_jobs() as jobs: ...``.

    ``jobs`` grows as they are enqueued. After the block it holds those that are stored: not those that were rolled
    back, and no duplicates. ``async with`` does it in async tests.

    :param execute: run those that are due at the end of the block, and have them as they are then.
    :param raise_errors: with ``execute``, raise what a job raised.
    :param using: the alias of the database; by default any.
    """

    def __init__(
        self, *, execute: bool = False, raise_errors: bool = False, using: str | None = None
    ) -> None:
        self.execute = execute
        self.raise_errors = raise_errors
        self.using = using
        self.jobs: list[JobRow] = []
        self._aliases: list[str] = []

    def __enter__(self) -> list[JobRow]:
        self.jobs.clear()
        self._aliases.clear()
        self._follow = _following(self._note)
        self._follow.__enter__()
        return self.jobs

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._follow.__exit__(kind, error, trace)
        if error is None:
            self._settle()

    async def __aenter__(self) -> list[JobRow]:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._follow.__exit__(kind, error, trace)
        if error is None:
            await sync_to_async(self._settle)()

    def _note(self, jobs: list[JobRow], alias: str) -> None:
        if self.using is not None and jobs_database(self.using) != alias:
            return
        new = [job for job in jobs if not job.is_duplicate]
        self.jobs += new
        self._aliases += [alias] * len(new)

    def _settle(self) -> None:
        # The last one with each id: SQLite gives the id of one that was rolled back to the next.
        last = {(alias, job.id): job for job, alias in zip(self.jobs, self._aliases, strict=True)}
        self.jobs.clear()
        for (alias, _), job in last.items():
            stored = django_store(alias).get([job.id])
            if not stored:
                continue
            if self.execute and stored[0].state == "available":
                with Hand.of(alias, self.raise_errors) as hand:
                    stored = hand.run(hand.claim_one(job.id)) or stored
            job.values = stored[0].values
            self.jobs.append(job)


@contextmanager
def _following(follower: Follower) -> Iterator[None]:
    before = enqueueing.followers
    enqueueing.followers = (*before, follower)
    try:
        yield
    finally:
        enqueueing.followers = tuple(each for each in enqueueing.followers if each is not follower)
