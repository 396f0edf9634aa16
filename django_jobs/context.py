"""What a running job knows of itself, and can do: ``JobContext``, and ``current_job()`` for code deep inside."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connections, transaction
from django.db.transaction import TransactionManagementError

from django_jobs import conf
from django_jobs.attempt_state import STATE, AttemptState, joined, running, state_of
from django_jobs.databases import jobs_database
from django_jobs.exceptions import Cancel, ClaimLost, Snooze
from django_jobs.results import encode_result
from django_jobs.serialization import NotStorable, encode, encode_storable, shown
from django_jobs.store import django_store
from django_jobs.store.outcomes import COMPLETED
from django_jobs.store.rows import JobRow, Outcome
from django_jobs.stored_backoff import KEY as BACKOFF

if TYPE_CHECKING:
    from django_jobs.worker.signs import Signs

logger = logging.getLogger("django_jobs.attempts")

# Progress is written this often at most, by each job; what comes between is written with the next, or with the outcome.
PROGRESS_SECONDS = 1.0
NOTE_LENGTH = 500


class JobContext:
    """The job that runs, given to functions with ``takes_context=True`` and to middleware.

    It may be used in any thread that works for the job. Methods that read or write the database have a variant for
    async code, whose name begins with ``a``.

    :param job: the job as it was claimed.
    :param signs: what the worker tells the job; None outside a worker.
    :param here: what the attempt shares with all contexts of it.
    """

    __slots__ = ("_here", "_signs", "call", "job", "name")

    def __init__(
        self, job: JobRow | None, name: str, signs: Signs | None = None, here: list[Any] | None = None
    ) -> None:
        self.job = job
        self.name = name
        self._signs = signs
        self._here: list[Any] = here if here is not None else [job, None, signs, None]
        # The call of the function, for the innermost step of the middleware.
        self.call: Callable[[], Any] | None = None

    @classmethod
    def detached(cls, name: str) -> JobContext:
        """A context for a function that is called directly, with no job behind it: what it stores goes nowhere."""
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

    # -- time ------------------------------------------------------------------------------------------------------

    def should_stop(self) -> bool:
        """Whether the job should end soon: its worker stops, it was cancelled, its time is over, or its claim was lost.

        A job that returns after it was told so, because it was cancelled or late, ends as cancelled or timed out.
        """
        if self.job is None:
            return False
        signs = self._signs
        if signs is not None and signs.should_stop(self.job):
            if signs.is_cancelled(self.job):
                state_of(self._here).told_cancelled = True
            return True
        state: AttemptState | None = self._here[STATE]
        if state is None:
            return False
        if state.watch is not None and state.watch.is_late():
            state.told_late = True
            return True
        return state.lost

    def heartbeat(self) -> bool:
        """Start the job's timeout anew: for a job that takes long, step by step. Costs nothing, so call it freely.

        :returns: False when it came too late: the time is over, and the job should end; if it returns then, it ends as
            timed out. True otherwise.
        """
        state: AttemptState | None = self._here[STATE]
        if state is None or state.watch is None or state.watch.extend():
            return True
        state.told_late = True
        return False

    def told(self) -> Literal["cancelled", "late"] | None:
        """Why the job was told to end by itself, if it was."""
        state: AttemptState | None = self._here[STATE]
        if state is None:
            return None
        return "cancelled" if state.told_cancelled else "late" if state.told_late else None

    # -- metadata and progress -------------------------------------------------------------------------------------

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Say how far the job is, for people to see: stored as ``metadata["progress"]``, at most once a second.

        May be called for every item. In a transaction, or in a coroutine, it is stored later, at the latest with the
        job's outcome.

        :param done: how much is done, in units of your own.
        :param total: how much there is, if that is known.
        :param note: what is being done, in words.
        :raises ClaimLost: when the job is no longer this worker's.
        """
        state = self._note_progress(done, total, note)
        if state is not None and not _in_event_loop():
            self._write_progress(state)

    async def aprogress(self, done: float, total: float | None = None, note: str = "") -> None:
        """:meth:`progress`, from async code."""
        state = self._note_progress(done, total, note)
        if state is not None:
            await sync_to_async(self._write_progress)(state)

    def _note_progress(self, done: Any, total: Any, note: Any) -> AttemptState | None:
        """Keep it to be stored; the state, if it is time to store it now."""
        for name, value in (("done", done), ("total", total)):
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not number and not (name == "total" and value is None):
                raise TypeError(f"progress({name}=...) is {shown(value)}; it must be a finite number.")
        if not isinstance(note, str):
            raise TypeError(f"progress(note=...) is {shown(note)}; it must be text.")
        text = encode_storable({"done": done, "total": total, "note": note[:NOTE_LENGTH]}, "the progress")
        if self.job is None:
            return None
        state = state_of(self._here)
        if self._has_completed(state):  # it is done; nobody looks at how far
            return None
        now = time.monotonic()
        with state.lock:
            if state.progressed_at == math.inf:  # it is too much
                return None
            state.metadata["progress"] = text
            if state.progressed_at is not None and now - state.progressed_at < PROGRESS_SECONDS:
                return None
        return state

    def _write_progress(self, state: AttemptState) -> None:
        if connections[self.using].in_atomic_block:
            return
        state.progressed_at = time.monotonic()
        try:
            self._flush(state)
        except NotStorable as error:  # said once, and no more of it is kept
            state.progressed_at = math.inf
            state.take_back(["progress"])
            logger.warning("The progress of job %s is not stored: %s", self.job, error)
        except DatabaseError as error:  # no reason for the job to fail; it is kept, and written with the next
            logger.warning("The progress of job %s could not be stored yet: %s", self.job, error)

    def merge_metadata(self, values: Mapping[str, Any], *, later: bool = False) -> None:
        """Merge keys into the job's metadata; each top-level key replaces what the job has under it.

        One statement, in the transaction that is open, if one is. With ``later``, none: the values are stored together
        with the job's outcome, whatever that is; unless all metadata of the job would be over
        ``DJANGO_JOBS["MAX_METADATA_BYTES"]`` then, which is logged.

        :param values: JSON, with keys that are strings.
        :raises NotStorable: for values that can't be stored, or are too much with what the job has; the message says
            what, where, and what to do. Nothing was stored.
        :raises ClaimLost: when the job is no longer this worker's; nothing was stored.
        :raises RuntimeError: when the job has completed itself: a finished job takes none.
        """
        texts = _encoded(values)
        if self.job is None or not texts:
            return
        state = state_of(self._here)
        if self._has_completed(state):
            raise RuntimeError(
                f"Job {self.job.id} has completed itself already, and takes no metadata. Merge it before complete()."
            )
        with state.lock:
            before = dict(state.metadata)
            state.metadata.update(texts)
            if later:
                size, most = len(joined(state.metadata).encode()), conf.get("MAX_METADATA_BYTES")
                if size > most:
                    state.take_back(texts, before)
                    raise NotStorable(_too_much(f"what is to be merged later has {size:,} bytes,", most))
                return
        try:
            self._flush(state, before)
        except NotStorable:
            state.take_back(texts, before)
            raise

    async def amerge_metadata(self, values: Mapping[str, Any], *, later: bool = False) -> None:
        """:meth:`merge_metadata`, from async code."""
        if later:
            self.merge_metadata(values, later=True)
        else:
            await sync_to_async(self.merge_metadata)(values)

    def _flush(self, state: AttemptState, later: Mapping[str, str] | None = None) -> None:
        """Store what is to be merged, now.

        :param later: what of it has to be stored whatever becomes of the transaction that is open, if one is.
        """
        assert self.job is not None
        with state.lock:
            values, state.metadata = state.metadata, {}
        if not values:
            return
        most = conf.get("MAX_METADATA_BYTES")
        patch = (self.job.id, self.job.claims, joined(values))
        try:
            merged = django_store(self.using).merge_metadata([patch], most)
            if merged and not merged[0].done:
                raise NotStorable(_too_much("the metadata would, with what the job has, be", most))
        except BaseException:
            with state.lock:
                state.metadata = {**values, **state.metadata}
            raise
        if not merged:
            self._lose(state)
        if later and _is_in_transaction(self.using):
            with state.lock:
                state.unsure.update(later)
        if state.unsure:
            if _is_in_transaction(self.using):
                transaction.on_commit(partial(state.merged, list(values)), using=self.using)
            else:
                state.merged(values)

    # -- outcomes --------------------------------------------------------------------------------------------------

    def snooze(self, delay: float | dt.timedelta) -> NoReturn:
        """End the attempt here, run the job again ``delay`` (seconds, or a timedelta) from now; no attempt is spent."""
        raise Snooze(delay)

    def cancel(self, reason: str = "") -> NoReturn:
        """End the job here, as cancelled."""
        raise Cancel(reason)

    def complete(self, result: Any = None) -> None:
        """Store the job's completion in your own transaction: what you wrote and the completion are committed together.

        Call it inside ``transaction.atomic()`` on the jobs' database, as the last thing::

            with transaction.atomic():
                Invoice.objects.create(...)
                context.complete()

        Once that is committed the job is completed, whatever the function does then. In ``async def`` functions, call
        it in the synchronous function that holds the transaction.

        :raises ClaimLost: when the job is no longer this worker's. Let it pass, so that the transaction is rolled back:
            the job runs elsewhere.
        :raises TransactionManagementError: outside of a transaction.
        :raises ResultNotStorable: for a result that can't be stored.
        """
        if not self.complete_once(result) and self.job is not None:
            raise RuntimeError(f"Job {self.job.id} has completed itself already.")

    def complete_once(self, result: Any = None) -> bool:
        """:meth:`complete`; False when this attempt has done so already, in this transaction or an earlier one."""
        text = encode_result(result)
        if self.job is None:
            return False
        using = self.using
        if not connections[using].in_atomic_block:
            raise TransactionManagementError(
                f"context.complete() stores the job's completion in your transaction, and there is none on database "
                f"{using!r}. Call it inside transaction.atomic(using={using!r}), or just return the result."
            )
        state = state_of(self._here)
        if self._has_completed(state):
            return False
        if state.metadata:  # a finished job takes none
            try:
                self._flush(state, dict(state.metadata))
            except NotStorable as error:
                state.take_metadata()
                logger.error("The metadata of job %s is not stored: %s", self.job.id, error)
        store, outcome = django_store(using), Outcome(self.job.id, self.job.claims, COMPLETED, result=text)
        if COMPLETED in conf.unkept(self.job.queue_name):
            unkept = {self.job.id: (COMPLETED,)}
            ended = store.finish_and_delete([outcome], unkept, whole_rows=True)
        else:
            ended = store.finish([outcome])
        if not ended or not ended[0].stored:
            row = ended[0].job if ended else None
            if row is not None and row.state == COMPLETED and row.claims == self.job.claims:
                return False
            self._lose(state)
        state.completing = partial(_completed, state, text, ended[0].job)
        transaction.on_commit(state.completing, using=using)
        # First of all that waits for the commit: a function of the job's own that raises keeps those behind it from
        # being called, and the completion is stored all the same.
        connection = connections[using]
        waiting = connection.run_on_commit
        # Not within a TestCase, which commits nothing, and counts what was there before.
        if (
            waiting
            and waiting[-1][1] is state.completing
            and not any(map(_is_of_a_test, connection.atomic_blocks))
        ):
            waiting.insert(0, waiting.pop())
        return True

    def _has_completed(self, state: AttemptState) -> bool:
        """Whether the job has completed itself: for good, or in the transaction that is open."""
        return state.completed or (state.completing is not None and state.is_completing(self.using))

    def _lose(self, state: AttemptState) -> NoReturn:
        assert self.job is not None
        state.lost = True
        raise ClaimLost(
            f"Job {self.job.id} is no longer this worker's: it was rescued, timed out, finished or deleted, and may "
            f"run elsewhere."
        )

    @property
    def using(self) -> str:
        """The alias of the database that holds the job."""
        return jobs_database(self._signs.using if self._signs is not None else None)


def _completed(state: AttemptState, text: str | None, row: JobRow | None) -> None:
    state.result = text
    state.row = row
    state.completed = True


def _encoded(values: Any) -> dict[str, str]:
    """Each value's text. Raises NotStorable, TypeError."""
    if not isinstance(values, Mapping):
        raise TypeError(f"merge_metadata() takes a dict, not {shown(values)}.")
    if BACKOFF in values:
        raise NotStorable(
            f"the metadata has the key {BACKOFF!r}, under which a job carries the backoff that it was enqueued with; "
            f"use another key"
        )
    size, most = len(encode_storable(dict(values), "the metadata").encode()), conf.get("MAX_METADATA_BYTES")
    if size > most:
        raise NotStorable(_too_much(f"the metadata has {size:,} bytes,", most))
    return {key: encode(value) for key, value in values.items()}


def _too_much(what: str, most: int) -> str:
    return (
        f"{what} over the limit of {most:,} bytes as JSON; store the data elsewhere, and its key here, or raise "
        f"DJANGO_JOBS['MAX_METADATA_BYTES']"
    )


def _is_in_transaction(using: str) -> bool:
    """Whether a transaction is open; that around a TestCase is none."""
    return not all(map(_is_of_a_test, connections[using].atomic_blocks))


def _is_of_a_test(block: Any) -> bool:
    return getattr(block, "_from_testcase", False)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def current_job() -> JobContext | None:
    """The context of the job that runs here, or None outside of one."""
    here = running.get()
    if here is None:
        return None
    job, definition, signs, _ = here
    return JobContext(job, definition.name, signs, here)
