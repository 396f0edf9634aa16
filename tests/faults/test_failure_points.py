"""Every statement of a worker fails once, before or after it took effect: nothing is lost, nothing is done twice.

All statements fail in one run, each once, and each fails in a run of its own: by default by a lost answer, with
``DJANGO_JOBS_TEST_ALL_FAULTS=1`` in every way.
"""

import contextlib
import datetime as dt
import os
import threading
from collections import Counter

import pytest

from django_jobs import current_job
from django_jobs.models import Job, Worker as WorkerModel
from tests.faults.failing import AFTER, BEFORE, Failures, closed, deadlock, locked, timed_out
from tests.waiting import eventually
from tests.workload.models import Effect

ALL = os.environ.get("DJANGO_JOBS_TEST_ALL_FAULTS", "0") != "0"
FAULTS = {
    "connection lost before": (closed, BEFORE, True),
    "connection lost after": (closed, AFTER, True),
    "deadlock": (deadlock, BEFORE, False),
    "locked": (locked, BEFORE, False),
    "timed out": (timed_out, BEFORE, False),
}
# What runs here at least, whatever the database; and what runs once at the end.
RUNNING = {
    "acquire_leadership", "claim", "complete", "finish", "heartbeat", "lose_workers", "merge_metadata", "next_due",
    "promote", "record_stats", "register_worker", "rescue", "waiting_queues",
}  # fmt: skip
STOPPING = {"resign_leadership", "stop_worker"}
# What the keeper's first round runs; where one of them fails, the others come in the next.
KEEPING = {"due_schedules", "purge", "purge_stats", "purge_workers", "unfolded_stats"}


class Site:
    """Jobs of every kind, and how often each ran."""

    def __init__(self, define, store):
        self.runs = Counter()
        self.store = store

        def plain():
            self.ran()

        def effect():
            job = self.ran().job
            Effect.objects.create(job_id=job.id, claims=job.claims, pid=0)

        def raising():
            self.ran()
            raise ValueError("as planned")

        def noting():
            context = self.ran()
            context.merge_metadata({"noted": True})
            context.merge_metadata({"later": True}, later=True)
            return "a result"

        self.plain = define(plain)
        self.effect = define(effect, atomic=True)
        self.raising = define(raising, max_attempts=2, backoff=0)
        self.noting = define(noting)

    def ran(self):
        context = current_job()
        self.runs[context.job.id] += 1
        return context

    def enqueue(self):
        """Some of each; those of the first kind are held by a worker that has died."""
        self.orphans = {self.plain.enqueue().id for _ in range(3)}
        gone = self.store.register_worker("gone", 1, "[]", 1, "1", -60.0)
        assert len(self.store.claim(gone.id, "default", 10)) == 3
        soon = dt.timedelta(seconds=0.3)
        self.once = {self.plain.enqueue().id for _ in range(10)}
        self.once |= {self.plain.using(run_after=soon).enqueue().id for _ in range(3)}
        self.effects = {self.effect.enqueue().id for _ in range(5)}
        self.noted = {self.noting.enqueue().id for _ in range(3)}
        self.dead = {self.raising.enqueue().id for _ in range(3)}
        self.once |= self.effects | self.noted

    def is_done(self):
        return not Job.objects.exclude(state__in=("completed", "failed", "cancelled")).exists()

    def check(self, worker):
        """Nothing is lost, nothing was done twice, and every attempt is one that was made."""
        jobs = Job.objects.in_bulk()
        assert jobs.keys() == self.orphans | self.once | self.dead
        for job in jobs.values():
            told = (job.state, job.attempt, self.runs[job.id])
            if job.id in self.dead:
                assert told == ("failed", 2, 2), job
                assert [error["number"] for error in job.errors] == [1, 2]
            elif job.id in self.orphans:
                assert told == ("completed", 2, 1), job
            else:
                assert told == ("completed", 1, 1), job
            if job.id in self.noted:
                assert (job.metadata, job.result) == ({"noted": True, "later": True}, "a result")
        assert sorted(Effect.objects.values_list("job_id", flat=True)) == sorted(self.effects)
        assert worker.statistics.completed == len(self.once | self.orphans)


def work_off(site, failures, start):
    """Let a worker that fails so do it all, and stop it in order."""
    site.enqueue()
    worker = start(failures, heartbeat_interval=0.1, poll_interval=0.2, shutdown_timeout=10.0)
    eventually(site.is_done, timeout=60)
    wanted = RUNNING if failures.only is None else failures.only - STOPPING
    with contextlib.suppress(AssertionError):
        eventually(lambda: failures.failed >= wanted, timeout=20)
    assert failures.failed >= wanted, f"never ran: {wanted - failures.failed}"
    worker.stop()
    eventually(lambda: WorkerModel.objects.filter(pk=worker.worker_id, stopped_at__isnull=False).exists())
    site.check(worker)
    return worker


@pytest.mark.parametrize(("make", "place", "cuts"), FAULTS.values(), ids=FAULTS)
def test_every_statement_fails_once_and_nothing_is_lost(define, store, failing, make, place, cuts):
    failures = Failures(make, place, cuts=cuts)

    work_off(Site(define, store), failures, failing)

    assert failures.failed >= RUNNING | STOPPING


@pytest.mark.parametrize("name", sorted(RUNNING | STOPPING | KEEPING))
@pytest.mark.parametrize("fault", FAULTS if ALL else ["connection lost after"])
def test_a_statement_fails_alone_and_nothing_is_lost(define, store, failing, fault, name):
    make, place, cuts = FAULTS[fault]
    failures = Failures(make, place, {name}, cuts)

    work_off(Site(define, store), failures, failing)

    assert failures.failed == {name}


@pytest.mark.parametrize("place", [BEFORE, AFTER])
@pytest.mark.parametrize("statement", ["release", "rescue", "stop_worker"])
def test_a_connection_that_is_lost_at_the_stop_costs_no_attempt_and_no_lease(
    define, store, failing, statement, place
):
    begun, goes_on = threading.Event(), threading.Event()

    def quick():
        pass

    def long():
        begun.set()
        goes_on.wait(60)

    quick, long = define(quick), define(long)
    failures = Failures(closed, place, {statement}, cuts=True)
    for _ in range(200):
        quick.enqueue()
    running = long.enqueue().id
    behind = {quick.enqueue().id for _ in range(3)}
    worker = failing(failures, size=1)
    assert begun.wait(60)
    # (Had they been claimed and given back already, they would wait with their claims counted.)
    eventually(lambda: Job.objects.filter(pk__in=behind, claims=1).count() == 3)

    worker.stop_now()
    eventually(lambda: WorkerModel.objects.filter(pk=worker.worker_id, stopped_at__isnull=False).exists())
    goes_on.set()

    assert failures.failed == {statement}
    assert [*Job.objects.filter(pk__in=behind).values_list("state", "attempt").distinct()] == [
        ("available", 0)
    ]
    assert Job.objects.filter(pk=running).values_list("state", "attempt").get() == ("available", 1)


@pytest.mark.parametrize("nth", [1, 3])
def test_a_claim_whose_answer_is_lost_is_given_back_while_its_worker_lives(define, store, failing, nth):
    runs = Counter()

    def job():
        runs[current_job().job.id] += 1

    kind = define(job)
    failures = Failures(closed, AFTER, {"claim"}, cuts=True, nth=nth)
    worker = failing(failures, size=1)
    for _ in range(5):
        kind.enqueue()
        eventually(lambda: not Job.objects.exclude(state="completed").exists())

    assert failures.failed == {"claim"}
    assert {*Job.objects.values_list("state", "attempt", "worker_id")} == {("completed", 1, worker.worker_id)}
    assert max(Job.objects.values_list("claims", flat=True)) == 2
    assert {*runs.values()} == {1}


def test_a_claim_that_comes_late_takes_nothing(define, store, failing):
    """Its worker has given it up: nobody would run what it took, however long that worker lives."""
    kind = define(lambda: None)
    worker = failing(Failures(closed, BEFORE, {"claim"}, cuts=True), size=1, heartbeat_interval=0.05)
    first = kind.enqueue()
    eventually(lambda: Job.objects.filter(pk=first.id, state="completed").exists())
    store.upsert_queue("other", pause=True)  # so that the worker leaves it to the claim that is late
    eventually(lambda: "other" in worker.paused)
    waiting = kind.using(queue_name="other").enqueue()

    assert WorkerModel.objects.get(pk=worker.worker_id).epoch == 1
    assert store.claim(worker.worker_id, "other", 1, epoch=0) == []
    store.upsert_queue("other", pause=False)
    eventually(lambda: Job.objects.filter(pk=waiting.id, state="completed", attempt=1).exists())
