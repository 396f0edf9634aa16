"""The executors of one pool: threads that run jobs, lend their places to jobs on the event loop, and hand on how all of
them ended.

A pool has as many places (slots) as jobs may run in it at once. A place belongs to a thread, or to one async job: a
thread that meets an async job lends it its place, and is spare until a place is free again. So the limit holds whatever
the mix, no thread waits beside an async job, and a queue of async jobs runs from one to the next on the loop alone.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from django_jobs.store.rows import JobRow
from django_jobs.worker import connections, copies
from django_jobs.worker.attempt import FOR_THE_LOOP, GIVEN_UP, Attempted, Instead, Runner, broken
from django_jobs.worker.buffer import Buffer
from django_jobs.worker.parts import log_exception
from django_jobs.worker.timeouts import Record

logger = logging.getLogger("django_jobs.worker")

# A spare thread ends when it was not needed for so long.
SPARE_SECONDS = connections.TRUST_SECONDS
# After a failure beside its jobs an executor waits for this long, should it fail again at once.
RECOVERY_SECONDS = 1.0


class Slot:
    """A place of the pool, and what runs in it; written by whoever has it, read by others."""

    __slots__ = ("done", "job", "seconds", "thread")

    def __init__(self) -> None:
        self.job: JobRow | None = None
        self.done = 0
        self.seconds = 0.0
        self.thread: threading.Thread | None = None  # None while the place is lent


# A place, and what its thread is to record first.
Place: TypeAlias = tuple[Slot, Record | None]


class Executors:
    """The places of one pool, and its threads. Daemons: a job that does not end keeps no process alive.

    :param size: how many jobs run at once.
    :param emit: takes each attempt that is over; may wait, to hold the executors back.
    :param crowded: whether ``emit`` would wait now; the event loop never does.
    """

    name = "executors"

    def __init__(
        self,
        buffer: Buffer,
        runner: Runner,
        emit: Callable[[Attempted], None],
        size: int,
        crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        self.buffer = buffer
        self.runner = runner
        self.emit = emit
        self.crowded = crowded
        self.slots = [Slot() for _ in range(size)]
        self._changed = threading.Condition()
        self._taken: set[Slot] = set()  # by a thread or an async job; empty when all has ended
        self._threads: set[threading.Thread] = set()
        self._spare = 0
        self._freed: queue.SimpleQueue[Place | None] = queue.SimpleQueue()  # for spare threads; None: end
        self._started = 0
        self._unstarted: deque[Place] = deque()  # for which no thread could be started
        self._short_of_threads = False  # and that was told

    def start(self) -> None:
        """Start the threads; executors that were stopped can be started again."""
        copies.began()
        self.buffer.open()
        for slot in self.slots:
            with self._changed:
                if slot in self._taken:
                    continue
                self._taken.add(slot)
            try:
                self._start_thread(slot)
            except BaseException:
                self._leave(slot)
                raise

    def stop(self) -> None:
        """Ask the threads to end, each when its job has ended. What is still in the buffer stays there."""
        self.buffer.close()
        with self._changed:
            for _ in range(self._spare):
                self._freed.put(None)
            self._spare = 0

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all jobs and threads have ended; whether they have. Attempts that were given up don't count."""
        deadline = None if timeout is None else time.monotonic() + timeout
        self.recover()
        with self._changed:
            if not self._changed.wait_for(lambda: not self._taken, timeout):
                return False
            threads = list(self._threads)
        for thread in threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def recover(self) -> None:
        """Try again to start the threads that could not be started. To be called now and then; costs nothing else."""
        for _ in range(len(self._unstarted)):
            self._hand_to_thread(*self._unstarted.popleft())

    def totals(self) -> tuple[int, float]:
        """Jobs done so far, and the seconds they took, added up."""
        return sum([slot.done for slot in self.slots]), sum([slot.seconds for slot in self.slots])

    def running(self) -> list[JobRow]:
        """The jobs that run now."""
        return [job for slot in self.slots if (job := slot.job) is not None]

    @property
    def idle(self) -> bool:
        """Whether every place waits for a job and nothing is buffered."""
        return self.buffer.waiting == len(self.slots) and not self.buffer.jobs

    # -- threads ---------------------------------------------------------------------------------------------------

    def _start_thread(self, slot: Slot, first: Record | None = None) -> None:
        with self._changed:
            self._started += 1
            thread = threading.Thread(
                target=self._loop,
                args=(slot, first),
                name=f"django_jobs-executor-{self._started}",
                daemon=True,
            )
            self._threads.add(thread)
        try:
            thread.start()
        except BaseException:
            with self._changed:
                self._threads.discard(thread)
            raise

    def _loop(self, slot: Slot, first: Record | None) -> None:
        thread = threading.current_thread()
        place: Place | None = (slot, first)
        try:
            while place is not None:
                slot, first = place
                if first is not None:
                    self._emit_record(slot, first)
                place = self._wait_for_a_place() if self._keep_at_work(slot) == FOR_THE_LOOP else None
        finally:
            connections.close_all()
            with self._changed:
                self._threads.discard(thread)
                self._changed.notify_all()

    def _keep_at_work(self, slot: Slot) -> Instead | None:
        """:meth:`_work`, whatever happens."""
        while True:
            try:
                return self._work(slot)
            except BaseException:
                # No job's error comes here. Whatever it is: a pool must not lose its threads one by one.
                log_exception(logger, "An executor failed beside its jobs, and goes on")
                slot.job = None
                connections.close_all()
                time.sleep(RECOVERY_SECONDS)

    def _work(self, slot: Slot) -> Instead | None:
        """Run jobs in this place: until the end (None), or until the place is lent, or was given to another thread."""
        buffer, run, emit, tidy = self.buffer, self.runner.run, self.emit, connections.tidy
        jobs = buffer.jobs
        slot.thread = threading.current_thread()
        give_up = partial(self._give_up, slot, slot.thread)
        connected = False
        while not buffer.closed:
            try:
                job = jobs.popleft()
            except IndexError:
                waited = self._wait(connected)
                if waited is None:
                    connected = False
                    continue
                job = waited
            if len(jobs) < buffer.low and not buffer.low_told:
                buffer.tell_low()
            slot.job = job
            try:
                attempted = run(job, give_up)
                if isinstance(attempted, str):
                    if attempted == FOR_THE_LOOP:
                        self._lend(slot, job)
                    return attempted
            except BaseException as error:
                # Ours, not the job's: what the job raises ends up in its outcome. The thread must live.
                log_exception(logger, "The executor failed at job %s", job.id)
                attempted = broken(job, error)
            connected = tidy()
            slot.done += 1
            slot.seconds += attempted.seconds
            emit(attempted)
            slot.job = None
        self._leave(slot)
        return None

    def _wait(self, connected: bool) -> JobRow | None:
        """Wait for a job, and see to this thread's connections meanwhile: idle ones are closed."""
        if not connected:
            return self.buffer.wait()
        since = time.monotonic()
        job = self.buffer.wait(connections.KEEP_SECONDS)
        if job is None:
            connections.close_all()
        elif connections.tidy() and time.monotonic() - since >= connections.TRUST_SECONDS:
            connections.ask_before_use()
        return job

    def _leave(self, slot: Slot) -> None:
        """Nothing runs in this place any more: the executors stop."""
        with self._changed:
            self._taken.discard(slot)
            self._changed.notify_all()

    def _wait_for_a_place(self) -> Place | None:
        """Be spare; None when it is time to end."""
        with self._changed:
            if self.buffer.closed:
                return None
            self._spare += 1
        try:
            return self._freed.get(timeout=SPARE_SECONDS)
        except queue.Empty:
            with self._changed:
                if self._spare:  # nobody counts on this thread
                    self._spare -= 1
                    return None
            return self._freed.get()

    # -- places that are lent ----------------------------------------------------------------------------------------

    def _lend(self, slot: Slot, job: JobRow) -> None:
        assert self.runner.loop is not None
        slot.thread = None
        self.runner.loop.call(self._start_task, slot, job)

    def _start_task(self, slot: Slot, job: JobRow) -> None:
        """Run an async job in this place. On the loop."""
        assert self.runner.loop is not None
        try:
            attempt = self.runner.arun(job, partial(self._give_up, slot, None))
            self.runner.loop.run(job, attempt, partial(self._task_ended, slot, job))
        except BaseException as error:
            log_exception(logger, "The executor failed at job %s", job.id)
            self._end_on_loop(slot, broken(job, error))

    def _task_ended(self, slot: Slot, job: JobRow, task: asyncio.Task[Any]) -> None:
        try:
            attempted = task.result()
        except BaseException as error:
            attempted = broken(job, error)
        if attempted != GIVEN_UP:
            self._end_on_loop(slot, attempted)

    def _end_on_loop(self, slot: Slot, attempted: Attempted) -> None:
        """Hand on how it ended, and go on with the next job: here, if it is an async one, else in a thread."""
        if self.crowded():
            self._hand_to_thread(slot, lambda: attempted)
            return
        self._emit(slot, attempted)
        buffer = self.buffer
        if not buffer.closed:
            try:
                job = buffer.jobs.popleft()
            except IndexError:
                pass
            else:
                if len(buffer.jobs) < buffer.low and not buffer.low_told:
                    buffer.tell_low()
                if self.runner.is_for_loop(job):
                    slot.job = job
                    self._start_task(slot, job)
                    return
                buffer.jobs.appendleft(job)
        self._hand_to_thread(slot)

    def _hand_to_thread(self, slot: Slot, first: Record | None = None) -> None:
        """Let a thread go on with this place, and record what is to be recorded first.

        The place is not lost when no thread can be started: that is tried again (:meth:`recover`).
        """
        with self._changed:
            if first is None and self.buffer.closed:
                self._taken.discard(slot)
                self._changed.notify_all()
                return
            if self._spare:
                self._spare -= 1
                self._freed.put((slot, first))
                return
        try:
            self._start_thread(slot, first)
        except (RuntimeError, MemoryError) as error:
            if not self._short_of_threads:
                logger.error("No thread can be started for a place of the pool; it is tried again: %s", error)
            self._short_of_threads = True
            if first is not None and not self.crowded():  # how the attempt ended must not wait for that
                self._emit_record(slot, first)
                first = None
            self._unstarted.append((slot, first))
        else:
            self._short_of_threads = False

    def _give_up(self, slot: Slot, stray: threading.Thread | None, record: Record) -> None:
        """The attempt in this place goes on and on: let another thread record that, and go on with the place."""
        if stray is not None:
            with self._changed:
                self._threads.discard(stray)  # nobody waits for it any more
        self._hand_to_thread(slot, record)

    def _emit_record(self, slot: Slot, record: Record) -> None:
        job = slot.job
        try:
            attempted = record()
        except BaseException as error:
            assert job is not None
            log_exception(logger, "The executor failed at job %s", job.id)
            attempted = broken(job, error)
        self._emit(slot, attempted)

    def _emit(self, slot: Slot, attempted: Attempted) -> None:
        """Hand an attempt on that did not end in a thread of its own."""
        slot.done += 1
        slot.seconds += attempted.seconds
        try:
            self.emit(attempted)
        except BaseException:
            # As in _keep_at_work(): the place must not be lost.
            log_exception(logger, "The outcome of job %s could not be handed on", attempted.job.id)
        slot.job = None
