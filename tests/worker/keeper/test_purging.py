"""What is past its time is deleted, in batches."""

from django_jobs.models import Worker
from django_jobs.worker import keeper as module, retention
from tests.waiting import eventually
from tests.worker.keeper.helping import age, insert, states


def finished(store, state, count=1):
    worker = store.register_worker("host", 1, "[]", 4, "1", 3600.0)
    ids = insert(store, count)
    claimed = store.claim(worker.id, "default", count)
    from django_jobs.store.rows import Outcome

    store.finish([Outcome(job.id, job.claims, state) for job in claimed])
    return ids


def test_each_state_is_kept_for_its_own_time(make, store, settings):
    settings.DJANGO_JOBS = {"RETENTION": {"completed": 100, "failed": 1000, "cancelled": None}}
    old = {state: finished(store, state) for state in ("completed", "failed", "cancelled")}
    age([id_ for ids in old.values() for id_ in ids], finalized_at=500)
    new = [id_ for state in ("completed", "failed", "cancelled") for id_ in finished(store, state)]
    waiting = insert(store)
    make().purge()

    assert set(states()) == {*old["failed"], *old["cancelled"], *new, *waiting}


def test_the_leader_purges(make, store, settings, started):
    settings.DJANGO_JOBS = {"RETENTION": {"completed": 0}}
    finished(store, "completed", 5)
    started(make())

    eventually(lambda: states() == {})


def test_a_purge_is_bounded_and_goes_on_in_the_next_round(make, store, settings, monkeypatch, started):
    monkeypatch.setattr(retention, "BATCH", 2)
    monkeypatch.setattr(retention, "BATCHES", 3)
    settings.DJANGO_JOBS = {"RETENTION": {"completed": 0}}
    finished(store, "completed", 16)
    keeper = make()

    assert keeper.purge() is True
    assert len(states()) == 10
    started(keeper)
    eventually(lambda: states() == {})
    assert keeper.purge() is False


def test_old_workers_are_forgotten(make, store, monkeypatch):
    monkeypatch.setattr(module, "WORKER_SECONDS", 0.0)
    lives = store.register_worker("host", 1, "[]", 4, "1", 3600.0)
    gone = store.register_worker("host", 1, "[]", 4, "1", 3600.0)
    store.stop_worker(gone.id)
    make().purge()

    assert list(Worker.objects.values_list("id", flat=True)) == [lives.id]
