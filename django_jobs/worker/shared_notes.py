"""What a child notes for its supervisor, in memory that outlives the child.

When a process dies, nobody can ask it which of its claimed jobs had started. So it notes each one before it starts, in
memory shared with its supervisor. The supervisor reads the notes after the death, when nobody writes them any more.

The memory is a file without a name: a header of words of 8 bytes, then one entry for each attempt: the claim that was
started (id, claims), and the same claim once more when it has ended completed, with nothing else to store. Entries are
never cleared: an attempt takes the entry that was given back longest ago, and a claim is never used twice, so that an
old entry fits no job that runs. An entry torn by the death names two different claims, and is no completed one.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from django_jobs.job_registry import Registry
from django_jobs.store.outcomes import COMPLETED
from django_jobs.store.rows import CLAIMS, ID, JobRow
from django_jobs.worker.attempt import FOR_THE_LOOP, Attempted, GiveUp, Instead, Runner
from django_jobs.worker.completer import BACKLOG, BATCH
from django_jobs.worker.event_loop import EventLoop
from django_jobs.worker.signs import Signs
from django_jobs.worker.timeouts import Timeouts

# The environment variable that tells a child which of its file descriptors is the memory.
VARIABLE = "DJANGO_JOBS_NOTES"

Factories = Sequence[Callable[..., Any]]

_MAGIC = 0x736574_6F6E_6A64
_WORD = 8
_ENTRY = 4  # words: id, claims, and both again when it has completed
_WORKERS = 32  # the last ids that the child had; it gets a new one each time that it was taken for lost
(
    _IS_NOTES,
    _RETIRING,
    _ASKED,
    _ENDED,
    _OVERFLOWN,
    _COMPLETED,
    _FAILED,
    _DEAD,
    _WORKER_COUNT,
    _WORKER_IDS,
) = range(10)
_PROBED = _WORKER_IDS + _WORKERS
_BEAT = _PROBED + 1
_HEADER = _BEAT + 1
# Attempts that have ended and are not stored yet: their entries must not be used again. As many as the completer
# holds before executors wait, and what two writers write.
_UNSTORED = BACKLOG + 2 * BATCH


class Notes:
    """The notes of one child: the child writes, its supervisor reads.

    :param descriptor: of the file.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._map = mmap.mmap(descriptor, 0)
        self._words = memoryview(self._map).cast("q")
        self._lock = threading.Lock()
        self._free: deque[int] = deque()

    @classmethod
    def create(cls, executors: int) -> Notes:
        """Notes for a child with that many executors: the supervisor's end."""
        entries = _UNSTORED + 2 * executors
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("django_jobs-notes")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.truncate(descriptor, (_HEADER + entries * _ENTRY) * _WORD)
        notes = cls(descriptor)
        notes._words[_IS_NOTES] = _MAGIC
        return notes

    @classmethod
    def inherited(cls) -> Notes | None:
        """The notes that a supervisor has passed to this process; None where there is no supervisor."""
        text = os.environ.pop(VARIABLE, "")
        if not text.isdigit():
            return None
        try:
            notes = cls(int(text))
        except (OSError, ValueError):  # a stranger's descriptor: the variable outlived whom it was meant for
            return None
        if len(notes._words) < _HEADER or notes._words[_IS_NOTES] != _MAGIC:
            return None
        os.set_inheritable(notes.descriptor, False)
        notes._free.extend(range(_HEADER, len(notes._words) - _ENTRY + 1, _ENTRY))
        return notes

    def environment(self) -> dict[str, str]:
        """What the child needs in its environment, beside the descriptor (``pass_fds``)."""
        return {VARIABLE: str(self.descriptor)}

    def close(self) -> None:
        """Give up the memory."""
        self._words.release()
        self._map.close()
        os.close(self.descriptor)

    # -- the child -------------------------------------------------------------------------------------------------

    def start(self, job: JobRow) -> int:
        """Note that the job starts. Returns the entry, for :meth:`complete` and :meth:`end`."""
        try:
            entry = self._free.popleft()
        except IndexError:
            # More at once than there can be. Let the supervisor take every claim for started, as it was before notes.
            self._words[_OVERFLOWN] = 1
            return -1
        words, values = self._words, job.values
        words[entry] = values[ID]
        words[entry + 1] = values[CLAIMS]
        return entry

    def complete(self, entry: int) -> None:
        """Note that the attempt has completed, with no result."""
        if entry >= 0:
            words = self._words
            words[entry + 2] = words[entry]
            words[entry + 3] = words[entry + 1]

    def end(self, entry: int) -> None:
        """The attempt is over; its entry stays until all that were given back before it have been used again."""
        if entry >= 0:
            self._free.append(entry)

    def register(self, worker_id: int) -> None:
        """Note the id under which the child claims from now on."""
        with self._lock:
            count = self._words[_WORKER_COUNT]
            self._words[_WORKER_IDS + count % _WORKERS] = worker_id
            self._words[_WORKER_COUNT] = count + 1

    @property
    def probed(self) -> bool:
        """Whether the supervisor wants to know, all the time, that the child lives."""
        return bool(self._words[_PROBED])

    def beat(self) -> None:
        """Note that the child lives."""
        self._words[_BEAT] = time.monotonic_ns()

    def retire(self) -> None:
        """Note that the child claims no more, and wants to be replaced."""
        self._words[_RETIRING] = 1

    def was_asked(self) -> None:
        """Note that the child stops since its row says so."""
        self._words[_ASKED] = 1

    def count(self, completed: int, failed: int, dead: int) -> None:
        """Note what the child has done, whether it can say goodbye to the database or not."""
        self._words[_COMPLETED], self._words[_FAILED], self._words[_DEAD] = completed, failed, dead

    def leave(self) -> None:
        """Note, last of all, that the child has stopped in order and holds nothing."""
        self._words[_ENDED] = 1

    # -- the supervisor --------------------------------------------------------------------------------------------

    def probe(self) -> None:
        """Have the child note that it lives."""
        self._words[_PROBED] = 1

    @property
    def beat_at(self) -> float:
        """When the child has noted last that it lives, by the monotonic clock, which all processes share; 0: never."""
        return self._words[_BEAT] / 1e9

    @property
    def worker_ids(self) -> list[int]:
        """The ids of the child's rows, the newest first."""
        count = self._words[_WORKER_COUNT]
        return [
            self._words[_WORKER_IDS + n % _WORKERS]
            for n in range(count - 1, max(-1, count - 1 - _WORKERS), -1)
        ]

    @property
    def retiring(self) -> bool:
        """Whether the child claims no more and wants to be replaced."""
        return bool(self._words[_RETIRING])

    @property
    def asked(self) -> bool:
        """Whether the child stops since its row says so."""
        return bool(self._words[_ASKED])

    @property
    def ended(self) -> bool:
        """Whether the child has stopped in order."""
        return bool(self._words[_ENDED])

    @property
    def totals(self) -> tuple[int, int, int]:
        """Completed jobs, failed attempts and dead letters of a child that has stopped in order."""
        return self._words[_COMPLETED], self._words[_FAILED], self._words[_DEAD]

    def started(self) -> dict[tuple[int, int], bool] | None:
        """The claims (id, claims) that were started, old ones among them, and whether each is known to have completed.

        None: there were too many to know.
        """
        words = self._words
        if words[_OVERFLOWN]:
            return None
        found: dict[tuple[int, int], bool] = {}
        for entry in range(_HEADER, len(words) - _ENTRY + 1, _ENTRY):
            job_id, claims, again, claims_again = words[entry : entry + _ENTRY]
            if job_id:
                found[job_id, claims] = (again, claims_again) == (job_id, claims)
        return found


class NotedRunner(Runner):
    """A runner that notes each attempt before it starts, and when it has completed.

    :param notes: where to.
    """

    def __init__(
        self,
        notes: Notes,
        registry: Registry,
        signs: Signs,
        factories: Factories = (),
        timeouts: Timeouts | None = None,
        loop: EventLoop | None = None,
    ) -> None:
        super().__init__(registry, signs, factories, timeouts, loop)
        self.notes = notes

    def run(self, job: JobRow, give_up: GiveUp | None = None) -> Attempted | Instead:
        """As :meth:`Runner.run`, noted."""
        if give_up is not None and self.is_for_loop(job):
            return FOR_THE_LOOP  # which notes it when it starts there
        notes = self.notes
        entry = notes.start(job)
        try:
            attempted = super().run(job, give_up)
            if _is_all_told(attempted):
                notes.complete(entry)
            return attempted
        finally:
            notes.end(entry)

    async def arun(self, job: JobRow, give_up: GiveUp | None = None) -> Attempted | Instead:
        """As :meth:`Runner.arun`, noted."""
        entry = self.notes.start(job)
        try:
            attempted = await super().arun(job, give_up)
            if _is_all_told(attempted):
                self.notes.complete(entry)
            return attempted
        finally:
            self.notes.end(entry)


def _is_all_told(attempted: Attempted | Instead) -> bool:
    """Whether an attempt has completed, with nothing else to store."""
    if isinstance(attempted, str):
        return False
    outcome = attempted.outcome
    return outcome.kind == COMPLETED and not any(outcome[3:]) and attempted.metadata is None


def make_runner(
    notes: Notes | None,
    registry: Registry,
    signs: Signs,
    factories: Factories,
    timeouts: Timeouts | None = None,
    loop: EventLoop | None = None,
) -> Runner:
    """The worker's runner; without a supervisor nothing is noted, and nothing is paid for it."""
    if notes is None:
        return Runner(registry, signs, factories, timeouts, loop)
    return NotedRunner(notes, registry, signs, factories, timeouts, loop)
