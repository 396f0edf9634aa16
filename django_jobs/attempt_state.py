"""What an attempt keeps while it runs, and where the code that it runs finds that."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from django.db import connections

from django_jobs.serialization import encode
from django_jobs.store.rows import JobRow

if TYPE_CHECKING:
    from django_jobs.worker.timeouts import Watch


class AttemptState:
    """What an attempt has done to itself, and was told. Made when it is first needed; most jobs never do."""

    __slots__ = (
        "completed",
        "completing",
        "lock",
        "lost",
        "metadata",
        "progressed_at",
        "result",
        "row",
        "told_cancelled",
        "told_late",
        "unsure",
        "watch",
    )

    def __init__(self, watch: Watch | None = None) -> None:
        self.lock = threading.RLock()
        self.watch = watch
        # The encoded value of each key that is still to be merged into the job's metadata.
        self.metadata: dict[str, str] = {}
        # What was to be merged later, and was merged in a transaction that may yet be rolled back.
        self.unsure: dict[str, str] = {}
        self.progressed_at: float | None = None
        # It has stored its own completion, with this result, in a transaction that is committed.
        self.completed = False
        self.result: str | None = None
        # The row as it was stored, if that has deleted it.
        self.row: JobRow | None = None
        # What is to be called when that transaction is committed.
        self.completing: Callable[[], None] | None = None
        self.lost = False
        # should_stop() was true, for this reason: the job ends because of it, not because its work is done.
        self.told_cancelled = False
        self.told_late = False

    def is_completing(self, using: str) -> bool:
        """Whether it has stored its completion in the transaction that is open: a rollback takes that back."""
        completing = self.completing
        return completing is not None and any(
            entry[1] is completing for entry in connections[using].run_on_commit
        )

    def take_back(self, keys: Iterable[str], before: Mapping[str, str] | None = None) -> None:
        """Have nothing to merge for these keys, or what there was before."""
        with self.lock:
            for key in keys:
                self.metadata.pop(key, None)
                if before is not None and key in before:
                    self.metadata[key] = before[key]

    def take_metadata(self) -> str | None:
        """What is still to be merged, as a JSON object; it is the caller's to store from now on."""
        with self.lock:
            values, self.metadata, self.unsure = {**self.unsure, **self.metadata}, {}, {}
        return joined(values) if values else None

    def merged(self, keys: Iterable[str]) -> None:
        """The database has these keys for good."""
        with self.lock:
            for key in keys:
                self.unsure.pop(key, None)


def joined(values: Mapping[str, str]) -> str:
    """A JSON object of encoded values."""
    return "{" + ",".join(f"{encode(key)}:{text}" for key, text in values.items()) + "}"


# What runs here: the job, its definition, the worker's signs, and the attempt's state. A list, and no object with
# names, since one is made for every attempt; the last place is filled when somebody needs it.
DEFINITION, STATE = 1, 3
running: ContextVar[list[Any] | None] = ContextVar("django_jobs.running", default=None)
_making = threading.Lock()


def state_of(here: list[Any]) -> AttemptState:
    """The state of the attempt that runs ``here``, made now if need be."""
    with _making:
        if here[STATE] is None:
            here[STATE] = AttemptState()
        state: AttemptState = here[STATE]
        return state
