"""Jobs that block the event loop, and with it all other async jobs: named in the log, with the place where they do.

While async jobs run, the loop notes every :data:`BEAT_SECONDS` that it goes round, and a thread looks whether it does.
Without async jobs there is neither.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

from django_jobs.attempt_state import running
from django_jobs.store.rows import JobRow
from django_jobs.worker.failures import stack_of

logger = logging.getLogger("django_jobs.worker")

BEAT_SECONDS = 0.25
# A loop that has not gone round for so long is blocked.
STALL_SECONDS = 1.0
# A function that blocks again and again is told of this often.
AGAIN_SECONDS = 60.0


class StallWatch:
    """Watches one event loop.

    :param tasks: the jobs that run on it, by their tasks; it is watched while there are any.
    """

    def __init__(self, tasks: Mapping[asyncio.Task[Any], JobRow]) -> None:
        self._tasks = tasks
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._thread: threading.Thread | None = None
        self._beating = False
        self._beat_at = 0.0
        self._told = False
        self._said: dict[str, float] = {}  # when, of which
        self._awake = threading.Event()
        self._closed = threading.Event()

    def begin(self) -> None:
        """A job starts on the loop. Called there."""
        if self._beating:
            return
        self._loop, self._loop_thread = asyncio.get_running_loop(), threading.get_ident()
        self._beat_at = time.monotonic()
        self._beating = True
        self._loop.call_later(BEAT_SECONDS, self._beat, self._loop)
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="django_jobs-stalls", daemon=True)
            with contextlib.suppress(RuntimeError):  # no more threads: jobs need them more
                thread.start()
                self._thread = thread
        self._awake.set()

    def close(self) -> None:
        """End the thread. It holds nothing, so nobody need wait for it."""
        self._closed.set()
        self._awake.set()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        now = time.monotonic()
        if self._told:
            self._told = False
            logger.warning("The event loop goes on after %.1f s", now - self._beat_at)
        self._beat_at = now
        if self._tasks:
            loop.call_later(BEAT_SECONDS, self._beat, loop)
        else:
            self._beating = False

    def _run(self) -> None:
        while not self._closed.is_set():
            if self._beating:
                self._closed.wait(BEAT_SECONDS)
                try:
                    self._look(time.monotonic())
                except Exception:
                    logger.exception("It can't be told what blocks the event loop")
            else:
                self._awake.wait()
                self._awake.clear()

    def _look(self, now: float) -> None:
        seconds = now - self._beat_at
        if not self._beating or seconds < STALL_SECONDS + BEAT_SECONDS:
            return
        task = asyncio.current_task(self._loop)
        if task is None:  # it is the whole process that gets no time, or it is over
            return
        job = self._job_of(task)
        name = job.name if job is not None else ""
        if now - self._said.get(name, float("-inf")) < AGAIN_SECONDS:
            return
        self._said[name] = now
        self._told = True
        logger.warning(
            "%s has blocked the event loop for %.1f s; no other async job goes on meanwhile. Await what takes long, or "
            "put it into sync_to_async().\n%s",
            f"Job {job.id} {job.name}" if job is not None else "A task that a job has started",
            seconds,
            stack_of(self._loop_thread, "Where it is"),
        )

    def _job_of(self, task: asyncio.Task[Any]) -> JobRow | None:
        job = self._tasks.get(task)
        if job is None and hasattr(task, "get_context"):  # from Python 3.12 on
            here = task.get_context().get(running)
            job = here[0] if here else None
        return job
