"""Claims from the marks on, as they are made while a long transaction keeps the index's old entries: the same jobs."""

import pytest

from django_jobs.store import low_water as module
from tests.store.builders import Recorder, in_threads, update

pytestmark = pytest.mark.postgresql


@pytest.fixture(autouse=True)
def slow(monkeypatch):
    """Each claim is a slow one, and the first of all is not the first in a row; its marks stand for long."""
    monkeypatch.setattr(module, "SLOW_SECONDS", -1e9)
    monkeypatch.setattr(module, "BEGINNINGS_PART", 1e-12)
    began = module.LowWater.began

    def began_again(self, queue_name, *more):
        self._slow[queue_name] = 1e9
        began(self, queue_name, *more)

    monkeypatch.setattr(module.LowWater, "began", began_again)


@pytest.fixture
def worker(make):
    return make.worker()


@pytest.fixture
def claim(store, worker, clock):
    """Claim, and tell the jobs' ids and the statements that it took."""
    recorder = store.session = Recorder(store.session)

    def ask(limit=1):
        recorder.seen.clear()
        ids = [job.id for job in store.claim(worker, "default", limit, now=clock.now)]
        return ids, [statement.name for statement, _ in recorder.seen]

    return ask


def test_the_next_jobs_are_claimed_from_the_marks_on(make, claim):
    first, *others = [job.id for job in make.insert(5)]

    assert claim() == ([first], ["claim"])
    assert claim(2) == (others[:2], ["claim_on"])
    assert claim(5) == (others[2:], ["claim_on"])


def test_a_job_of_any_other_priority_is_seen_at_once_in_its_order(make, claim):
    make.insert(2)
    assert len(claim(2)[0]) == 2
    low, same, high = (make.one(priority=priority).id for priority in (-100, 0, 100))
    between = make.one(priority=7).id

    assert claim(10) == ([high, between, same, low], ["claim_on"])
    later, highest = make.one().id, make.one(priority=100).id
    assert claim(10) == ([highest, later], ["claim_on"])


def test_order_within_a_priority_is_by_time_then_id(make, claim, clock):
    make.insert(2)
    claim(2)
    clock.advance(10.0)
    make.clock.advance(0)
    second = make.insert(2)
    first = make.one(run_after=clock.after(-1.0))

    assert claim(10) == ([first.id, *(job.id for job in second)], ["claim_on"])


def test_what_became_available_behind_the_marks_is_claimed_when_nothing_else_is_there(
    make, claim, store, clock
):
    jobs = store.claim(make.worker(), "default", 10, now=clock.now)
    make.insert(3)
    first, second, _ = claim(3)[0]
    update([first], state="available", attempt=0)

    assert claim() == ([first], ["claim_on", "claim"])
    assert jobs == []
    assert second


def test_who_claims_again_is_told_when_and_until_then_the_beginning_is_not_read(
    make, claim, store, monkeypatch
):
    store.claims_again = True
    first, second, third, last = (job.id for job in make.insert(4))
    assert claim() == ([first], ["claim"])
    update([first], state="available", attempt=0)
    assert claim(2) == ([second, third], ["claim_on"])
    assert store.seconds_until_claim("default") is None, "it got all that it asked for"
    assert claim(2) == ([last], ["claim_on"])
    assert claim() == ([], ["claim_on"])
    assert 0 < store.seconds_until_claim("default") <= module.BEGINNINGS_SECONDS

    monkeypatch.setattr(store.low_water, "_clock", lambda: float("inf"))
    assert store.seconds_until_claim("default") == 0
    assert claim() == ([first], ["claim"])
    assert store.seconds_until_claim("default") is None


def test_and_in_time_while_other_jobs_keep_coming(make, claim, store, monkeypatch):
    ids = [job.id for job in make.insert(3)]
    assert claim() == ([ids[0]], ["claim"])
    update([ids[0]], state="available", attempt=0)
    assert claim() == ([ids[1]], ["claim_on"])

    monkeypatch.setattr(store.low_water, "_clock", lambda: float("inf"))
    assert claim() == ([ids[0]], ["claim"])


def test_nothing_to_claim_is_found_out_in_two_statements(make, claim):
    make.insert(1)
    claim()

    assert claim() == ([], ["claim_on", "claim"])


@pytest.mark.parametrize("end", ["lose_worker", "stop_worker"])
def test_a_worker_that_was_lost_or_has_stopped_claims_nothing(make, claim, store, worker, clock, end):
    make.insert(3)
    claim()
    getattr(store, end)(worker, now=clock.now)

    assert claim(5) == ([], ["claim_on", "claim"])


def test_jobs_that_another_one_holds_are_passed_over(make, claim, open_store, worker, clock):
    make.insert(1)
    claim()
    first, second = make.insert(2)
    with open_store().session.connection.transaction() as held:
        held.connection.execute("SELECT id FROM django_jobs_job WHERE id = %s FOR UPDATE", [first.id])
        assert claim(5) == ([second.id], ["claim_on"])


def test_workers_that_claim_at_once_from_their_marks_on_share_the_jobs(make, open_store, clock):
    stores = [open_store() for _ in range(4)]
    workers = [make.worker() for _ in stores]
    make.insert(4)
    for store, worker in zip(stores, workers, strict=True):
        assert store.claim(worker, "default", 1, now=clock.now)
    wanted = {job.id for number in range(5) for job in make.insert(40, priority=number)}

    def work(store, worker):
        def run():
            claimed = []
            while jobs := store.claim(worker, "default", 7, now=clock.now):
                assert len(jobs) <= 7
                claimed += [job.id for job in jobs]
            return claimed

        return run

    shares = in_threads(*(work(*pair) for pair in zip(stores, workers, strict=True)))
    claimed = [id_ for share in shares for id_ in share]

    assert sorted(claimed) == sorted(wanted)


def test_a_claim_of_an_epoch_that_was_given_up_takes_nothing_from_the_marks_on(store, make, worker, clock):
    first, second = make.insert(2)
    assert [job.id for job in store.claim(worker, "default", 1, now=clock.now)] == [first.id]
    store.heartbeat(worker, 30.0, epoch=1, now=clock.now)

    assert store.claim(worker, "default", 1, now=clock.now, epoch=0) == []
    assert [job.id for job in store.claim(worker, "default", 1, now=clock.now, epoch=1)] == [second.id]
