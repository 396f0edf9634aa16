"""The producer at work: its life, beside executors, and with a real store."""

import threading
from types import SimpleNamespace

import pytest

from django_jobs.worker import producer as module
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, Gate, rows
from tests.worker.producer.helping import Scene, ids

# -- life -------------------------------------------------------------------------------------------------------------


def test_a_producer_that_is_started_again_looks_at_the_queues_at_once(started):
    scene = Scene()
    scene.buffer.waiting = 4
    started(scene.producer)
    eventually(lambda: scene.producer.found_nothing)
    scene.producer.stop()
    assert scene.producer.join(TIMEOUT)
    scene.store.add(rows(2))

    scene.producer.start()
    eventually(lambda: ids(scene.buffer.jobs) == [1, 2])


def test_a_stop_does_not_wait_for_the_poll_interval(started):
    scene = Scene()
    started(scene.producer)
    scene.producer.stop()

    assert scene.producer.join(TIMEOUT)


def test_with_real_executors_every_job_passes_once(started):
    """Takers on the fast path and waiting ones; a producer that fills and is told when the buffer is low."""
    scene = Scene(size=3, jobs=rows(3000))
    taken = []
    lock = threading.Lock()

    def take():
        while not scene.buffer.closed:
            try:
                job = scene.buffer.jobs.popleft()
            except IndexError:
                job = scene.buffer.wait()
                if job is None:
                    return
            if len(scene.buffer.jobs) < scene.buffer.low and not scene.buffer.low_told:
                scene.buffer.tell_low()
            with lock:
                scene.have_done(1, 0.001)
                taken.append(job.id)

    threads = [threading.Thread(target=take, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    started(scene.producer)
    eventually(lambda: len(taken) == 3000)
    scene.buffer.close()
    for thread in threads:
        thread.join(TIMEOUT)

    assert sorted(taken) == list(range(1, 3001))
    assert all(limit <= 1003 for _, limit in scene.claims)


@pytest.mark.parametrize("queues", [("a",), ("*",)])
def test_a_claim_whose_epoch_was_over_when_it_came_is_sent_again(queues):
    """Another pool's claim failed while this one was on its way, and a heartbeat was quicker: it takes nothing."""
    scene = Scene(*queues)
    scene.buffer.waiting = 4
    scene.step()
    claims = len(scene.claims)
    scene.store.before["claim"] = lambda *claim: scene.situation.epoch.end(0)
    scene.producer.look("a")
    scene.step()
    assert scene.claims[claims:] == [("a", 4)]
    assert not scene.producer.found_nothing

    scene.store.add(rows(1, queue_name="a"))
    scene.step()
    assert ids(scene.buffer.jobs) == [1]
    scene.take()
    scene.step()
    scene.producer._awake.clear()
    assert scene.producer.found_nothing, "once"


# -- work is found concurrently with the doing of it ------------------------------------------------------------------


class Simulated(Scene):
    """Executors that work on while a claim takes its time, by a clock of the scene's own."""

    MEAN = 0.0005
    CLAIM_SECONDS = 0.3

    def __init__(self, monkeypatch, jobs):
        super().__init__(jobs=jobs)
        self.now = 1000.0
        self.starved = []  # in which claim an executor found nothing
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.store.before["claim"] = lambda *claim: self.work(self.CLAIM_SECONDS)

    def work(self, seconds):
        """That much time passes, and the executors do what they can in it."""
        self.now += seconds
        wanted = int(seconds * self.producer.pool.size / self.MEAN)
        there = min(wanted, len(self.buffer.jobs))
        self.take(there)
        self.have_done(there, self.MEAN)
        if there < wanted:
            self.buffer.waiting = self.producer.pool.size
            self.starved.append(len(self.claims))
        else:
            self.buffer.waiting = 0

    def run(self):
        """Until all is done."""
        while self.done < sum(len(jobs) for jobs in self.store.waiting.values()) + self.done + len(
            self.buffer.jobs
        ):
            low = len(self.buffer.jobs) < self.buffer.low or self.buffer.waiting
            if low and self.store.waiting["default"]:
                self.step()
                self.buffer.waiting = 0
            else:
                self.work(0.005)


def test_executors_never_wait_for_a_slow_claim_while_there_is_work(monkeypatch):
    """A claim takes 300 ms, a job half a millisecond, and there are four executors."""
    scene = Simulated(monkeypatch, rows(30_000))
    scene.run()

    assert scene.done == 30_000
    full = [number for number, (_, limit) in enumerate(scene.claims, start=1) if limit > 4]
    # They wait only while it learns how long jobs and claims take, and at the end, when nothing is left to claim.
    assert [claim for claim in scene.starved if full[0] + 1 < claim < len(scene.claims)] == []
    assert len(full) > 5


def test_a_slow_claim_is_larger_and_has_a_bound(monkeypatch):
    scene = Simulated(monkeypatch, rows(30_000))
    assert (scene.producer.at_once(), scene.producer._lag) == (module.CLAIM_JOBS, 0.0)
    scene.run()

    assert max(limit for _, limit in scene.claims) > module.CLAIM_JOBS
    for lag in (0.3, 1.0):
        scene.producer._lag = lag
        assert scene.producer.at_once() <= module.CLAIM_JOBS * module.MOST_TIMES
        assert scene.producer.ahead() <= module.AHEAD_JOBS * module.MOST_TIMES


def test_a_large_claim_is_not_a_slow_one(monkeypatch):
    scene = Simulated(monkeypatch, rows(2000))
    scene.have_done(1000, 0.0001)
    scene.CLAIM_SECONDS = 0.03
    scene.buffer.waiting = 4
    scene.step()

    assert len(scene.claims) == 1
    assert scene.producer._lag == 0.0
    assert scene.producer.at_once() == module.CLAIM_JOBS


def test_slow_jobs_are_not_claimed_ahead_however_slow_a_claim_is(monkeypatch):
    scene = Simulated(monkeypatch, rows(100))
    scene.producer._lag = 1.0
    scene.have_done(100, module.AHEAD_SECONDS)

    assert scene.producer.ahead() == 0


def test_jobs_are_done_while_a_claim_takes_its_time(started):
    """The claim never comes back before all that is buffered is done."""
    scene = Scene(size=2, jobs=rows(1000))
    scene.have_done(1000, 0.001)
    taken = []

    def take():
        while (job := scene.buffer.wait()) is not None:
            taken.append(job.id)
            if len(scene.buffer.jobs) < scene.buffer.low and not scene.buffer.low_told:
                scene.buffer.tell_low()

    gate = Gate()
    threads = [threading.Thread(target=take, daemon=True) for _ in range(2)]
    scene.store.before["claim"] = lambda *claim: gate.enter() if len(scene.claims) == 2 else None
    for thread in threads:
        thread.start()
    eventually(lambda: scene.buffer.waiting == 2)
    started(scene.producer)
    gate.wait()
    claimed = 1000 - len(scene.store.waiting["default"])
    eventually(lambda: len(taken) == claimed)
    gate.open()
    eventually(lambda: len(taken) == 1000)
    scene.buffer.close()
    for thread in threads:
        thread.join(TIMEOUT)

    assert sorted(taken) == list(range(1, 1001))
    assert claimed > 4


def test_a_long_job_is_not_hoarded_behind_a_full_buffer_while_another_worker_idles(started, monkeypatch):
    """Quick ones so far, so one worker has claimed all that there is. Now its executors are at long ones."""
    monkeypatch.setattr(module, "STALE_SECONDS", 0.05)
    busy, idle = Scene(size=2, jobs=rows(100)), Scene(size=2)
    busy.have_done(1000, 0.001)
    busy.buffer.waiting = 2
    started(busy.producer)
    eventually(lambda: len(busy.buffer.jobs) == 100)
    at_work = busy.take(2)
    busy.buffer.waiting = 0

    idle.producer._open_store = busy.store.open
    idle.situation.poll_interval = 0.01
    idle.buffer.waiting = 2
    started(idle.producer)
    done = []

    def every_other_job_is_done():
        done.extend(idle.take())
        return len(done) == 98

    eventually(every_other_job_is_done)
    assert sorted(ids(done)) == sorted(set(range(1, 101)) - set(ids(at_work)))
    assert [job.attempt for job in done] == [1] * 98


# -- with a real store ------------------------------------------------------------------------------------------------


def test_claims_and_releases_on_the_database(open_store, store, started):
    from django_jobs.store.rows import NewJob

    worker = store.register_worker("host", 1, "[]", 4, "1", 30.0)
    store.insert_many([NewJob("tests.job", queue_name=name) for name in ("a", "b", "mail")])
    scene = Scene("*", elsewhere=["mail"])
    scene.situation.worker_id = worker.id
    scene.producer._open_store = open_store
    scene.buffer.waiting = 4
    started(scene.producer)

    eventually(lambda: len(scene.buffer.jobs) == 2)
    assert {job.queue_name for job in scene.buffer.jobs} == {"a", "b"}
    assert {job.state for job in store.get(ids(scene.buffer.jobs))} == {"running"}

    taken = ids(scene.buffer.jobs)
    scene.buffer.waiting = 0
    scene.situation.paused = frozenset({"a", "b"})
    scene.producer.wake()
    eventually(lambda: {(job.state, job.attempt) for job in store.get(taken)} == {("available", 0)})
    assert not scene.buffer.jobs


def test_a_pool_that_does_not_claim_ahead_claims_for_executors_that_wait_and_no_more():
    scene = Scene(jobs=rows(50), ahead=False)
    scene.have_done(1000, mean=0.0001)
    assert scene.producer.ahead() == 0

    scene.buffer.waiting = 3
    scene.step()
    scene.take()
    scene.buffer.waiting = 0
    scene.step()

    assert scene.claims == [("default", 3)]
