"""Threads for the synchronous parts of async jobs: one for each job at a time, kept from job to job.

``sync_to_async`` runs thread-sensitive code, as Django's database calls are, in one thread for the whole process,
unless it finds a context that has a thread of its own. Here every job has one, so jobs don't wait for each other; and
the thread goes from job to job with its connections, as an executor's does.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext

from django_jobs.worker import connections


class SensitiveThread(Executor):
    """One thread, started when it is first needed, and a daemon: a call that does not end keeps no process alive.

    It ends, and closes its connections, when nothing was to do for a while; the next call starts another.
    """

    def __init__(self) -> None:
        self.used = False
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = (
            None  # None when it has ended, or will not look at the queue again
        )
        self._last: threading.Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call ``fn`` in the thread, after what was submitted before."""
        future: Future[Any] = Future()
        with self._lock:
            self.used = True
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="django_jobs-sync", daemon=True)
                thread.start()  # if it can't, the call fails, and the next one tries again
                self._thread = self._last = thread
            self._calls.put((future, lambda: fn(*args, **kwargs)))
        return future

    def close(self) -> None:
        """Let the thread end after what was submitted."""
        with self._lock:
            if self._thread is not None:
                self._calls.put((Future(), self._end))

    def join(self, timeout: float) -> None:
        """Wait until the thread has ended, and closed its connections; ``timeout`` seconds at most."""
        thread = self._last
        if thread is not None:
            thread.join(timeout)

    def _end(self) -> None:
        raise _Ended

    def _run(self) -> None:
        try:
            while self._work():
                pass
        finally:
            connections.close_all()

    def _work(self) -> bool:
        """Make the next call; whether there may be another one."""
        try:
            future, call = self._calls.get(timeout=connections.TRUST_SECONDS)
        except queue.Empty:
            if connections.tidy():
                connections.ask_before_use()
            try:
                future, call = self._calls.get(timeout=connections.KEEP_SECONDS - connections.TRUST_SECONDS)
            except queue.Empty:
                return not self._is_over()
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call())
            except _Ended:
                return not self._is_over()
            except BaseException as error:
                future.set_exception(error)
        return True

    def _is_over(self) -> bool:
        """Whether nothing more is submitted; then the next call starts another thread."""
        with self._lock:
            if not self._calls.empty():
                return False
            self._thread = None
            return True


class _Ended(BaseException):
    """The thread was asked to end."""


class SensitiveThreads:
    """The threads that no job has now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: list[SensitiveThread] = []
        self._all: list[SensitiveThread] = []
        self._closed = False

    def enter(self) -> SensitiveThread:
        """Give the job whose context this is a thread of its own; none is started before it is used."""
        with self._lock:
            if self._free:
                thread = self._free.pop()
            else:
                thread = SensitiveThread()
                self._all.append(thread)
        thread.used = False
        context = ThreadSensitiveContext()
        SyncToAsync.thread_sensitive_context.set(context)
        # What ThreadSensitiveContext(executor=...) does, where asgiref has it. Held weakly: it goes with the context.
        SyncToAsync.context_to_thread_executor[context] = thread
        return thread

    def leave(self, thread: SensitiveThread) -> None:
        """The job has ended: leave the thread with sound connections, for the next."""
        if thread.used:
            # A call of a job that was cancelled may go on in it; the thread is free when that is over.
            thread.submit(connections.tidy).add_done_callback(lambda _: self._take_back(thread))
        else:
            self._take_back(thread)

    def _take_back(self, thread: SensitiveThread) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(thread)
                return
        thread.close()

    def close(self, timeout: float) -> None:
        """End the threads, and wait for them, ``timeout`` seconds at most; those of jobs that go on end with these."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for thread in free:
            thread.close()
        end = time.monotonic() + timeout
        for thread in self._all:
            thread.join(max(0.0, end - time.monotonic()))
