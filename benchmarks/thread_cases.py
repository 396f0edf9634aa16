"""Threads that use a connection through Django: those that live on, those that end, those that are left to the next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.db import close_old_connections, connections
from django.utils import timezone

from benchmarks.cases import Case, Cases
from benchmarks.jobs import touch
from benchmarks.parts import make_runner
from django_jobs.models import Queue
from django_jobs.store.rows import JobRow, NewJob
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.buffer import Buffer
from django_jobs.worker.connections import tidy
from django_jobs.worker.executor import Executors
from django_jobs.worker.sensitive import SensitiveThreads

QUEUE = "mail"
TOGETHER = 8


class ThreadCases:
    """Makes the cases. To be closed, which ends the threads that are kept.

    :param cases: makes the jobs that are run.
    """

    def __init__(self, cases: Cases) -> None:
        self.cases = cases
        cases.own.upsert_queue(QUEUE)
        self.threads = SensitiveThreads()
        self.over = threading.Semaphore(0)
        self.buffer = Buffer()
        self.executors = Executors(self.buffer, make_runner(), self.emit, 1)
        self.error: object = None  # of the job that an executor has run

    def all(self) -> list[Case]:
        """Each is about a thread by itself."""
        return [
            Case("thread used a connection, and ends", self.jobs, in_a_thread, self.in_an_executor),
            Case("thread used a connection, and is left", self.jobs, in_a_thread, self.in_a_kept_thread),
        ]

    def jobs(self, n: int) -> list[JobRow]:
        """Claimed jobs that update a row."""
        own, queue_name = self.cases.own, next(self.cases.queues)
        own.insert_many([NewJob(touch.name, queue_name, args=f'["{QUEUE}"]')] * n)
        return own.claim(self.cases.worker, queue_name, n)

    def in_an_executor(self, job: JobRow) -> None:
        """As a worker runs a job in a thread that ends then: it is started, and closes what the job has opened."""
        self.buffer.put([job])
        self.executors.start()
        self.over.acquire()
        self.executors.stop()
        self.executors.join()
        assert self.error is None, self.error

    def emit(self, attempted: Attempted) -> None:
        """Take what the executor has done."""
        self.error = attempted.error
        self.over.release()

    def in_a_kept_thread(self, _: JobRow) -> None:
        """As a worker does it with the thread of an async job, which has the next job when this one leaves it."""
        thread = self.threads.enter()
        thread.submit(update).result()
        thread.submit(tidy).result()
        self.threads.leave(thread)

    def close(self) -> None:
        """End the threads that are kept."""
        self.threads.close(10.0)


def update() -> None:
    """What a job does with its connection."""
    assert Queue.objects.filter(name=QUEUE).update(updated_at=timezone.now()) == 1


def in_a_thread(_: Any) -> None:
    """As most Django code does it: a thread that closes its connections as it ends."""

    def run() -> None:
        try:
            update()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def together(calls: int, seconds: Callable[[Callable[[], object]], float]) -> tuple[list[float], list[float]]:
    """How long jobs took that read by their thread's connection and give it back, in eight threads that live on.

    :param seconds: measures a call.
    """
    return _in_threads(close_old_connections, calls, seconds), _in_threads(tidy, calls, seconds)


def _in_threads(
    give_back: Callable[[], object], calls: int, seconds: Callable[[Callable[[], object]], float]
) -> list[float]:
    times: list[float] = []

    def use() -> None:
        def job() -> None:
            Queue.objects.filter(name=QUEUE).exists()
            give_back()

        for _ in range(max(3, calls // TOGETHER)):
            times.append(seconds(job))  # noqa: PERF401 - shared by the threads
        connections.close_all()

    started: Sequence[threading.Thread] = [threading.Thread(target=use) for _ in range(TOGETHER)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return times
