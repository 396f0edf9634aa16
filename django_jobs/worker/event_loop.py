"""The event loop of a worker: one thread, on which its ``async def`` jobs run, all pools' together."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from django_jobs.store.rows import JobRow
from django_jobs.worker import connections
from django_jobs.worker.sensitive import SensitiveThreads
from django_jobs.worker.stalls import StallWatch

logger = logging.getLogger("django_jobs.worker")

# What still runs when the loop is closed has this long to end after it was cancelled.
CLOSE_SECONDS = 1.0


class EventLoop:
    """Started with the first async job; a worker that has none has no loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._tasks: dict[asyncio.Task[Any], JobRow] = {}
        self._stalls = StallWatch(self._tasks)
        self.threads = SensitiveThreads()

    def call(self, callback: Callable[..., object], *args: Any) -> None:
        """Call a function on the loop, from any thread.

        :raises RuntimeError: when the loop is closed.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError("the event loop is closed")
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=self._run, args=(loop,), name="django_jobs-event-loop", daemon=True
                )
                try:
                    thread.start()
                except BaseException:
                    loop.close()
                    raise
                # Not before: a loop without its thread would take jobs that nobody runs.
                self._loop, self._thread = loop, thread
            self._loop.call_soon_threadsafe(callback, *args)

    def run(
        self,
        job: JobRow,
        coroutine: Coroutine[Any, Any, Any],
        on_done: Callable[[asyncio.Task[Any]], object],
    ) -> None:
        """Run a job's coroutine, in a context and with a thread (for what is synchronous) of its own. On the loop."""
        assert self._loop is not None
        task = self._loop.create_task(self._around(coroutine), context=Context())
        self._tasks[task] = job
        task.add_done_callback(self._tasks.pop)
        task.add_done_callback(on_done)
        self._stalls.begin()

    async def _around(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        thread = self.threads.enter()
        try:
            return await coroutine
        finally:
            self.threads.leave(thread)
            # A wrapper that was asked for in the coroutine belongs to its context, whichever thread opens it, as in
            # sync_to_async(connection.some_method). With the context it would vanish while it is open.
            connections.close_all()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while not self._closed:
            try:
                loop.run_forever()
            except (
                BaseException
            ):  # SystemExit of a task that a job has started lands here; the others must go on
                logger.exception("A task of a job has ended the event loop; it goes on")
        self._end(loop)

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=CLOSE_SECONDS))
            loop.run_until_complete(loop.shutdown_asyncgens())
        except BaseException as error:
            logger.debug("The event loop did not end well: %r", error)
        if not asyncio.all_tasks(loop):
            loop.close()

    def close(self) -> None:
        """Cancel what runs, and end the thread. Returns after a bounded time, even when a job blocks the loop."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._stalls.close()
            loop, thread = self._loop, self._thread
            if loop is None or thread is None:
                return
            loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_SECONDS + 1)
        self.threads.close(CLOSE_SECONDS)
