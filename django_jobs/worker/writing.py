"""How a batch of outcomes is written, whatever it takes: tried again, in halves, and without one that spoils it."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence

from django.db.utils import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError

from django_jobs import conf
from django_jobs.serialization import decode
from django_jobs.store.answers import Ended
from django_jobs.store.base import Store
from django_jobs.store.outcomes import COMPLETED, FAILED
from django_jobs.store.rows import JobRow, Outcome
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.failures import with_error
from django_jobs.worker.finishing import finish, reconcile
from django_jobs.worker.held_rows import HeldRows
from django_jobs.worker.parts import log_exception, one_line, pause_after, until
from django_jobs.worker.retention import Retention

logger = logging.getLogger("django_jobs.worker")

# After this many failures in a row a batch is halved, whatever failed.
TRIES = 5
UNSTORABLE = "django_jobs.OutcomeNotStorable"

OnStored = Callable[[Sequence[Attempted], dict[int, Ended]], None]


class Writing:
    """Writes batches; several threads may at once, each on a store of its own.

    :param retention: what is not kept.
    :param held: takes the outcomes whose rows another transaction holds.
    :param on_stored: see :class:`~django_jobs.worker.completer.Completer`, as ``is_lost``.
    """

    def __init__(
        self, retention: Retention, held: HeldRows, on_stored: OnStored, is_lost: Callable[[JobRow], bool]
    ) -> None:
        self._retention = retention
        self._held = held
        self._on_stored = on_stored
        self._is_lost = is_lost
        self.stopping = threading.Event()
        self.deadline: float | None = None  # of the last flush of a stop
        self.lost = 0  # outcomes given up

    def is_over(self) -> bool:
        """Whether the time of the last flush is over."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def write(self, store: Store, batch: list[Attempted], failures: int = 0, repeated: bool = False) -> None:
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
                ended = finish(store, batch, self._retention)
            except Exception as error:
                if store.is_lock_timeout(error):
                    free = self._held.set_aside(store, batch)
                    if len(free) < len(batch):
                        batch = free
                        # Those that are not kept have a statement of their own; the other may have been stored.
                        repeated = repeated or self._retention.deletes_at_once
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
                if self.is_over():
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
        self.write(store, batch[:middle], failures, repeated=True)
        self.write(store, batch[middle:], repeated=True)

    def _pause(self, failures: int) -> None:
        seconds = pause_after(failures)
        if self.deadline is not None:
            # The last flush is bounded: not long between two tries, and not beyond the end.
            time.sleep(min(seconds, 0.2, until(self.deadline)))
        else:
            self.stopping.wait(seconds)

    def _settle(self, store: Store, poison: Attempted) -> bool:
        """See to an outcome that can't be stored even alone; whether that is over.

        It is to blame only if the database is well: if it fails between two writes that don't. Then a dead letter that
        says so takes its place, in words that any database can hold.
        """
        if not self._is_well(store):
            return False
        try:
            self._stored([poison], finish(store, [poison], self._retention), repeated=True)
            return True
        except Exception as error:
            if _is_away(error):
                return False
            replaced = _in_its_place(poison, error)
        try:
            ended = finish(store, [replaced], self._retention)
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
        by_id = reconcile(batch, ended, repeated, self._retention, self._is_lost)
        try:
            self._on_stored(batch, by_id)
        except BaseException:  # the site's code: whatever it raises, the writer must live
            log_exception(logger, "What is to happen after outcomes are stored failed")


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
