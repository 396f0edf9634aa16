"""Periodic jobs in a whole worker: it declares them, runs them, and notices what others do to them."""

import datetime as dt
import threading

import pytest

from django_jobs import periodic
from django_jobs.models import Job
from django_jobs.schedules import schedules
from django_jobs.scheduling import pause_schedule, resume_schedule, synchronise
from django_jobs.store import django_store
from django_jobs.worker import Worker, WorkerOptions, ticker as module
from tests.waiting import eventually
from tests.worker.test_ticker import declare, ticks


@pytest.fixture
def periodic_job(monkeypatch, define):
    """A job every second, declared for the time of the test."""
    monkeypatch.setattr(schedules, "_declared", {})
    definition = define(lambda: None, name="tests.every_second")
    periodic(every=1)(definition)
    return definition


def test_a_worker_declares_and_runs_them(transactional_db, periodic_job):
    worker = Worker(WorkerOptions(shutdown_timeout=5, notify=True))
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        eventually(lambda: Job.objects.filter(name=periodic_job.name, state="completed").count() >= 2)
    finally:
        worker.stop()
        thread.join(30)
    assert not thread.is_alive()
    found = ticks(periodic_job.name)
    assert len(found) == len(set(found))
    assert all(tick.microsecond == 0 for tick in found)


def test_a_resumed_schedule_is_noticed(transactional_db, periodic_job, monkeypatch):
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.5)
    synchronise(django_store("default"), "default")
    pause_schedule(periodic_job.name)
    worker = Worker(WorkerOptions(shutdown_timeout=5))
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        eventually(lambda: worker.keeper.leads)
        resume_schedule(periodic_job.name)
        eventually(lambda: Job.objects.filter(state="completed").exists())
    finally:
        worker.stop()
        thread.join(30)


def test_a_draining_worker_runs_what_is_due_whoever_leads(transactional_db, periodic_job):
    store = django_store("default")
    store.acquire_leadership("keeper", "another", 300.0)
    past = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
    declare(store, periodic_job.name, periodic_job.name, "every 1 s", now=past)

    assert Worker(WorkerOptions(drain=True)).run() == 0

    jobs = Job.objects.filter(name=periodic_job.name)
    assert jobs.exists()
    assert set(jobs.values_list("state", flat=True)) == {"completed"}
