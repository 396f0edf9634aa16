"""The completer: writes outcomes, up to 5,000 in one statement, and at most as many statements at once as the store
can run.

The first writer takes whatever there is; the second one only a full batch that has piled up behind a write, so sparse
traffic coalesces and takes no second connection. Two batches that are written at once never hold outcomes of the same
job: a later outcome of a job waits until the batch with the earlier one is stored, retries included; so an old result
can't be locked, and told, after a newer one.

A row that somebody else's transaction holds keeps no other outcome waiting: its outcome is set aside, and stored when
the row is free.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from django.db.utils import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError

from django_jobs import conf
from django_jobs.serialization import decode
from django_jobs.store.base import COMPLETED, FAILED, Store
from django_jobs.store.rows import Ended, JobRow, Outcome
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.failures import with_error
from django_jobs.worker.finishing import finish, reconcile
from django_jobs.worker.parts import log_exception, one_line, pause_after, until
from django_jobs.worker.retention import Retention

logger = logging.getLogger("django_jobs.worker")

BATCH = 5000
# At this many outcomes that are not stored yet, executors wait.
BACKLOG = 10_000
# Outcomes with a result, or errors, are bounded in characters too: those of a statement, and of all that wait.
BATCH_SIZE = 16_000_000
BACKLOG_SIZE = 64_000_000
SMALL = 1000  # less is not counted
# A write waits this long for a row that another transaction holds. Then that row is looked at again after this time.
LOCK_SECONDS = 0.5
ASIDE_SECONDS = 0.5
# Under load a write waits this long, or for this many outcomes, so that statements are few; an idle one starts at once.
LINGER_SECONDS = 0.025
LINGER_JOBS = 2000
BUSY = 32
# The second writer, and its connection, end when there was no backlog for this long.
SECOND_WRITER_SECONDS = 10.0

# After this many failures in a row a batch is halved, whatever failed.
TRIES = 5
UNSTORABLE = "django_jobs.OutcomeNotStorable"

OnStored = Callable[[Sequence[Attempted], dict[int, Ended]], None]


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
        self._on_stored = on_stored
        self._is_lost = is_lost
        self.retention = Retention()
        self._outcomes: deque[Attempted] = deque()
        self._deferred: list[Attempted] = []
        self._in_flight: dict[int, set[int]] = {}  # writer: ids of its batch
        self._aside: dict[int, Attempted] = {}  # by id: its row is held by another transaction
        self._aside_at = 0.0  # when to look at them again
        self._size = 0  # of the outcomes that are not taken yet
        self._lock = threading.Condition()
        self._wanted = 1  # outcomes at which the first writer wants to wake; 0 while it works
        self._room = threading.Event()
        self._room.set()
        self._stopping = threading.Event()
        self._deadline: float | None = None
        self._threads: dict[int, threading.Thread] = {}
        self._second_told = False  # that there is a full batch for it
        self.most_writers = 1
        self.writers = 0  # started since the completer was made; each opens a connection
        self.lost = 0  # outcomes given up at the end of a stop

    # -- for the executors -----------------------------------------------------------------------------------------

    def put(self, attempted: Attempted) -> None:
        """Hand over an attempt. Returns at once, but for a backlog: then it waits until there is room."""
        outcomes = self._outcomes
        if (attempted.outcome.result is not None or attempted.outcome.errors is not None) and _size(
            attempted
        ):
            with self._lock:
                self._size += _size(attempted)
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
    def idle(self) -> bool:
        """Whether everything handed over is stored."""
        with self._lock:
            return not (self._outcomes or self._deferred or self._in_flight or self._aside)

    # -- life ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the first writer; the second one starts when there is a backlog. Can be started again after a stop."""
        if self.is_alive():
            raise RuntimeError("the completer runs already")
        self._stopping.clear()
        self._deadline = None
        self._room.set()
        self._second_told = False
        with self._lock:
            self._threads = {}
            self._start_writer(0)

    def stop(self, timeout: float = 10.0) -> None:
        """Ask the writers to end: what they write is finished, then all the rest is written, within ``timeout``."""
        self._deadline = time.monotonic() + timeout
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
                        self._write(store, batch)
                    else:  # set aside after a try whose answer may have been lost
                        self._write(store, self._free_again(store, number), repeated=True)
                except Exception:
                    log_exception(logger, "The completer failed; %d outcomes are lost", len(batch))
                    self.lost += len(batch)
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
                    aside = self._aside_at - time.monotonic() if self._aside else None
                    if aside is not None and aside <= 0:
                        self._wanted = 0
                        return []
                    if batch := self._take(number):
                        self._wanted = 0
                        return batch
                    if self._stopping.is_set() and not (self._outcomes or self._deferred or self._aside):
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
        if self._in_flight or self._aside:
            busy = busy.union(self._aside, *self._in_flight.values())
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

    # -- rows that others hold -------------------------------------------------------------------------------------

    def _set_aside(self, store: Store, batch: list[Attempted]) -> list[Attempted]:
        """A write has waited too long for rows of its batch: set aside what others hold, and return the rest."""
        try:
            locked = store.locked([attempted.outcome.id for attempted in batch])
        except Exception as error:
            logger.debug("Whose rows are held is not known: %s", one_line(error))
            return batch
        if locked:
            logger.warning(
                "%d outcomes wait for rows that another transaction holds, such as that of job %d; the others don't",
                len(locked),
                min(locked),
            )
            with self._lock:
                self._aside.update((each.outcome.id, each) for each in batch if each.outcome.id in locked)
                self._aside_at = time.monotonic() + ASIDE_SECONDS
        return [attempted for attempted in batch if attempted.outcome.id not in locked]

    def _free_again(self, store: Store, number: int) -> list[Attempted]:
        """What was set aside and is held no more. At the end of a stop, the rest is given up."""
        try:
            locked = store.locked(list(self._aside))
        except Exception as error:
            logger.warning("Outcomes that were set aside are not stored yet: %s", one_line(error))
            locked = frozenset(self._aside)
        over = self._deadline is not None and time.monotonic() >= self._deadline
        with self._lock:
            free = [attempted for id_, attempted in self._aside.items() if id_ not in locked]
            if over and locked:
                self.lost += len(locked)
                logger.error(
                    "%d outcomes could not be stored before the end, since another transaction holds their rows; "
                    "their jobs run again after the lease",
                    len(locked),
                )
            self._aside = {} if over else {id_: each for id_, each in self._aside.items() if id_ in locked}
            self._aside_at = time.monotonic() + (0.05 if self._stopping.is_set() else ASIDE_SECONDS)
            self._in_flight[number] = {attempted.outcome.id for attempted in free}
        return free

    def _write(self, store: Store, batch: list[Attempted], failures: int = 0, repeated: bool = False) -> None:
        """Write a batch, whatever it takes.

        An error that an outcome may be the cause of halves the batch at once, down to that outcome. Any other is the
        database's: the batch is tried again, and after some tries in halves, since it may be too large a statement for
        a server that is well otherwise.

        :param failures: in a row, so far.
        :param repeated: whether it may have been stored already, and the answer lost.
        """
        while batch:
            try:
                patches = [attempted for attempted in batch if attempted.metadata is not None]
                if patches:
                    _merge_metadata(store, patches)
                ended = finish(store, batch, self.retention)
            except Exception as error:
                if store.is_lock_timeout(error):
                    free = self._set_aside(store, batch)
                    if len(free) < len(batch):
                        batch = free
                        # Those that are not kept have a statement of their own; the other may have been stored.
                        repeated = repeated or self.retention.deletes_at_once
                        continue
                repeated = True
                failures += 1
                of_an_outcome = _is_of_an_outcome(error)
                if of_an_outcome and len(batch) > 1:
                    self._write_halves(store, batch, 0)
                    return
                suspect = of_an_outcome or (len(batch) == 1 and failures >= TRIES and not _is_away(error))
                if suspect and self._settle(store, batch[0]):
                    return
                if self._deadline is not None and time.monotonic() >= self._deadline:
                    self.lost += len(batch)
                    logger.error(
                        "%d outcomes could not be stored before the end (%s); their jobs run again after the lease",
                        len(batch),
                        one_line(error),
                    )
                    return
                logger.warning(
                    "%d outcomes are not stored yet (%d in a row): %s", len(batch), failures, one_line(error)
                )
                self._pause(failures)
                if failures >= TRIES and len(batch) > 1:
                    self._write_halves(store, batch, failures)
                    return
            else:
                self._stored(batch, ended, repeated)
                return

    def _write_halves(self, store: Store, batch: list[Attempted], failures: int) -> None:
        middle = len(batch) // 2
        self._write(store, batch[:middle], failures, repeated=True)
        self._write(store, batch[middle:], repeated=True)

    def _pause(self, failures: int) -> None:
        seconds = pause_after(failures)
        if self._deadline is not None:
            # The last flush is bounded: not long between two tries, and not beyond the end.
            time.sleep(min(seconds, 0.2, until(self._deadline)))
        else:
            self._stopping.wait(seconds)

    def _settle(self, store: Store, poison: Attempted) -> bool:
        """See to an outcome that can't be stored even alone; whether that is over.

        It is to blame only if the database is well: if it fails between two writes that don't. Then a dead letter that
        says so takes its place, in words that any database can hold.
        """
        if not self._is_well(store):
            return False
        try:
            self._stored([poison], finish(store, [poison], self.retention), repeated=True)
            return True
        except Exception as error:
            if _is_away(error):
                return False
            replaced = _in_its_place(poison, error)
        try:
            ended = finish(store, [replaced], self.retention)
        except Exception as error:
            logger.warning("The error of job %s can't be stored either: %s", poison.job.id, one_line(error))
            if _is_away(error) or not self._is_well(store):
                return False
            self.lost += 1
            logger.error(
                "The outcome of job %s is lost: not even its error can be stored. It runs again when this worker has "
                "stopped.",
                poison.job.id,
            )
            return True
        logger.error("Job %s: %s", poison.job.id, replaced.error)
        self._stored([replaced], ended, repeated=True)
        return True

    def _is_well(self, store: Store) -> bool:
        """Whether the database takes writes: one of a job that does not exist, which changes nothing."""
        try:
            store.finish([Outcome(-1, -1, COMPLETED)])
        except Exception as error:
            logger.debug("The database takes no writes: %s", one_line(error))
            return False
        return True

    def _stored(self, batch: list[Attempted], ended: list[Ended], repeated: bool) -> None:
        by_id = reconcile(batch, ended, repeated, self.retention, self._is_lost)
        try:
            self._on_stored(batch, by_id)
        except BaseException:  # the site's code: whatever it raises, the writer must live
            log_exception(logger, "What is to happen after outcomes are stored failed")


def _size(attempted: Attempted) -> int:
    """How many characters of result and errors an outcome has, if they are many."""
    size = len(attempted.outcome.result or "") + len(attempted.outcome.errors or "")
    return size if size > SMALL else 0


def _is_of_an_outcome(error: Exception) -> bool:
    """Whether an outcome may be the cause: data that the database, or Python on the way to it, can't take.

    All other errors of databases come whatever is written, as from a server that has become a read-only standby; to
    blame outcomes for them would make dead letters of good ones.
    """
    if isinstance(error, DataError | IntegrityError):
        return True
    return not isinstance(error, DatabaseError | InterfaceError | OSError)


def _is_away(error: Exception) -> bool:
    return isinstance(error, OperationalError | InterfaceError | OSError)


def _in_its_place(poison: Attempted, error: Exception) -> Attempted:
    """A dead letter instead of an outcome that can't be stored."""
    job = poison.job
    message = f"{type(error).__name__}: {error}".encode("ascii", "backslashreplace").decode()[:500]
    try:
        errors = json.dumps(decode(with_error(job, UNSTORABLE, message)))
    except Exception as second:
        logger.debug("The earlier errors of job %s are dropped: %s", job.id, one_line(second))
        errors = json.dumps([{"number": 1, "attempt": job.attempt, "class": UNSTORABLE, "message": message}])
    plain = Outcome(poison.outcome.id, poison.outcome.claims, FAILED, None, UNSTORABLE, errors)
    return poison._replace(outcome=plain, error=f"its outcome can't be stored: {one_line(error)}")


def _merge_metadata(store: Store, batch: list[Attempted]) -> None:
    """Store what jobs have left to be merged into their metadata, while they still are running.

    What can't be merged is dropped: it keeps neither the others' nor any outcome from being stored.
    """
    try:
        patches = [(each.outcome.id, each.outcome.claims, each.metadata or "{}") for each in batch]
        for job, done in store.merge_metadata(patches, conf.get("MAX_METADATA_BYTES")):
            if not done:
                logger.error(
                    "The metadata of job %s can't be stored: there would be more than "
                    "DJANGO_JOBS['MAX_METADATA_BYTES'] with what it has",
                    job.id,
                )
    except Exception as error:
        if not _is_of_an_outcome(error):
            raise
        if len(batch) > 1:
            middle = len(batch) // 2
            _merge_metadata(store, batch[:middle])
            _merge_metadata(store, batch[middle:])
        else:
            logger.error("The metadata of job %s can't be stored: %s", batch[0].job.id, one_line(error))


def _first_of_each_job(batch: list[Attempted]) -> tuple[list[Attempted], list[Attempted]]:
    first: dict[int, Attempted] = {}
    again = [
        attempted for attempted in batch if first.setdefault(attempted.outcome.id, attempted) is not attempted
    ]
    return list(first.values()), again
