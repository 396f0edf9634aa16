"""The completer: writes outcomes, up to 5,000 in one statement, and at most as many statements at once as the store
can run.

The first writer takes whatever there is; the second one only a full batch that has piled up behind a write, so sparse
traffic coalesces and takes no second connection. Two batches that are written at once never hold outcomes of the same
job: a later outcome of a job waits until the batch with the earlier one is stored, retries included; so an old result
can't be locked, and told, after a newer one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from django_jobs.store.base import Store
from django_jobs.store.rows import JobRow
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.held_rows import HeldRows
from django_jobs.worker.parts import log_exception, one_line, until
from django_jobs.worker.retention import Retention
from django_jobs.worker.writing import OnStored, Writing

logger = logging.getLogger("django_jobs.worker")

BATCH = 5000
# At this many outcomes that are not stored yet, executors wait.
BACKLOG = 10_000
# Outcomes with a result, or errors, are bounded in characters too: those of a statement, and of all that wait.
BATCH_SIZE = 16_000_000
BACKLOG_SIZE = 64_000_000
SMALL = 1000  # less is not counted
# A write waits this long for a row that another transaction holds.
LOCK_SECONDS = 0.5
# Under load a write waits this long, or for this many outcomes, so that statements are few; an idle one starts at once.
LINGER_SECONDS = 0.025
LINGER_JOBS = 2000
BUSY = 32
# The second writer, and its connection, end when there was no backlog for this long.
SECOND_WRITER_SECONDS = 10.0


class Completer:
    """Takes attempts that are over from the executors, and stores them.

    :param open_store: opens a store on a connection of its own; each writer has one.
    :param on_stored: called, in the order of each job's outcomes, with a batch that is stored and what the database
        has of it, by id; a job that is not in it is gone.
    :param is_lost: whether the worker may have lost its claim of a job.
    """

    name = "completer"

    def __init__(
        self,
        open_store: Callable[[], Store],
        on_stored: OnStored,
        is_lost: Callable[[JobRow], bool] = lambda _: False,
    ) -> None:
        self._open_store = open_store
        self.retention = Retention()
        self._outcomes: deque[Attempted] = deque()
        self._deferred: list[Attempted] = []
        self._in_flight: dict[int, set[int]] = {}  # writer: ids of its batch
        self._size = 0  # of the outcomes that are not taken yet
        self._lock = threading.Condition()
        self._aside = HeldRows(self._lock)
        self.writing = Writing(self.retention, self._aside, on_stored, is_lost)
        self._wanted = 1  # outcomes at which the first writer wants to wake; 0 while it works
        self._room = threading.Event()
        self._room.set()
        self._stopping = self.writing.stopping
        self._threads: dict[int, threading.Thread] = {}
        self._second_told = False  # that there is a full batch for it
        self.most_writers = 1
        self.writers = 0  # started since the completer was made; each opens a connection

    # -- for the executors -----------------------------------------------------------------------------------------

    def put(self, attempted: Attempted) -> None:
        """Hand over an attempt. Returns at once, but for a backlog: then it waits until there is room."""
        outcomes = self._outcomes
        outcome = attempted.outcome
        if (outcome.result is not None or outcome.errors is not None) and (size := _size(attempted)):
            with self._lock:
                self._size += size
        outcomes.append(attempted)
        wanted = self._wanted
        if wanted and len(outcomes) >= wanted:
            with self._lock:
                self._wanted = 0  # told; the next outcome need not tell again
                self._lock.notify_all()
        elif len(outcomes) >= BATCH or self._size >= BACKLOG_SIZE:
            self._overflow()

    def _overflow(self) -> None:
        if len(self._outcomes) >= BATCH and self.most_writers > 1 and not self._second_told:
            with self._lock:
                self._second_told = True
                if 1 not in self._threads and not self._stopping.is_set():
                    try:
                        self._start_writer(1)
                    except RuntimeError as error:
                        # No more threads. One writer does it too, and this thread is an executor's.
                        logger.warning("The completer's second writer can't start: %s", one_line(error))
                self._lock.notify_all()
        if self.is_crowded():
            self._room.clear()
            # Looked at again after the flag is down: a writer that emptied the backlog between would not raise it.
            if not self.is_crowded() or self._stopping.is_set():
                self._room.set()
            self._room.wait()

    def is_crowded(self) -> bool:
        """Whether there is a backlog, at which :meth:`put` waits."""
        return len(self._outcomes) >= BACKLOG or self._size >= BACKLOG_SIZE

    @property
    def lost(self) -> int:
        """Outcomes given up: at the end of a stop, or since nothing can store them."""
        return self.writing.lost + self._aside.lost

    @property
    def idle(self) -> bool:
        """Whether everything handed over is stored."""
        with self._lock:
            return not (self._outcomes or self._deferred or self._in_flight or self._aside.attempts)

    # -- life ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the first writer; the second one starts when there is a backlog. Can be started again after a stop."""
        if self.is_alive():
            raise RuntimeError("the completer runs already")
        self._stopping.clear()
        self.writing.deadline = None
        self._room.set()
        self._second_told = False
        with self._lock:
            self._threads = {}
            self._start_writer(0)

    def stop(self, timeout: float = 10.0) -> None:
        """Ask the writers to end: what they write is finished, then all the rest is written, within ``timeout``."""
        self.writing.deadline = time.monotonic() + timeout
        self._stopping.set()
        self._room.set()
        with self._lock:
            self._lock.notify_all()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the writers have ended; whether they have."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in list(self._threads.values()):
            thread.join(None if deadline is None else until(deadline))
        return not self.is_alive()

    def is_alive(self) -> bool:
        """Whether a writer runs."""
        return any(thread.is_alive() for thread in list(self._threads.values()))

    def _start_writer(self, number: int) -> None:
        thread = threading.Thread(
            target=self._write_on, args=(number,), name=f"django_jobs-completer-{number}", daemon=True
        )
        thread.start()
        # It can't have ended: it needs the lock for that, which the caller has.
        self._threads[number] = thread
        self.writers += 1

    # -- the writers -----------------------------------------------------------------------------------------------

    def _write_on(self, number: int) -> None:
        store = self._open_store()
        store.session.lock_timeout = LOCK_SECONDS
        if number == 0:
            # A store that does not say how many writes it can take at once gets one.
            self.most_writers = max(1, getattr(store, "completion_concurrency", 1))
        last = 0
        try:
            while True:
                batch = self._next_batch(number, last)
                if batch is None:
                    return
                last = len(batch)
                try:
                    if batch:
                        self.writing.write(store, batch)
                    else:  # set aside after a try whose answer may have been lost
                        self.writing.write(store, self._free_again(store, number), repeated=True)
                except Exception:
                    log_exception(logger, "The completer failed; %d outcomes are lost", len(batch))
                    self.writing.lost += len(batch)
                finally:
                    with self._lock:
                        self._in_flight.pop(number, None)
                        self._lock.notify_all()
        finally:
            store.close()

    def _next_batch(self, number: int, last: int) -> list[Attempted] | None:
        """Wait for outcomes to write. None: the completer stops, and there is nothing left for this writer.

        An empty one: it is time to look at what was set aside.
        """
        with self._lock:
            if number == 0:
                if last >= BUSY and not self._stopping.is_set():
                    self._wanted = LINGER_JOBS
                    self._lock.wait_for(self._lingered_enough, LINGER_SECONDS)
                while True:
                    # First say what is wanted, then look: put() appends and then reads the number, without the lock.
                    self._wanted = 1
                    aside = self._aside.due_at - time.monotonic() if self._aside.attempts else None
                    if aside is not None and aside <= 0:
                        self._wanted = 0
                        return []
                    if batch := self._take(number):
                        self._wanted = 0
                        return batch
                    if self._stopping.is_set() and not (
                        self._outcomes or self._deferred or self._aside.attempts
                    ):
                        return None
                    self._lock.wait(aside)
            while True:
                # The second writer: a full batch, behind a write that is under way.
                if len(self._outcomes) >= BATCH and self._in_flight and (batch := self._take(number)):
                    return batch
                self._second_told = False
                if self._stopping.is_set() or not self._lock.wait(SECOND_WRITER_SECONDS):
                    del self._threads[number]  # with its connection; the next backlog starts another one
                    return None

    def _lingered_enough(self) -> bool:
        return len(self._outcomes) >= LINGER_JOBS or self._stopping.is_set()

    def _take(self, number: int) -> list[Attempted]:
        """The next batch, without the jobs that another batch in flight has. Holds the lock."""
        busy: set[int] = set()
        if self._in_flight or self._aside.attempts:
            busy = busy.union(self._aside.attempts, *self._in_flight.values())
        outcomes = self._outcomes
        batch: list[Attempted] = []
        deferred: list[Attempted] = []
        waiting, self._deferred = self._deferred, []
        for attempted in waiting:
            (deferred if attempted.outcome.id in busy else batch).append(attempted)
        if busy:
            for _ in range(min(len(outcomes), BATCH - len(batch))):
                attempted = outcomes.popleft()
                (deferred if attempted.outcome.id in busy else batch).append(attempted)
        else:
            batch.extend(outcomes.popleft() for _ in range(min(len(outcomes), BATCH - len(batch))))
        ids = {attempted.outcome.id for attempted in batch}
        if len(ids) < len(batch):  # two claims of one job: lost, and claimed again
            batch, again = _first_of_each_job(batch)
            deferred = [*again, *deferred]
        if self._size:
            batch, rest = self._of_one_statement(batch)
            if rest:
                ids = {attempted.outcome.id for attempted in batch}
                deferred = [*rest, *deferred]
        self._deferred = deferred
        if batch:
            self._in_flight[number] = ids
        if not self.is_crowded():
            self._room.set()
        return batch

    def _free_again(self, store: Store, number: int) -> list[Attempted]:
        """What was set aside and can be written now."""
        locked = self._aside.look(store)
        with self._lock:
            free = self._aside.take_back(locked, self.writing.is_over(), self._stopping.is_set())
            self._in_flight[number] = {attempted.outcome.id for attempted in free}
        return free

    def _of_one_statement(self, batch: list[Attempted]) -> tuple[list[Attempted], list[Attempted]]:
        """As much of a batch as one statement should carry, one outcome at least; and the rest."""
        size = 0
        for number, attempted in enumerate(batch):
            more = _size(attempted)
            if number and size + more > BATCH_SIZE:
                self._size -= size
                return batch[:number], batch[number:]
            size += more
        self._size -= size
        return batch, []


def _size(attempted: Attempted) -> int:
    """How many characters of result and errors an outcome has, if they are many."""
    size = len(attempted.outcome.result or "") + len(attempted.outcome.errors or "")
    return size if size > SMALL else 0


def _first_of_each_job(batch: list[Attempted]) -> tuple[list[Attempted], list[Attempted]]:
    first: dict[int, Attempted] = {}
    again = [
        attempted for attempted in batch if first.setdefault(attempted.outcome.id, attempted) is not attempted
    ]
    return list(first.values()), again
