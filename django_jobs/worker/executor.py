"""The executors of one pool: threads that run jobs and hand on how they ended."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django_jobs.store.rows import JobRow
from django_jobs.worker import connections
from django_jobs.worker.attempt import Attempted, Runner, broken
from django_jobs.worker.buffer import Buffer

logger = logging.getLogger("django_jobs.worker")


# After a failure beside its jobs an executor waits for this long, should it fail again at once.
RECOVERY_SECONDS = 1.0


class Slot:
    """What one executor thread is at; written by it alone, read by others."""

    __slots__ = ("done", "job", "seconds", "thread")

    def __init__(self) -> None:
        self.job: JobRow | None = None
        self.done = 0
        self.seconds = 0.0
        self.thread: threading.Thread | None = None


class Executors:
    """The threads of one pool. Daemons: a job that does not end keeps no process alive.

    :param size: how many.
    :param emit: takes each attempt that is over; may wait, to hold the executors back.
    """

    name = "executors"

    def __init__(self, buffer: Buffer, runner: Runner, emit: Callable[[Attempted], None], size: int) -> None:
        self.buffer = buffer
        self.runner = runner
        self.emit = emit
        self.slots = [Slot() for _ in range(size)]

    def start(self) -> None:
        """Start the threads; executors that were stopped can be started again."""
        self.buffer.open()
        for number, slot in enumerate(self.slots):
            if slot.thread is None or not slot.thread.is_alive():
                slot.thread = threading.Thread(
                    target=self._loop, args=(slot,), name=f"django_jobs-executor-{number}", daemon=True
                )
                slot.thread.start()

    def stop(self) -> None:
        """Ask the threads to end, each when its job has ended. What is still in the buffer stays there."""
        self.buffer.close()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all threads have ended; whether they have."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for slot in self.slots:
            if slot.thread is not None:
                slot.thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return not any(slot.thread is not None and slot.thread.is_alive() for slot in self.slots)

    def totals(self) -> tuple[int, float]:
        """Jobs done so far, and the seconds they took, added up."""
        return sum([slot.done for slot in self.slots]), sum([slot.seconds for slot in self.slots])

    def running(self) -> list[JobRow]:
        """The jobs that run now."""
        return [job for slot in self.slots if (job := slot.job) is not None]

    @property
    def idle(self) -> bool:
        """Whether every thread waits and nothing is buffered."""
        return self.buffer.waiting == len(self.slots) and not self.buffer.jobs

    def _loop(self, slot: Slot) -> None:
        while not self.buffer.closed:
            try:
                self._work(slot)
            except BaseException:
                # No job's error comes here. Whatever it is: a pool must not lose its threads one by one.
                logger.exception("An executor failed beside its jobs, and goes on")
                slot.job = None
                time.sleep(RECOVERY_SECONDS)
            finally:
                connections.close_all()

    def _work(self, slot: Slot) -> None:
        buffer, run, emit, tidy = self.buffer, self.runner.run, self.emit, connections.tidy
        jobs = buffer.jobs
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
                attempted = run(job)
            except BaseException as error:
                # Ours, not the job's: what the job raises ends up in its outcome. The thread must live.
                logger.exception("The executor failed at job %s", job.id)
                attempted = broken(job, error)
            connected = tidy()
            slot.done += 1
            slot.seconds += attempted.seconds
            emit(attempted)
            slot.job = None

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
