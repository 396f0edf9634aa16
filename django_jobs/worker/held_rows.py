"""Rows that somebody else's transaction holds: their outcomes keep no other one waiting, and are stored when they are
free."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection

from django_jobs.store.base import Store
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.parts import one_line

logger = logging.getLogger("django_jobs.worker")

# Rows that are held are looked at again after this time; sooner while the completer stops.
ASIDE_SECONDS = 0.5
LAST_SECONDS = 0.05


class HeldRows:
    """The outcomes that are set aside.

    :param lock: the completer's, under which it reads what is here.
    """

    def __init__(self, lock: threading.Condition) -> None:
        self._lock = lock
        self.attempts: dict[int, Attempted] = {}  # by the id of the job
        self.due_at = 0.0  # when to look at them again
        self.lost = 0  # given up at the end of a stop

    def set_aside(self, store: Store, batch: list[Attempted]) -> list[Attempted]:
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
                self.attempts.update((each.outcome.id, each) for each in batch if each.outcome.id in locked)
                self.due_at = time.monotonic() + ASIDE_SECONDS
        return [attempted for attempted in batch if attempted.outcome.id not in locked]

    def look(self, store: Store) -> Collection[int]:
        """The ids whose rows still are held, as far as can be told."""
        try:
            return store.locked(list(self.attempts))
        except Exception as error:
            logger.warning("Outcomes that were set aside are not stored yet: %s", one_line(error))
            return frozenset(self.attempts)

    def take_back(self, locked: Collection[int], is_over: bool, stopping: bool) -> list[Attempted]:
        """What is held no more. If it is over, the rest is given up. The caller holds the lock."""
        free = [attempted for id_, attempted in self.attempts.items() if id_ not in locked]
        if is_over and locked:
            self.lost += len(locked)
            logger.error(
                "%d outcomes could not be stored before the end, since another transaction holds their rows; "
                "their jobs run again after the lease",
                len(locked),
            )
        self.attempts = {} if is_over else {id_: each for id_, each in self.attempts.items() if id_ in locked}
        self.due_at = time.monotonic() + (LAST_SECONDS if stopping else ASIDE_SECONDS)
        return free
