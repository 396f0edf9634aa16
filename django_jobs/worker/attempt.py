"""One attempt of one job: from the claimed row to its outcome. Whatever the job does, an outcome comes of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial
from time import perf_counter
from typing import Any, Literal, TypeAlias, cast

from asgiref.sync import async_to_sync, sync_to_async

from django_jobs import limits
from django_jobs.attempt_state import STATE, AttemptState, running, state_of
from django_jobs.context import JobContext
from django_jobs.definitions import JobDefinition
from django_jobs.exceptions import Control
from django_jobs.job_registry import Registry
from django_jobs.serialization import decode
from django_jobs.signals import job_started, send
from django_jobs.store.outcomes import COMPLETED
from django_jobs.store.rows import ARGS, CLAIMS, ID, KWARGS, NAME, TIMEOUT, JobRow, Outcome
from django_jobs.worker import atomic, middleware, outcomes
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.copies import copied, leave
from django_jobs.worker.event_loop import EventLoop
from django_jobs.worker.outcomes import broken
from django_jobs.worker.signs import Signs
from django_jobs.worker.timeouts import Record, Timeouts, Watch

__all__ = ["FOR_THE_LOOP", "GIVEN_UP", "Attempted", "Instead", "Runner", "broken"]

NO_POSITIONAL: list[Any] = []
NO_KEYWORDS: dict[str, Any] = {}

# What run() says instead of an outcome: the job is for the event loop; or the attempt was given up, and is recorded
# without the caller.
FOR_THE_LOOP: Literal["for the loop"] = "for the loop"
GIVEN_UP: Literal["given up"] = "given up"
Instead: TypeAlias = Literal["for the loop", "given up"]

GiveUp: TypeAlias = Callable[[Record], None]

# A named tuple's own constructor is a function in Python; for the outcome that nearly all jobs have it would be a tenth
# of what the worker does around a job.
new: Any = tuple.__new__


class Runner:
    """Runs attempts: in the calling thread, or on the event loop.

    :param registry: the job functions that may be called.
    :param signs: what the worker tells its jobs.
    :param factories: the middleware; with none, nothing is paid for it.
    :param timeouts: watches attempts that have a timeout; without it they are told, and nothing more.
    :param loop: for ``async def`` jobs; without it they run in the calling thread.
    """

    def __init__(
        self,
        registry: Registry,
        signs: Signs,
        factories: Sequence[Callable[..., Any]] = (),
        timeouts: Timeouts | None = None,
        loop: EventLoop | None = None,
    ) -> None:
        self.registry = registry
        self.signs = signs
        self.timeouts = timeouts
        self.loop = loop
        # Made once, as Django makes its own: what is around the step that calls the job.
        self._around: Any = middleware.wrap(factories, _call_job, is_async=False) if factories else None
        self._around_async: Any = middleware.wrap(factories, _acall_job, is_async=True) if factories else None

    def run(self, job: JobRow, give_up: GiveUp | None = None) -> Attempted | Instead:
        """Call the job's function, and say how that ended. Raises nothing that the job raises.

        :param give_up: goes on without this attempt when that is late, and takes jobs for the event loop; without it,
            an :class:`Attempted` is returned, always.
        """
        values = job.values
        definition = self.registry.get(values[NAME])
        if definition is None:
            return outcomes.unregistered(job)
        usual = definition.is_plain and values[TIMEOUT] is None
        if not usual and definition.is_async and self.loop is not None and give_up is not None:
            return FOR_THE_LOOP
        if self.signs.cancelled and self.signs.is_cancelled(job):
            return outcomes.cancelled_before(job)
        started = perf_counter()
        try:
            args = NO_POSITIONAL if values[ARGS] == "[]" else decode(values[ARGS])
            kwargs = NO_KEYWORDS if values[KWARGS] == "{}" else decode(values[KWARGS])
            if args.__class__ is not list or kwargs.__class__ is not dict:
                raise ValueError("args must be a list and kwargs an object")
        except (ValueError, TypeError) as error:
            return outcomes.undecodable(job, definition, error)
        here = [job, definition, self.signs, None]
        # A context of its own: what the job sets (language, time zone, context variables) ends with it.
        try:
            if usual and definition.is_bare and self._around is None and not job_started.receivers:
                result = Context().run(_call_bare, here, definition.function, args, kwargs)
            elif usual:
                result = Context().run(self._call, here, args, kwargs)
            else:
                self._watch(here, give_up)
                call = self._call_atomic if definition.is_atomic else self._call
                result = Context().run(call, here, args, kwargs)
        except BaseException as error:
            # SystemExit, KeyboardInterrupt and GeneratorExit are the job's own, too.
            if copied:
                leave(error, values[ID])
            return self._ended(here, None, error, perf_counter() - started)
        if copied:
            leave(None, values[ID])
        seconds = perf_counter() - started
        if result is None and here[STATE] is None:
            outcome = new(Outcome, (values[ID], values[CLAIMS], COMPLETED, None, None, None, None))
            attempted: Attempted = new(Attempted, (outcome, job, seconds, None, None, None, False, None))
            return attempted
        return self._ended(here, result, None, seconds)

    def is_for_loop(self, job: JobRow) -> bool:
        """Whether :meth:`run` would leave this job to the event loop."""
        definition = self.registry.get(job.values[NAME])
        return definition is not None and definition.is_async and self.loop is not None

    async def arun(self, job: JobRow, give_up: GiveUp | None = None) -> Attempted | Instead:
        """:meth:`run` for an ``async def`` job, on the event loop, in a context that is the job's own already."""
        values = job.values
        definition = self.registry.get(values[NAME])
        if definition is None:
            return outcomes.unregistered(job)
        if self.signs.is_cancelled(job):
            return outcomes.cancelled_before(job)
        started = perf_counter()
        try:
            args, kwargs = decode(values[ARGS]), decode(values[KWARGS])
            if args.__class__ is not list or kwargs.__class__ is not dict:
                raise ValueError("args must be a list and kwargs an object")
        except (ValueError, TypeError) as error:
            return outcomes.undecodable(job, definition, error)
        here = [job, definition, self.signs, None]
        interruption = _Interruption(here)
        self._watch(here, give_up, interruption.late)
        self.signs.follow(interruption.told)
        interruption.told()  # what was said before it followed
        try:
            function, args, kwargs = self._prepared(here, args, kwargs)
            if job_started.receivers:  # which may use the database: in the job's own thread
                await sync_to_async(send)(job_started, values[NAME], job=job)
            result = await function(*args, **kwargs)
        except BaseException as error:
            if copied:
                leave(error, values[ID])
            return self._ended(here, None, error, perf_counter() - started)
        finally:
            # No await from here on: a cancellation that comes now would take the place of the outcome.
            self.signs.unfollow(interruption.told)
        if copied:
            leave(None, values[ID])
        return self._ended(here, result, None, perf_counter() - started)

    def _watch(
        self, here: list[Any], give_up: GiveUp | None, interrupt: Callable[[], None] | None = None
    ) -> None:
        """Watch the attempt if it has a timeout: the job's own, or for one enqueued without, the function's."""
        job: JobRow = here[0]
        seconds = job.values[TIMEOUT]
        if seconds is None:
            seconds = here[1].options.timeout
        if not isinstance(seconds, int | float) or not 0 < seconds <= limits.LONGEST_DELAY:
            return  # somebody's SQL may have written anything there
        watch = Watch(job, seconds)
        watch.interrupt = interrupt
        watch.give_up = give_up
        watch.record = partial(outcomes.given_up, here, watch)
        here[STATE] = AttemptState(watch)
        if self.timeouts is not None:
            self.timeouts.begin(watch)

    # -- the call --------------------------------------------------------------------------------------------------

    def _call(self, here: list[Any], args: list[Any], kwargs: dict[str, Any], *, told: bool = False) -> Any:
        running.set(here)
        if job_started.receivers and not told:
            send(job_started, here[0].values[NAME], job=here[0])
        definition: JobDefinition[Any, Any] = here[1]
        if self._around is not None or definition.is_async:
            function, args, kwargs = self._prepared(here, args, kwargs)
            return (async_to_sync(function) if definition.is_async else function)(*args, **kwargs)
        if definition.takes_context:
            args = [JobContext(here[0], definition.name, self.signs, here), *args]
        return definition.function(*args, **kwargs)

    def _call_atomic(self, here: list[Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        running.set(here)
        if job_started.receivers:  # before the transaction, which a receiver could break
            send(job_started, here[0].values[NAME], job=here[0])
        context = JobContext(here[0], here[1].name, self.signs, here)
        return atomic.call(context, lambda: self._call(here, args, kwargs, told=True))

    def _prepared(
        self, here: list[Any], args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
        """What to call, with the middleware around the function, and with what."""
        running.set(here)
        definition: JobDefinition[Any, Any] = here[1]
        if self._around is None and not definition.takes_context:
            return definition.function, args, kwargs
        context = JobContext(here[0], definition.name, self.signs, here)
        if definition.takes_context:
            args = [context, *args]
        if self._around is None:
            return definition.function, args, kwargs
        context.call = partial(definition.function, *args, **kwargs)
        return self._around_async if definition.is_async else self._around, [context], NO_KEYWORDS

    # -- its end ---------------------------------------------------------------------------------------------------

    def _ended(
        self, here: list[Any], result: Any, error: BaseException | None, seconds: float
    ) -> Attempted | Instead:
        """The outcome of a call that has returned, or raised."""
        job: JobRow = here[0]
        definition: JobDefinition[Any, Any] = here[1]
        state: AttemptState | None = here[STATE]
        if state is None:
            return outcomes.usual(job, definition, result, error, seconds)
        watch = state.watch
        if watch is not None and self.timeouts is not None and not self.timeouts.end(watch):
            return GIVEN_UP
        metadata = state.take_metadata()
        word = issubclass(type(result if error is None else error), Control)
        interrupted = issubclass(type(error), asyncio.CancelledError)
        if state.completed:
            attempted = outcomes.stored(state.row or job, state.result, error, seconds)
        elif state.told_cancelled and not word and (error is None or interrupted):
            attempted = outcomes.cancelled(job, result, seconds)
        elif watch is not None and not word and (state.told_late):
            attempted = outcomes.timed_out(job, definition, watch.seconds, seconds, error)
        else:
            attempted = outcomes.usual(job, definition, result, error, seconds)
        return attempted if metadata is None else attempted._replace(metadata=metadata)


class _Interruption:
    """How a job on the event loop is interrupted: its task is cancelled."""

    def __init__(self, here: list[Any]) -> None:
        self.here = here
        self.signs: Signs = here[2]
        self.task = cast("asyncio.Task[Any]", asyncio.current_task())
        self.event_loop = asyncio.get_running_loop()
        self.done = False

    def told(self) -> None:
        """The worker has said something: that the job is to be cancelled, perhaps, or that its claim is lost."""
        job: JobRow = self.here[0]
        cancelled = self.signs.is_cancelled(job)
        if not self.done and (cancelled or self.signs.is_lost(job)):
            self.done = True
            if cancelled:
                state_of(self.here).told_cancelled = True
            self.cancel()

    def late(self) -> None:
        """Its time is over. From any thread."""
        with contextlib.suppress(RuntimeError):  # as below
            self.event_loop.call_soon_threadsafe(self._cancel_late)

    def _cancel_late(self) -> None:
        # On the loop, so that the task is not over, or else can't be cancelled: it was told so, whatever it does then.
        if self.task.cancel():
            state_of(self.here).told_late = True

    def cancel(self) -> None:
        """Cancel the task, from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, and all on it cancelled
            self.event_loop.call_soon_threadsafe(self.task.cancel)


def _call_bare(here: list[Any], function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    running.set(here)
    return function(*args, **kwargs)


def _call_job(context: JobContext) -> Any:
    assert context.call is not None
    return context.call()


async def _acall_job(context: JobContext) -> Any:
    assert context.call is not None
    return await context.call()
