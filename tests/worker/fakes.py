"""What stands around one part of a worker when it is tested alone: rows, a store in memory, gates for threads."""

import datetime as dt
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from django.db.utils import OperationalError

from django_jobs.store.answers import Ended
from django_jobs.store.outcomes import CANCELLED, COMPLETED, FAILED, RETRY, SNOOZED
from django_jobs.store.rows import (
    ATTEMPT,
    ATTEMPTED_AT,
    CLAIMS,
    JOB_COLUMNS,
    STATE,
    WORKER_ID,
    JobRow,
    Outcome,
)
from django_jobs.worker.attempted import Attempted

TIMEOUT = 30.0
HELD = "canceling statement due to lock timeout"
NOW = dt.datetime(2031, 5, 6, 7, 8, 9, tzinfo=dt.UTC)
WORKER = 7

_DEFAULTS: dict[str, Any] = {
    "id": 1,
    "name": "tests.job",
    "queue_name": "default",
    "args": "[]",
    "kwargs": "{}",
    "priority": 0,
    "state": "running",
    "attempt": 1,
    "max_attempts": 5,
    "claims": 1,
    "run_after": "2031-05-06 07:08:09.000000",
    "created_at": "2031-05-06 07:08:09.000000",
    "attempted_at": "2031-05-06 07:08:10.000000",
    "worker_id": WORKER,
    "holds_key": False,
}


def row(id_: int = 1, **columns: Any) -> JobRow:
    """A job's row as a claim returns it."""
    values = {**_DEFAULTS, "id": id_, **columns}
    return JobRow(tuple(values.get(name) for name in JOB_COLUMNS))


def rows(count: int, first: int = 1, **columns: Any) -> list[JobRow]:
    return [row(number, **columns) for number in range(first, first + count)]


def changed(job: JobRow, **columns: Any) -> JobRow:
    """The same row with other values in some columns."""
    values = dict(zip(JOB_COLUMNS, job.values, strict=True))
    return JobRow(tuple({**values, **columns}.values()))


def attempted(job: JobRow | int, kind: str = COMPLETED, delay: float | None = None, **more: Any) -> Attempted:
    """An attempt that is over."""
    if isinstance(job, int):
        job = row(job)
    outcome = {name: more.pop(name) for name in ("error_class", "errors", "result") if name in more}
    return Attempted(Outcome(job.id, job.claims, kind, delay, **outcome), job, 0.001, **more)


class Gate:
    """A place where a thread waits until the test lets it pass. Open it before the test ends."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def enter(self) -> None:
        self.reached.set()
        assert self.opened.wait(TIMEOUT), "the gate was never opened"

    def __call__(self, *args: Any) -> None:
        """For a hook, which is given arguments."""
        self.enter()

    def wait(self) -> None:
        assert self.reached.wait(TIMEOUT), "nobody came to the gate"

    def open(self) -> None:
        self.opened.set()


class FakeStore:
    """The part of a store's contract that the worker's parts use, in memory. Any number of threads may share it.

    ``before[method]`` and ``after[method]`` are called with the arguments; each of ``faults[method]`` is raised once,
    before the method does anything, and of ``late_faults[method]`` after all is done.
    """

    vendor = "fake"
    probe_before_claim = False
    outlives_client = False

    def __init__(self, jobs: Iterable[JobRow] = ()) -> None:
        self.lock = threading.RLock()
        self.waiting: dict[str, deque[JobRow]] = defaultdict(deque)
        self.claimed: dict[int, JobRow] = {}
        self.finished: list[Outcome] = []
        self.gone: set[int] = set()
        self.held: set[int] = set()  # whose rows another transaction holds: a finish waits for them in vain
        self.calls: list[tuple[Any, ...]] = []
        self.before: dict[str, Callable[..., Any]] = {}
        self.after: dict[str, Callable[..., Any]] = {}
        self.faults: dict[str, list[BaseException]] = defaultdict(list)
        self.late_faults: dict[str, list[BaseException]] = defaultdict(list)
        self.opened = 0
        self.closed = 0
        self.passed_over: dict[str, float] = {}  # by queue: after which time a claim finds more
        self.session = SimpleNamespace(statements=0, connects=0)
        self.moment = NOW  # of the last claim
        self.add(jobs)

    def open(self, *args: Any) -> "FakeStore":
        """What the parts take as ``open_store``."""
        self.opened += 1
        return self

    def close(self) -> None:
        self.closed += 1

    def add(self, jobs: Iterable[JobRow]) -> None:
        """Available jobs."""
        with self.lock:
            for job in jobs:
                self.waiting[job.queue_name].append(
                    changed(
                        job, state="available", attempt=job.attempt - 1, claims=job.claims - 1, worker_id=None
                    )
                )

    def called(self, method: str) -> list[tuple[Any, ...]]:
        """The arguments of all calls of a method so far."""
        with self.lock:
            return [arguments for name, *arguments in self.calls if name == method]

    def _enter(self, method: str, *arguments: Any) -> None:
        with self.lock:
            self.calls.append((method, *arguments))
            self.session.statements += 1
            fault = self.faults[method].pop(0) if self.faults[method] else None
        if method in self.before:
            self.before[method](*arguments)
        if fault is not None:
            raise fault

    def _leave(self, method: str, *arguments: Any) -> None:
        if method in self.after:
            self.after[method](*arguments)
        with self.lock:
            fault = self.late_faults[method].pop(0) if self.late_faults[method] else None
        if fault is not None:
            raise fault

    def claim(self, worker_id: int, queue_name: str, limit: int, epoch: int = 0) -> list[JobRow]:
        self._enter("claim", worker_id, queue_name, limit)
        claimed = []
        self.moment += dt.timedelta(microseconds=1)
        with self.lock:
            queue = self.waiting[queue_name]
            while queue and len(claimed) < limit:
                job = queue.popleft()
                values = list(job.values)
                values[STATE], values[WORKER_ID], values[ATTEMPTED_AT] = (
                    "running",
                    worker_id,
                    self.moment.isoformat(" "),
                )
                values[ATTEMPT] += 1
                values[CLAIMS] += 1
                job = JobRow(tuple(values))
                self.claimed[job.id] = job
                claimed.append(job)
        self._leave("claim", worker_id, queue_name, limit)
        return claimed

    def seconds_until_claim(self, queue_name: str) -> float | None:
        return self.passed_over.get(queue_name)

    def running(self, worker_id: int, after: int = 0, limit: int = 1000) -> list[JobRow]:
        self._enter("running", worker_id, after, limit)
        with self.lock:
            held = [job for job in self.claimed.values() if job.worker_id == worker_id and job.id > after]
        return sorted(held, key=lambda job: job.id)[:limit]

    def waiting_queues(self) -> list[str]:
        self._enter("waiting_queues")
        with self.lock:
            return sorted(name for name, queue in self.waiting.items() if queue)

    def release(self, jobs: Sequence[JobRow]) -> list[JobRow]:
        self._enter("release", list(jobs))
        with self.lock:
            held = [job for job in jobs if self._held(job.id, job.claims)]
            for job in held:
                del self.claimed[job.id]
                self.waiting[job.queue_name].append(
                    changed(job, state="available", attempt=job.attempt - 1, worker_id=None)
                )
        self._leave("release", jobs)
        return held

    def _held(self, id_: int, claims: int) -> bool:
        return id_ in self.claimed and self.claimed[id_].claims == claims

    def is_lock_timeout(self, error: Exception) -> bool:
        return str(error) == HELD

    def locked(self, ids: Sequence[int]) -> frozenset[int]:
        self._enter("locked", list(ids))
        with self.lock:
            return frozenset(self.held.intersection(ids))

    def finish(self, outcomes: Sequence[Outcome]) -> list[Ended]:
        """Store outcomes. Of a claim that this store knows nothing of, it is stored too: tests need not claim first."""
        self._enter("finish", list(outcomes))
        ended = []
        with self.lock:
            if any(outcome.id in self.held for outcome in outcomes):
                raise OperationalError(HELD)
            over = {(outcome.id, outcome.claims): outcome for outcome in self.finished}
            for outcome in outcomes:
                if outcome.id in self.gone or outcome.claims < 0:  # no such job, or claim
                    continue
                if (outcome.id, outcome.claims) in over:
                    state = _state_after(over[outcome.id, outcome.claims])
                    job = row(outcome.id, claims=outcome.claims, state=state)
                    ended.append(Ended(outcome.id, state, False, job))
                    continue
                self.claimed.pop(outcome.id, None)
                self.finished.append(outcome)
                ended.append(Ended(outcome.id, _state_after(outcome), True))
        self._leave("finish", outcomes)
        return ended


def _state_after(outcome: Outcome) -> str:
    if outcome.kind in (RETRY, SNOOZED):
        return "scheduled" if (outcome.delay or 0) > 0 else "available"
    assert outcome.kind in (COMPLETED, FAILED, CANCELLED)
    return outcome.kind
