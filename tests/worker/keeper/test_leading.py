"""One keeper leads; another one does when that has gone."""

import threading

from django.db.utils import OperationalError

from django_jobs.models import Job, Leadership
from django_jobs.worker import keeper as module
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT
from tests.worker.keeper.helping import insert, lost_worker, states


def test_one_of_two_leads(make, started):
    keepers = [started(make()), started(make())]
    eventually(lambda: any(keeper.leads for keeper in keepers))
    for _ in range(20):
        for keeper in keepers:
            keeper.wake()
        threading.Event().wait(0.02)
        assert sum(keeper.leads for keeper in keepers) == 1

    assert Leadership.objects.get().holder in {keeper.holder for keeper in keepers}


def test_the_other_one_leads_as_soon_as_the_leader_resigns(make, started):
    first = started(make(lease=3600.0))
    eventually(lambda: first.leads)
    second = make(lease=3600.0)
    first.stop()
    assert first.join(TIMEOUT)
    assert not first.leads

    started(second)
    eventually(lambda: second.leads)
    assert second.term == first.term + 1


def test_the_other_one_leads_when_the_leadership_of_a_dead_one_has_run_out(make, store, started):
    store.acquire_leadership(module.LEADERSHIP, "dead", 0.3)
    second = started(make())
    assert not second.leads

    eventually(lambda: second.leads)
    assert second.term == 2


def test_a_leader_that_was_late_learns_that_another_one_leads(make, store, started):
    keeper = started(make())
    eventually(lambda: keeper.leads)
    store.resign_leadership(module.LEADERSHIP, keeper.holder)
    assert store.acquire_leadership(module.LEADERSHIP, "another", 300.0)

    eventually(lambda: not keeper.leads)


def test_a_keeper_that_does_not_lead_does_nothing(make, store, started):
    store.acquire_leadership(module.LEADERSHIP, "another", 300.0)
    (running,), (due,) = lost_worker(store), insert(store)
    Job.objects.filter(id=due).update(state="scheduled")
    keeper = started(make())
    eventually(lambda: keeper._renew_at)
    for _ in range(10):
        keeper.wake()
        threading.Event().wait(0.01)

    assert states() == {due: "scheduled", running: "running"}


def test_started_again_it_runs_for_the_leadership_at_once(make, started):
    keeper = started(make(lease=3600.0))
    eventually(lambda: keeper.leads)
    keeper.stop()
    assert keeper.join(TIMEOUT)
    keeper.start()

    eventually(lambda: keeper.leads)


def test_a_resignation_that_fails_does_not_keep_it_from_ending(make, started):
    keeper = started(make())
    eventually(lambda: keeper.leads)

    def fail(*args):
        raise OperationalError("away")

    keeper.store.resign_leadership = fail
    keeper.stop()

    assert keeper.join(TIMEOUT)
    assert not keeper.leads
