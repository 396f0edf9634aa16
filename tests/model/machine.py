"""Random operations on a store, each also written into the book; after every step the tables are what the book says."""

import contextlib
import datetime as dt
import json
from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from django_jobs.models import Job, Queue, Worker
from django_jobs.store import Store
from django_jobs.store.base import WORKER_LOST
from django_jobs.store.outcomes import CANCELLED, COMPLETED, FAILED, RELEASED, RETRY, SNOOZED
from django_jobs.store.rows import CLAIMS, JobRow, NewJob, Outcome
from django_jobs.worker.failures import with_error
from tests.model.book import FINISHED, WAITING, Book, Entry, Helper
from tests.store.builders import Clock

QUEUES = ("default", "mail")
LEASE = 30.0

# Which of those there are; the numbers are taken round and round.
picks = st.lists(st.integers(0, 40), min_size=1, max_size=4)
limits = st.integers(1, 5)
queues = st.sampled_from(QUEUES)
ages = st.sampled_from([0.0, 1.0, 60.0, 3600.0])
delays = st.sampled_from([0.0, 1.0, 60.0])
# (builds() would make up what is left out, from the types of the fields.)
new_jobs = st.builds(
    lambda **options: NewJob("tests.job", **options),
    queue_name=queues,
    priority=st.sampled_from([0, 0, 5, -100]),
    max_attempts=st.integers(1, 3),
    delay=st.none() | delays,
    args=st.integers(0, 9).map("[{}]".format),
    pending=st.sampled_from([False, False, False, True]),
)
keyed_jobs = st.builds(
    lambda new, key, period, replace: new._replace(unique_key=key, unique_for=period, replace=replace),
    new_jobs,
    st.sampled_from(["a", "b"]),
    st.sampled_from([None, 86400]),
    st.booleans(),
)
any_jobs = new_jobs | keyed_jobs


class Undone(Exception):
    """Raised to roll a transaction back."""


class StoreMachine(RuleBasedStateMachine):
    """One store with several connections, which take turns: what one has written, the other must go by.

    :param stores: on connections of their own; and the one on Django's connection.
    """

    def __init__(self, stores: Sequence[Store], shared: Store) -> None:
        super().__init__()
        self.stores = stores
        self.shared = shared
        self.clock = Clock()
        self.book = Book()
        self.ids: list[int] = []  # of all jobs that there were
        self.workers: list[int] = []  # of all workers that there were
        self.turn = 0
        self.moments: set[dt.datetime] = set()  # at which something was done

    @property
    def store(self) -> Store:
        self.turn += 1
        return self.stores[self.turn % len(self.stores)]

    @property
    def now(self) -> dt.datetime:
        return self.clock.now

    def tick(self) -> None:
        """Time goes on: SQLite tells by the moment what an operation has done and what another one had before it."""
        self.clock.advance(0.000001)
        while self.now in self.moments:  # the clock has jumped back, to the very microsecond of another one
            self.clock.advance(0.000001)

    def teardown(self) -> None:
        with connection.cursor() as cursor:
            for model in (Job, Worker, Queue):
                cursor.execute(f"DELETE FROM {model._meta.db_table}")

    def jobs(self, numbers: Sequence[int]) -> list[int]:
        """Ids, of jobs that are gone too."""
        return sorted({self.ids[number % len(self.ids)] for number in numbers}) if self.ids else []

    def worker(self, number: int) -> int:
        """A worker, that lives as a rule."""
        living = [id_ for id_, helper in self.book.workers.items() if helper.lives]
        chosen = self.workers if number >= 8 or not living else living
        return chosen[number % len(chosen)]

    def running(self) -> list[tuple[int, int]]:
        return [(job.id, job.claims) for job in self.book.jobs.values() if job.state == "running"]

    def finished(self) -> list[int]:
        return [job.id for job in self.book.jobs.values() if job.state in FINISHED]

    def claims_of(self, numbers: Sequence[int], late: bool) -> list[tuple[int, int]]:
        """Claims: live ones, or, ``late``, any that ever was; one for each job."""
        claims = self.running()
        if late:
            # Best of all, of jobs that have been claimed again since.
            again = {id_ for id_, _ in claims}
            old = [claim for claim in self.book.claims if claim not in claims]
            claims = [claim for claim in old if claim[0] in again] or old
        chosen = [claims[number % len(claims)] for number in numbers] if claims else []
        return sorted(dict(chosen).items())

    # -- inserting -------------------------------------------------------------------------------------------------

    def enter(self, row: JobRow, new: NewJob) -> None:
        """Take in what an insert returned; jobs that the database held before are known by their ids."""
        fresh = self.book.expected(new, self.now)
        holder = self.book.holder(fresh.unique_key)
        assert row.is_duplicate == (holder is not None)
        if holder is None:
            assert row.id > max(self.ids, default=0), "an id was used again"
            fresh.id = row.id
            self.book.jobs[row.id] = fresh
            self.ids.append(row.id)
        else:
            assert row.id == holder.id
            if new.replace and holder.state in WAITING:
                self.book.replace(holder, new, self.now)
        assert_same(row, self.book.jobs[row.id])

    @rule(new=any_jobs)
    def enqueue(self, new: NewJob) -> None:
        self.enter(self.store.insert(new, now=self.now), new)

    @rule(new=st.lists(any_jobs, min_size=1, max_size=5))
    def enqueue_many(self, new: list[NewJob]) -> None:
        rows = self.store.insert_many(new, now=self.now)
        assert len(rows) == len(new)
        # The last of one call that replaces wins over the first, wherever the first one stands.
        owners: dict[Any, int] = {}
        wins = list(new)
        for position, job in enumerate(new):
            identity = (job.unique_key, job.unique_for) if job.unique_key is not None else position
            owner = owners.setdefault(identity, position)
            if owner != position:
                assert rows[position].is_duplicate
                assert rows[position].id == rows[owner].id
                wins[owner] = job if job.replace else wins[owner]
        for position in owners.values():
            self.enter(rows[position], wins[position])

    @rule(new=any_jobs)
    def enqueue_and_roll_back(self, new: NewJob) -> None:
        with contextlib.suppress(Undone), transaction.atomic():
            self.shared.insert(new, now=self.now)
            raise Undone

    @rule(new=any_jobs)
    def enqueue_in_a_transaction(self, new: NewJob) -> None:
        with transaction.atomic():
            row = self.shared.insert(new, now=self.now)
        self.enter(row, new)

    # -- workers ---------------------------------------------------------------------------------------------------

    @initialize(new=st.lists(any_jobs, min_size=3, max_size=6))
    def begin(self, new: list[NewJob]) -> None:
        for _ in range(3):
            self.register()
        self.enqueue_many(new)
        for queue in QUEUES:
            self.claim(0, queue, 2)

    @rule()
    def register(self) -> None:
        row = self.store.register_worker("host", 1, '["*"]', 4, "1.0", LEASE, now=self.now)
        assert row.id > max(self.workers, default=0), "a worker's id was used again"
        self.workers.append(row.id)
        self.book.workers[row.id] = Helper(self.clock.after(LEASE), self.now)

    @rule(number=st.integers(0, 9))
    def heartbeat(self, number: int) -> None:
        id_ = self.worker(number)
        heartbeat = self.store.heartbeat(id_, LEASE, now=self.now)
        if self.book.lost(id_):
            assert heartbeat is None, "a worker that was given up renewed its lease"
            return
        self.book.workers[id_].expires_at = self.clock.after(LEASE)
        self.book.workers[id_].heartbeat_at = self.now
        wanted = {
            job.id
            for job in self.book.jobs.values()
            if job.worker_id == id_ and job.state == "running" and job.cancel_requested_at
        }
        assert heartbeat is not None
        assert (heartbeat.now, heartbeat.paused, heartbeat.cancelled) == (self.now, self.book.paused, wanted)
        assert self.store.cancel_requests(id_) == wanted

    @rule(number=st.integers(0, 9))
    def stop_worker(self, number: int) -> None:
        id_ = self.worker(number)
        helper = self.book.workers.get(id_)
        ends = helper is not None and not helper.stopped
        assert (self.store.stop_worker(id_, now=self.now) is not None) == ends
        if helper is not None and ends:
            helper.stopped, helper.ended_at = True, self.now

    @rule(number=st.integers(0, 9))
    def lose_worker(self, number: int) -> None:
        id_ = self.worker(number)
        helper = self.book.workers.get(id_)
        ends = helper is not None and helper.lives
        assert (self.store.lose_worker(id_, now=self.now) is not None) == ends
        if helper is not None and ends:
            helper.lost, helper.ended_at = True, self.now

    @rule()
    def lose_workers(self) -> None:
        lost = {worker.id for worker in self.store.lose_workers(now=self.now)}
        assert lost == set(self.book.lose_workers(self.now))

    @rule(age=ages)
    def purge_workers(self, age: float) -> None:
        purged = {worker.id for worker in self.store.purge_workers(age, now=self.now)}
        assert purged == set(self.book.purge_workers(age, self.now))

    # -- claims ----------------------------------------------------------------------------------------------------

    @rule(number=st.integers(0, 9), limit=limits)
    def claim_from_each(self, number: int, limit: int) -> None:
        for queue in QUEUES:
            self.claim(number, queue, limit)

    @rule(number=st.integers(0, 9), limit=limits)
    def promote_and_claim(self, number: int, limit: int) -> None:
        self.promote(10)
        self.claim_from_each(number, limit)

    @rule(number=st.integers(0, 9), queue=queues, limit=limits)
    def claim(self, number: int, queue: str, limit: int) -> None:
        id_ = self.worker(number)
        claimed = self.store.claim(id_, queue, limit, now=self.now)
        assert [job.id for job in claimed] == self.book.claim(id_, queue, limit, self.now)
        for job in claimed:
            assert job.attempted_at == self.now
            assert_same(job, self.book.jobs[job.id])

    def outcomes(
        self, claims: Sequence[tuple[int, int]], kinds: Sequence[str], delay: float
    ) -> list[Outcome]:
        rows = {job.id: job for job in self.store.get([id_ for id_, _ in claims])}
        outcomes = []
        for (id_, number), kind in zip(claims, kinds, strict=False):
            if kind in (RETRY, FAILED):
                errors = None
                if id_ in rows:
                    errors = with_error(rows[id_], "ValueError", f"of {number}", now=self.now)
                outcomes.append(Outcome(id_, number, kind, delay, "ValueError", errors))
            elif kind == COMPLETED:
                outcomes.append(Outcome(id_, number, kind, result=json.dumps(f"by {number}")))
            else:
                outcomes.append(Outcome(id_, number, kind, delay if kind == SNOOZED else None))
        return outcomes

    @precondition(lambda self: self.book.claims)
    @rule(
        numbers=picks,
        kinds=st.lists(
            st.sampled_from([COMPLETED, RETRY, FAILED, SNOOZED, CANCELLED, RELEASED]), min_size=4, max_size=4
        ),
        delay=delays,
        late=st.booleans(),
        whole=st.booleans(),
    )
    def finish(self, numbers: list[int], kinds: list[str], delay: float, late: bool, whole: bool) -> None:
        self.finish_claims(self.claims_of(numbers, late), kinds, delay, whole)

    def finish_claims(
        self, claims: Sequence[tuple[int, int]], kinds: Sequence[str], delay: float, whole: bool
    ) -> None:
        outcomes = self.outcomes(claims, kinds, delay)
        ended = self.store.finish(outcomes, now=self.now, whole_rows=whole)
        told = {item.id: (item.state, item.stored) for item in ended}
        assert told == self.book.finish(outcomes, self.now)
        for item in ended:
            if item.job is not None:
                assert_same(item.job, self.book.jobs[item.id])

    @precondition(lambda self: self.book.claims)
    @rule(numbers=picks, late=st.booleans())
    def complete(self, numbers: list[int], late: bool) -> None:
        self.complete_claims(self.claims_of(numbers, late))

    def complete_claims(self, claims: Sequence[tuple[int, int]]) -> None:
        outcomes = [Outcome(id_, number, COMPLETED) for id_, number in claims]
        self.tick()
        ended = self.store.finish(outcomes, now=self.now)
        assert {item.id: (item.state, item.stored) for item in ended} == self.book.finish(outcomes, self.now)

    @precondition(lambda self: self.book.claims)
    @rule(numbers=picks, kinds=st.lists(st.sampled_from([COMPLETED, RETRY, FAILED]), min_size=4, max_size=4))
    def finish_and_delete(self, numbers: list[int], kinds: list[str]) -> None:
        outcomes = self.outcomes(self.claims_of(numbers, late=False), kinds, 0.0)
        unkept = {outcome.id: ("completed", "failed") for outcome in outcomes}
        ended = self.store.finish_and_delete(outcomes, unkept, now=self.now)
        expected = self.book.finish(outcomes, self.now)
        assert {item.id: (item.state, item.stored) for item in ended} == expected
        self.book.remove_ended(expected, ("completed", "failed"), self.now)

    @precondition(lambda self: self.book.claims)
    @rule(numbers=picks, late=st.booleans())
    def release(self, numbers: list[int], late: bool) -> None:
        self.release_claims(self.claims_of(numbers, late))

    def release_claims(self, claims: Sequence[tuple[int, int]]) -> None:
        rows = [claimed_as(row, dict(claims)[row.id]) for row in self.store.get(dict(claims))]
        released = self.store.release(rows, now=self.now)
        assert [job.id for job in released] == self.book.release(claims, self.now)
        for job in released:
            assert_same(job, self.book.jobs[job.id])

    @precondition(lambda self: self.book.claims)
    @rule(numbers=picks, late=st.booleans(), value=st.integers(0, 3))
    def merge_metadata(self, numbers: list[int], late: bool, value: int) -> None:
        self.merge_into(self.claims_of(numbers, late), value)

    def merge_into(self, claims: Sequence[tuple[int, int]], value: int) -> None:
        patch = {str(value): [value]}
        merged = self.store.merge_metadata(
            [(id_, number, json.dumps(patch)) for id_, number in claims], now=self.now
        )
        live = [job for job in (self.book.held(*claim) for claim in claims) if job is not None]
        assert [(item.job.id, item.done) for item in merged] == [(job.id, True) for job in live]
        for job in live:
            job.metadata = {**job.metadata, **patch}

    @precondition(lambda self: self.running())
    @rule(
        numbers=picks,
        number=st.integers(0, 7),
        kinds=st.lists(
            st.sampled_from([COMPLETED, RETRY, FAILED, SNOOZED, CANCELLED]), min_size=4, max_size=4
        ),
        how=st.sampled_from(["finish", "complete", "release", "merge"]),
    )
    def speak_late_of_what_was_claimed_again(
        self, numbers: list[int], number: int, kinds: list[str], how: str
    ) -> None:
        """Left to chance, a job is hardly ever claimed again, and then spoken of by who had it before."""
        claims = self.claims_of(numbers, late=False)
        self.release_claims(claims)
        self.claim_from_each(number, 10)
        if how == "finish":
            self.finish_claims(claims, kinds, 0.0, whole=False)
        elif how == "complete":
            self.complete_claims(claims)
        elif how == "release":
            self.release_claims(claims)
        else:
            self.merge_into(claims, number)

    # -- operators -------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.ids)
    @rule(numbers=picks, running=st.booleans())
    def cancel(self, numbers: list[int], running: bool) -> None:
        ids = [id_ for id_, _ in self.claims_of(numbers, late=False)] if running else self.jobs(numbers)
        self.tick()
        told = self.store.cancel_each(ids, now=self.now)
        assert {item.job.id: item.at_once for item in told} == self.book.cancel(ids, self.now)
        for item in told:
            assert_same(item.job, self.book.jobs[item.job.id])

    @precondition(lambda self: self.finished())
    @rule(numbers=picks)
    def retry(self, numbers: list[int]) -> None:
        finished = self.finished()
        chosen = {finished[number % len(finished)] for number in numbers}
        keys = {self.book.jobs[id_].unique_key for id_ in chosen} - {None}
        rivals = {id_ for id_ in finished if self.book.jobs[id_].unique_key in keys}
        ids = sorted({*self.jobs(numbers[:1]), *chosen, *rivals})
        self.tick()
        told = self.store.retry(ids, now=self.now)
        assert {item.job.id: item.done for item in told} == self.book.retry(ids, self.now)
        for item in told:
            assert_same(item.job, self.book.jobs[item.job.id])

    @precondition(lambda self: self.ids)
    @rule(numbers=picks)
    def release_pending(self, numbers: list[int]) -> None:
        ids = self.jobs(numbers)
        told = self.store.release_pending(ids, now=self.now)
        assert {item.job.id: item.done for item in told} == self.book.release_pending(ids, self.now)

    @precondition(lambda self: self.ids)
    @rule(
        numbers=picks,
        queue=st.none() | queues,
        priority=st.none() | st.sampled_from([7, -7]),
        most=st.none() | st.integers(1, 4),
        delay=st.none() | delays,
    )
    def update(
        self,
        numbers: list[int],
        queue: str | None,
        priority: int | None,
        most: int | None,
        delay: float | None,
    ) -> None:
        ids = self.jobs(numbers)
        changes = {"queue_name": queue, "priority": priority, "max_attempts": most, "delay": delay}
        told = self.store.update(ids, now=self.now, **changes)  # type: ignore[arg-type]
        assert {item.job.id: item.done for item in told} == self.book.update(ids, self.now, **changes)

    @precondition(lambda self: self.ids)
    @rule(numbers=picks, state=st.none() | st.sampled_from(FINISHED))
    def delete(self, numbers: list[int], state: str | None) -> None:
        ids = self.jobs(numbers)
        deleted = self.store.delete(ids, state, now=self.now)
        assert [job.id for job in deleted] == self.book.delete(ids, state, self.now)

    @precondition(lambda self: self.running())
    @rule(number=st.integers(0, 40), kind=st.sampled_from([COMPLETED, RETRY, FAILED, SNOOZED, RELEASED]))
    def cancel_a_claim_that_ends(self, number: int, kind: str) -> None:
        claims = self.running()
        id_, claim = claims[number % len(claims)]
        self.store.cancel([id_], now=self.now)
        self.book.cancel([id_], self.now)
        outcomes = self.outcomes([(id_, claim)], [kind], 1.0)
        ended = self.store.finish(outcomes, now=self.now)
        assert {item.id: (item.state, item.stored) for item in ended} == self.book.finish(outcomes, self.now)

    @rule(queue=queues, pause=st.booleans())
    def pause(self, queue: str, pause: bool) -> None:
        row = self.store.upsert_queue(queue, pause=pause, now=self.now)
        (self.book.paused.add if pause else self.book.paused.discard)(queue)
        assert (row.paused_at is not None) == pause

    # -- maintenance -----------------------------------------------------------------------------------------------

    @rule(limit=limits)
    def promote(self, limit: int) -> None:
        due = [job.run_after for job in self.book.jobs.values() if job.state == "scheduled"]
        seconds = self.store.next_due(now=self.now)
        assert (seconds is None) == (not due)
        if seconds is not None:
            assert abs(seconds - (min(due) - self.now).total_seconds()) < 0.001
        promoted = self.store.promote(limit, now=self.now)
        assert [job.id for job in promoted] == self.book.promote(limit, self.now)

    @rule(limit=limits, spread=st.sampled_from([0.0, 10.0]), number=st.none() | st.integers(0, 9))
    def rescue(self, limit: int, spread: float, number: int | None) -> None:
        only = None if number is None else self.worker(number)
        rescued = self.store.rescue(limit, spread, only, now=self.now)
        right = [
            job.id
            for job in self.book.jobs.values()
            if job.state == "running"
            and (self.book.lost(job.worker_id) if only is None else job.worker_id == only)
        ]
        assert {job.id for job in rescued} <= set(right), "a live worker's claim was ended"
        assert len(rescued) == min(limit, len(right))
        self.book.rescue([job.id for job in rescued], "scheduled" if spread else "available", self.now)
        for row in rescued:
            if row.state == "scheduled":
                late = (row.run_after - self.now).total_seconds()
                assert -0.001 <= late <= spread  # SQLite has milliseconds here
                self.book.jobs[row.id].run_after = row.run_after
            assert row.errors[-1]["class"] == WORKER_LOST
            assert_same(row, self.book.jobs[row.id])

    @rule(age=ages, limit=limits)
    def purge(self, age: float, limit: int) -> None:
        for state in FINISHED:
            purged = self.store.purge(state, age, limit, now=self.now)
            assert sorted(purged) == self.book.purge(state, age, limit, self.now)

    @rule(seconds=st.sampled_from([0.000001, 1.0, 29.0, 31.0, 60.0, 3600.0, -0.000001, -1.0, -31.0, -3600.0]))
    def clock_jumps(self, seconds: float) -> None:
        self.clock.advance(seconds)

    # -- what must hold --------------------------------------------------------------------------------------------

    @invariant()
    def the_table_is_what_the_book_says(self) -> None:
        self.moments.add(self.now)
        rows = {job.id: job for job in self.stores[0].get(self.ids)}
        assert Job.objects.count() == len(rows), "a job that nobody inserted"
        assert rows.keys() == self.book.jobs.keys(), "a job disappeared, or came back"
        for id_, row in rows.items():
            assert_same(row, self.book.jobs[id_])
            assert_sound(row)
        held = [row.unique_key for row in rows.values() if row.holds_key]
        assert len(held) == len(set(held)), "two jobs hold one key"

    @invariant()
    def the_workers_are_what_the_book_says(self) -> None:
        rows = Worker.objects.in_bulk()
        assert rows.keys() == self.book.workers.keys()
        for id_, row in rows.items():
            helper = self.book.workers[id_]
            assert (row.expires_at, row.lost_at is not None, row.stopped_at is not None) == (
                helper.expires_at,
                helper.lost,
                helper.stopped,
            )


def claimed_as(row: JobRow, claims: int) -> JobRow:
    """The row as it was when it was claimed for that time, as far as a release looks at it."""
    values = list(row.values)
    values[CLAIMS] = claims
    return JobRow(tuple(values))


MOST_ERRORS = 20

COLUMNS = (
    "queue_name", "priority", "max_attempts", "args", "state", "run_after", "unique_key", "key_until", "holds_key",
    "attempt", "claims", "worker_id", "finalized_at", "cancel_requested_at", "error_class", "result", "metadata",
)  # fmt: skip


def assert_same(row: JobRow, entry: Entry) -> None:
    """A row is the job of the book."""
    there: dict[str, Any] = {name: getattr(row, name) for name in COLUMNS}
    wanted: dict[str, Any] = {name: getattr(entry, name) for name in COLUMNS}
    there["errors"], wanted["errors"] = len(row.errors), min(entry.errors, MOST_ERRORS)
    differ = {name: (there[name], wanted[name]) for name in there if there[name] != wanted[name]}
    assert not differ, f"job {row.id} has, and should have: {differ}"


def assert_sound(row: JobRow) -> None:
    """What must be true of every row at every moment."""
    assert (row.finalized_at is not None) == (row.state in FINISHED)
    assert 0 <= row.attempt <= row.max_attempts
    assert row.attempt <= row.claims
    assert row.attempt < row.max_attempts or row.state not in WAITING, "it waits with no attempt left"
    assert (row.state == "running") <= (row.worker_id is not None and row.attempt > 0)
    assert not row.holds_key or row.unique_key is not None
    assert row.holds_key or row.unique_key is None or row.state in FINISHED, "a live job without its key"
    numbers = [error["number"] for error in row.errors]
    assert numbers == sorted(set(numbers)), "the errors are not numbered one after another"
