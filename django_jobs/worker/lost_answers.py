"""Claims that were stored and whose answer was lost: nobody runs them, and nobody rescues what a live worker holds."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from django_jobs.store.base import Store
from django_jobs.store.rows import ATTEMPTED_AT, CLAIMS, ID, QUEUE_NAME, JobRow
from django_jobs.worker.parts import until

logger = logging.getLogger("django_jobs.worker")

BATCH = 1000
# A server goes on with a statement whose client has gone away: what it stores later is found by another look, so many
# seconds after the first one; and by a last one, when the epoch of that claim is over.
LOOKS = (0.0, 1.0)


class Epoch:
    """Which of a worker's claims still count: those of the present epoch.

    A claim that failed may be on its way still: something between may deliver it whenever it likes. So it ends its
    epoch, the next heartbeat tells the database, and from then on the claims of that epoch take nothing. Those that
    other producers have sent meanwhile take nothing either, and are sent again: all is one number, which costs nothing.

    :param longest: seconds that a statement takes at most. One that had begun when the heartbeat came ends within that.
    """

    def __init__(self, longest: float) -> None:
        self.number = 0
        self._longest = longest
        self._stored = 0
        self._stored_at = 0.0

    def end(self, number: int) -> None:
        """A claim of that epoch failed."""
        if number == self.number:  # else another one has ended it
            self.number = number + 1

    def stored(self, number: int) -> None:
        """A heartbeat of that epoch came through."""
        if number > self._stored:
            self._stored, self._stored_at = number, time.monotonic()

    def seconds_until_over(self, number: int) -> float:
        """Seconds until no claim of that epoch can take anything any more; infinite until a heartbeat has said so."""
        return until(self._stored_at + self._longest) if number < self._stored else float("inf")


@dataclass
class _Lost:
    """A claim that failed."""

    worker_id: int
    queue_name: str
    epoch: int
    newest: str  # when the last claim before it was made that was answered; empty: there was none
    looks: int = 0
    due_at: float = 0.0


class LostAnswers:
    """Finds the claims of one producer that it does not know of, and gives them back.

    A failed claim may have been stored. Nobody else claims from this producer's queues under its worker's id, and it
    makes one claim after another: so what runs and was claimed later than by the last claim that was answered, and is
    not known from a later answer, is of the one that failed. While none has failed, this keeps one moment, and no jobs:
    there may be a queue for each of a million users.

    :param epoch: of the worker's claims.
    """

    def __init__(self, epoch: Epoch) -> None:
        self._epoch = epoch
        self._newest = ""
        self._lost: list[_Lost] = []
        self._known: set[tuple[int, int]] = set()  # what was claimed since the first of the failures

    def answered(self, jobs: Sequence[JobRow]) -> None:
        """A claim of these jobs was answered."""
        # The texts of moments sort as moments do. The clock may have been set back.
        self._newest = max(self._newest, jobs[0].values[ATTEMPTED_AT])
        if self._lost:
            self._known.update((job.values[ID], job.values[CLAIMS]) for job in jobs)

    def failed(self, worker_id: int, queue_name: str, epoch: int) -> None:
        """A claim of that epoch failed: whether it was stored, or will be, is not known."""
        self._epoch.end(epoch)
        self._lost.append(_Lost(worker_id, queue_name, epoch, self._newest))

    def seconds_until_look(self) -> float | None:
        """Seconds until :meth:`find` should look; None: nothing is lost; infinite: not before a heartbeat."""
        return min(map(self._seconds_until, self._lost), default=None)

    def _seconds_until(self, lost: _Lost) -> float:
        return until(lost.due_at) if lost.looks < len(LOOKS) else self._epoch.seconds_until_over(lost.epoch)

    @property
    def awaited(self) -> bool:
        """Whether there may well be claims that nobody knows of. For a late one a drain does not wait."""
        return any(lost.looks < len(LOOKS) for lost in self._lost)

    def find(self, store: Store, worker_id: int, at_once: bool = False) -> list[JobRow]:
        """The claims of failed claims that are due to be looked for; ``at_once``: of all.

        :param worker_id: the worker's id now. What was claimed under another one has been rescued.
        """
        self._lost = [lost for lost in self._lost if lost.worker_id == worker_id]
        due = [lost for lost in self._lost if at_once or self._seconds_until(lost) == 0.0]
        found: dict[int, JobRow] = {}
        if due:
            after = 0
            while jobs := store.running(worker_id, after, BATCH):
                after = jobs[-1].id
                found |= {job.id: job for job in jobs if any(self._is_of(job, lost) for lost in due)}
        for lost in due:
            lost.looks += 1
            lost.due_at = time.monotonic() + LOOKS[min(lost.looks, len(LOOKS) - 1)]
        looks = len(LOOKS) if store.outlives_client else 0
        self._lost = [lost for lost in self._lost if lost.looks <= looks]
        if not self._lost:
            self._known.clear()
        if found:
            logger.warning(
                "%d jobs were claimed by a statement whose answer was lost; they are given back", len(found)
            )
        return [*found.values()]

    def _is_of(self, job: JobRow, lost: _Lost) -> bool:
        values = job.values
        return (
            values[QUEUE_NAME] == lost.queue_name
            and values[ATTEMPTED_AT] > lost.newest
            and (values[ID], values[CLAIMS]) not in self._known
        )
