"""``python -m tests.chaos.enqueuer SEED PER_SECOND``: a process like a web server's. It enqueues in transactions of all
kinds, cancels, retries and changes jobs, and notes what it intends before, and what it knows after, until SIGTERM."""

import random
import signal
import sys
import threading
import uuid
from collections import deque
from typing import Any

import django

django.setup()

import datetime as dt  # noqa: E402

from django.db import Error, connection, transaction  # noqa: E402

from django_jobs import JobDefinition, operations  # noqa: E402
from django_jobs.store.rows import JobRow  # noqa: E402
from tests.chaos import jobs  # noqa: E402
from tests.chaos.journal import note  # noqa: E402

# How often each: mostly plain work.
KINDS = {
    "plain": 12,
    "slow": 4,
    "flaky": 4,
    "doomed": 1,
    "effect": 5,
    "effect_by_hand": 4,
    "unique": 5,
    "snoozing": 2,
    "asynchronous": 3,
    "late": 0.3,
    "rude": 1,
    "poison": 0.05,
}
KEYS = 8


class RolledBack(Exception):
    pass


class Enqueuer:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.recent: deque[tuple[str, int]] = deque(maxlen=12)  # kind and id of what was committed

    def run(self, stopping: threading.Event, between: float) -> None:
        acts = {self.enqueue_one: 8, self.enqueue_some: 4, self.enqueue_bulk: 1, self.operate: 2}
        while not stopping.wait(self.rng.uniform(0.2, 1.8) * between):
            try:
                self.rng.choices(list(acts), list(acts.values()))[0]()
            except Error as error:
                cause = error.__cause__
                note(
                    "failed",
                    error=type(error).__name__,
                    message=str(error),
                    sqlstate=getattr(cause, "sqlstate", None),
                )
                connection.close()  # as Django does it between two requests

    # -- enqueueing ------------------------------------------------------------------------------------------------

    def intend(self, keyed: bool = True) -> tuple[str, str, JobDefinition[Any, Any], dict[str, Any]]:
        """A job to enqueue: its kind, its token, its function and its arguments."""
        rng = self.rng
        kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
        if kind == "unique" and not keyed:
            kind = "plain"
        kwargs: dict[str, Any] = {"token": uuid.uuid4().hex}
        if kind == "slow":
            kwargs["seconds"] = round(rng.uniform(0.2, 3), 2)
        elif kind.startswith("effect"):
            # In its transaction; on SQLite that keeps all others from writing.
            kwargs["seconds"] = round(rng.uniform(0.0, 0.3 if connection.vendor == "postgresql" else 0.01), 3)
        elif kind == "flaky":
            kwargs["failures"] = rng.randint(1, 3)
        elif kind == "unique":
            kwargs["key"] = rng.randrange(KEYS)
        definition: JobDefinition[Any, Any] = getattr(jobs, kind)
        if rng.random() < 0.2:
            definition = definition.using(priority=rng.randint(-5, 5))
        if rng.random() < 0.1:
            definition = definition.using(run_after=dt.timedelta(seconds=rng.uniform(0, 3)))
        note("intended", token=kwargs["token"], kind=kind)
        return kind, kwargs["token"], definition, kwargs

    def committed(self, kind: str, token: str, job: JobRow) -> None:
        note("committed", token=token, id=job.id, duplicate=job.is_duplicate)
        self.recent.append((kind, job.id))

    def enqueue_one(self) -> None:
        """On its own: the insert is the transaction."""
        kind, token, definition, kwargs = self.intend()
        self.committed(kind, token, definition.enqueue(**kwargs))

    def enqueue_some(self) -> None:
        """With other writes, and perhaps rolled back."""
        enqueued: list[tuple[str, str, JobRow]] = []
        try:
            with transaction.atomic():
                for number in range(self.rng.randint(1, 4)):
                    # Two keys in one transaction could meet another transaction with the same two.
                    kind, token, definition, kwargs = self.intend(keyed=number == 0)
                    enqueued.append((kind, token, definition.enqueue(**kwargs)))
                if self.rng.random() < 0.3:
                    raise RolledBack
        except RolledBack:
            note("rolled back", tokens=[token for _, token, _ in enqueued])
            return
        for kind, token, job in enqueued:
            self.committed(kind, token, job)

    def enqueue_bulk(self) -> None:
        """Many in one statement."""
        tokens = [uuid.uuid4().hex for _ in range(self.rng.randint(2, 60))]
        for token in tokens:
            note("intended", token=token, kind="plain")
        for token, job in zip(tokens, jobs.plain.enqueue_many([(token,) for token in tokens]), strict=True):
            self.committed("plain", token, job)

    # -- operating -------------------------------------------------------------------------------------------------

    def operate(self) -> None:
        """What an operator does with what is there, in any state by now."""
        if not self.recent:
            return
        chosen = self.rng.sample(list(self.recent), min(len(self.recent), 4))
        doomed = [id_ for kind, id_ in chosen if kind == "doomed"]
        others = [id_ for kind, id_ in chosen if kind not in ("doomed", "poison")]
        if doomed:
            operations.retry(doomed)
        elif others and self.rng.random() < 0.5:
            note("cancels", ids=others)
            note("cancelled", ids=operations.cancel(others).done_ids)
        elif others:
            operations.update(others, priority=self.rng.randint(-5, 5))


def main() -> None:
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    note("started")
    Enqueuer(int(sys.argv[1])).run(stopping, 1 / float(sys.argv[2]))


if __name__ == "__main__":
    main()
