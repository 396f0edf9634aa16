"""The producer: it keeps the buffer filled, claims no more than there is room for, and gives back what it can't use."""

import threading
from types import SimpleNamespace

import pytest
from django.db.utils import OperationalError

from django_jobs.worker import parts, producer as module
from django_jobs.worker.buffer import Buffer
from django_jobs.worker.options import Pool
from django_jobs.worker.producer import Producer
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, WORKER, FakeStore, Gate, row, rows


class Scene:
    """A producer with all that is around it, in memory. Steps are taken by the test, or by the part's own thread."""

    def __init__(self, *queues, size=4, elsewhere=(), jobs=(), ahead=True):
        self.store = FakeStore(jobs)
        self.buffer = Buffer()
        self.done, self.seconds = 0, 0.0
        self.situation = SimpleNamespace(
            worker_id=WORKER, may_claim=True, trusts_claims=True, paused=frozenset(), poll_interval=3600.0
        )
        pool = Pool(queues or ("default",), size, ahead)
        self.producer = Producer(
            pool, self.buffer, self, self.situation, self.store.open, frozenset(elsewhere)
        )

    def totals(self):
        return self.done, self.seconds

    def have_done(self, jobs, mean):
        """The executors have done that many more, each in ``mean`` seconds."""
        self.done += jobs
        self.seconds += jobs * mean

    def step(self):
        """One step; where it would wait, it does not."""
        self.producer.wake()
        self.producer.step()

    def take(self, count=None):
        """What executors would take out of the buffer."""
        count = len(self.buffer.jobs) if count is None else count
        return [self.buffer.jobs.popleft() for _ in range(count)]

    @property
    def claims(self):
        """Queue and limit of each claim so far."""
        return [(queue, limit) for _, queue, limit in self.store.called("claim")]

    @property
    def released(self):
        return sorted(job.id for (jobs,) in self.store.called("release") for job in jobs)


def ids(jobs):
    return [job.id for job in jobs]


# -- how much ---------------------------------------------------------------------------------------------------------


def test_it_claims_for_the_executors_that_wait_and_no_more():
    scene = Scene(jobs=rows(50))
    scene.buffer.waiting = 3

    scene.step()

    assert scene.claims == [("default", 3)]
    assert ids(scene.buffer.jobs) == [1, 2, 3]


def test_it_claims_nothing_when_nobody_waits_and_nothing_is_known_of_the_jobs():
    scene = Scene(jobs=rows(50))

    scene.step()

    assert scene.claims == []


def test_it_claims_nothing_more_while_what_is_buffered_has_not_been_taken():
    scene = Scene(jobs=rows(50))
    scene.buffer.waiting = 3
    scene.step()
    scene.step()
    scene.step()

    assert len(scene.claims) == 1


@pytest.mark.parametrize(
    ("size", "mean", "ahead"),
    [
        (4, 0.0001, 2000),  # a quarter second would be 10,000: the bound
        (4, 0.0, 2000),
        (4, 0.01, 100),
        (1, 0.01, 25),
        (10, 0.2, 12),
        (1, 0.24, 1),
        (10, 0.25, 0),  # slow jobs: nothing ahead
        (10, 60.0, 0),
    ],
)
def test_the_look_ahead_is_a_quarter_second_of_work(size, mean, ahead):
    scene = Scene(size=size)
    scene.have_done(10, mean)

    assert scene.producer.ahead() == ahead
    assert scene.producer.wanted() == ahead


def test_the_look_ahead_follows_the_jobs_as_they_get_slower_and_faster():
    scene = Scene(size=4)
    scene.have_done(100, 0.001)
    assert scene.producer.ahead() == 1000
    for _ in range(10):
        scene.have_done(4, 2.0)
        last = scene.producer.ahead()
    assert last == 0
    for _ in range(20):
        scene.have_done(400, 0.001)
        last = scene.producer.ahead()
    assert last > 900


def test_without_new_jobs_done_the_look_ahead_stays():
    scene = Scene(size=4)
    scene.have_done(100, 0.001)

    assert {scene.producer.ahead() for _ in range(10)} == {1000}


def test_a_claim_takes_a_thousand_at_most_and_the_next_one_follows_at_once():
    scene = Scene(jobs=rows(5000))
    scene.have_done(1000, 0.0001)
    scene.buffer.waiting = 4

    for _ in range(5):
        scene.step()

    assert scene.claims[0] == ("default", 1000)
    assert len(scene.buffer.jobs) == sum(limit for _, limit in scene.claims)
    assert len(scene.buffer.jobs) <= 2004


def test_claiming_never_exceeds_the_room_whatever_the_executors_do():
    scene = Scene(size=4, jobs=rows(20_000))
    scene.have_done(1000, 0.0005)
    room = 4 + scene.producer.ahead()
    for number in range(200):
        scene.buffer.waiting = number % 5
        scene.take(min(len(scene.buffer.jobs), number * 7 % 400))
        before = len(scene.buffer.jobs)
        scene.step()
        assert len(scene.buffer.jobs) <= max(room, before)


def test_a_buffer_that_is_well_filled_is_not_topped_up_with_small_claims():
    scene = Scene(jobs=rows(3000))
    scene.have_done(1000, 0.001)  # 1,000 ahead
    scene.step()
    scene.take(400)
    scene.step()
    assert len(scene.claims) == 1

    scene.take(200)
    scene.step()
    assert scene.claims[1:] == [("default", 600)]


def test_an_executor_that_waits_is_served_even_if_the_buffer_is_not_low():
    scene = Scene(jobs=rows(3000))
    scene.have_done(1000, 0.02)  # 50 ahead
    scene.step()
    scene.buffer.waiting = 60
    scene.step()

    assert len(scene.buffer.jobs) == 110


# -- when -------------------------------------------------------------------------------------------------------------


def test_a_full_claim_is_followed_by_the_next_without_a_wake_up(started):
    scene = Scene(jobs=rows(10_000))
    scene.have_done(1000, 0.0001)
    started(scene.producer)

    eventually(lambda: len(scene.buffer.jobs) == 2000)
    scene.take()
    scene.producer.wake()  # an executor finds the buffer low
    eventually(lambda: len(scene.buffer.jobs) == 2000)


def test_an_empty_queue_is_not_asked_again_until_a_wake_up(started):
    scene = Scene()
    scene.buffer.waiting = 4
    started(scene.producer)
    eventually(lambda: scene.producer.found_nothing)
    assert len(scene.claims) == 1

    for _ in range(20):  # executors that find nothing wake it too; they know of no new job
        scene.buffer.tell_low()
        eventually(lambda: scene.producer.found_nothing)
    assert len(scene.claims) == 1

    scene.store.add(rows(1))
    scene.producer.look("default")
    eventually(lambda: ids(scene.buffer.jobs) == [1])


def test_an_empty_queue_is_asked_again_after_the_poll_interval(started):
    scene = Scene()
    scene.buffer.waiting = 4
    scene.situation.poll_interval = 0.01
    started(scene.producer)
    eventually(lambda: len(scene.claims) > 3)
    scene.store.add(rows(1))

    eventually(lambda: ids(scene.buffer.jobs) == [1])


@pytest.mark.parametrize(
    ("queues", "elsewhere", "hint", "heard"),
    [
        (("a", "b"), (), "a", True),
        (("a", "b"), (), "c", False),
        (("a", "b"), (), None, True),
        (("*",), ("a",), "a", False),
        (("*",), ("a",), "b", True),
        (("*",), ("a",), None, True),
        (("*", "a"), ("a",), "a", True),
    ],
)
def test_a_wake_up_is_for_whose_queue_it_names(queues, elsewhere, hint, heard):
    scene = Scene(*queues, elsewhere=elsewhere)
    scene.buffer.waiting = 1
    scene.step()
    before = len(scene.store.calls)

    scene.producer.look(hint)
    scene.step()

    assert (len(scene.store.calls) > before) is heard


def test_a_wake_up_that_comes_during_a_claim_is_not_lost(started):
    """The job was committed after the claim had looked, and its wake-up came before the claim's answer."""
    scene = Scene()
    scene.buffer.waiting = 4
    commits = iter([1])

    def commit_and_wake(*args):
        for number in commits:
            scene.store.add([row(number)])
            scene.producer.look("default")

    scene.store.after["claim"] = commit_and_wake
    started(scene.producer)

    eventually(lambda: ids(scene.buffer.jobs) == [1])


def test_a_wake_up_at_any_moment_of_many_is_not_lost(started):
    scene = Scene()
    scene.buffer.waiting = 4
    started(scene.producer)

    for number in range(500):
        scene.store.add([row(number)])
        scene.producer.look()
        eventually(lambda: len(scene.buffer.jobs) > 0, interval=0.0001)
        assert ids(scene.take()) == [number]


def test_errors_back_off_and_a_wake_up_does_not_skip_that(started, monkeypatch):
    pauses = []
    goes_on = threading.Event()

    def pause(failures, *longest):
        pauses.append(failures)
        return 0.0 if len(pauses) < 3 else TIMEOUT

    monkeypatch.setattr(parts, "pause_after", pause)
    scene = Scene(jobs=rows(4))
    scene.buffer.waiting = 4
    scene.store.faults["claim"] = [OperationalError("away")] * 3
    started(scene.producer)
    eventually(lambda: pauses == [1, 2, 3])
    for _ in range(20):
        scene.producer.look()
        scene.buffer.tell_low()
        goes_on.wait(0.005)

    assert len(scene.claims) == 3
    assert not scene.buffer.jobs


def test_an_error_loses_nothing_and_the_next_claim_finds_it(started, monkeypatch):
    monkeypatch.setattr(parts, "pause_after", lambda *args: 0.0)
    scene = Scene(jobs=rows(4))
    scene.buffer.waiting = 4
    scene.store.faults["claim"] = [OperationalError("away"), ValueError("our fault")]
    started(scene.producer)

    eventually(lambda: ids(scene.buffer.jobs) == [1, 2, 3, 4])
    assert scene.producer.is_alive()


def test_a_claim_whose_answer_is_lost_is_found_and_given_back(started, monkeypatch):
    monkeypatch.setattr(parts, "pause_after", lambda *args: 0.0)
    scene = Scene(jobs=rows(6))
    scene.buffer.waiting = 2
    scene.step()
    taken = scene.take()
    scene.store.late_faults["claim"] = [OperationalError("the answer is lost")]
    scene.producer.look()
    started(scene.producer)

    # Those it knows of run on; the others are claimed once more, and no attempt is spent.
    eventually(lambda: len(scene.buffer.jobs) == 2)
    assert ids(taken) == [1, 2]
    assert scene.released == [3, 4]
    assert [(job.id, job.attempt) for job in scene.buffer.jobs] == [(5, 1), (6, 1)]


def test_where_a_server_goes_on_alone_a_lost_claim_is_looked_for_again_and_later_claims_are_not_taken_for_it():
    scene = Scene(jobs=rows(2))
    scene.store.outlives_client = True
    scene.buffer.waiting = 1
    scene.store.faults["claim"] = [OperationalError("the answer is lost")]
    with pytest.raises(OperationalError):
        scene.step()
    scene.step()
    assert ids(scene.take()) == [1]
    late = scene.store.claim(WORKER, "default", 1)  # the server has come to it now

    assert not scene.producer.found_nothing
    assert ids(scene.producer.unanswered(scene.store, at_once=True)) == ids(late) == [2]


# -- which queues -----------------------------------------------------------------------------------------------------


def mixed(*counts):
    """Jobs of the queues a, b, c ...; ids say which."""
    jobs = []
    for position, count in enumerate(counts):
        jobs += rows(count, first=1000 * (position + 1), queue_name="abcdefgh"[position])
    return jobs


def test_the_rest_of_the_room_goes_to_the_next_queue():
    scene = Scene("a", "b", "c", jobs=mixed(1, 2, 3))
    scene.buffer.waiting = 5
    scene.step()

    assert scene.claims == [("a", 5), ("b", 4), ("c", 2)]
    assert ids(scene.buffer.jobs) == [1000, 2000, 2001, 3000, 3001]


def test_queues_take_turns():
    scene = Scene("a", "b", "c", jobs=mixed(50, 50, 50))
    scene.buffer.waiting = 2
    for _ in range(6):
        scene.step()
        scene.take()

    assert [queue for queue, _ in scene.claims] == ["a", "b", "c", "a", "b", "c"]


def test_queues_of_a_pool_for_all_take_turns_too():
    scene = Scene("*", jobs=mixed(50, 50, 50))
    scene.buffer.waiting = 2
    for _ in range(9):
        scene.step()
        scene.take()

    turns = [queue for queue, _ in scene.claims]
    assert [turns.count(queue) for queue in "abc"] == [3, 3, 3]


def test_a_pool_for_all_claims_from_the_queues_that_have_jobs_and_that_no_other_pool_names():
    scene = Scene("*", elsewhere=["b"], jobs=mixed(1, 1, 1))
    scene.buffer.waiting = 4
    scene.step()

    assert scene.claims == [("a", 4), ("c", 3)]
    assert sorted(ids(scene.buffer.jobs)) == [1000, 3000]
    assert scene.store.waiting_queues() == ["b"]


def test_a_pool_for_all_sees_a_queue_that_is_new(started):
    scene = Scene("*")
    scene.buffer.waiting = 4
    started(scene.producer)
    eventually(lambda: scene.producer.found_nothing)
    scene.store.add([row(7, queue_name="brand new")])
    scene.producer.look("brand new")

    eventually(lambda: ids(scene.buffer.jobs) == [7])


def test_a_new_queue_is_served_while_others_are_full(monkeypatch):
    """A list of queues that is kept for a moment must not be kept for ever."""
    monkeypatch.setattr(module, "ASK_SECONDS", 0.0)
    scene = Scene("*", jobs=mixed(5000))
    scene.buffer.waiting = 2
    for _ in range(3):
        scene.step()
        scene.take()
    scene.store.add(mixed(0, 5))
    for _ in range(3):
        scene.step()

        scene.take()

    assert "b" in [queue for queue, _ in scene.claims]


def asked(scene):
    return len(scene.store.called("waiting_queues"))


def test_a_queue_that_a_wake_up_names_is_claimed_from_without_asking_which_have_jobs():
    scene = Scene("*", elsewhere=["mail"])
    scene.buffer.waiting = 4
    scene.step()
    assert (asked(scene), scene.claims) == (1, [])

    for number, name in enumerate(["a", "b", "mail"], start=1):
        scene.store.add(rows(1, first=number, queue_name=name))
        scene.producer.look(name)
    scene.step()

    assert (asked(scene), scene.claims) == (1, [("a", 4), ("b", 3)])
    scene.step()
    assert (asked(scene), len(scene.claims)) == (1, 2), "all are empty"


def test_it_asks_when_anything_may_have_happened():
    scene = Scene("*")
    scene.buffer.waiting = 4
    scene.step()
    scene.store.add([row(1, queue_name="a"), row(2, queue_name="b")])
    scene.producer.look("a")
    scene.producer.look()
    scene.step()

    assert asked(scene) == 2
    assert sorted(ids(scene.buffer.jobs)) == [1, 2]


def test_it_asks_when_a_claim_was_full_since_other_queues_may_have_been_left():
    scene = Scene("*", jobs=[*rows(6, queue_name="a"), *rows(2, first=7, queue_name="b")])
    scene.buffer.waiting = 4
    scene.step()
    assert scene.claims == [("a", 4)]
    scene.take()
    scene.producer._asked_at -= module.ASK_SECONDS

    scene.store.add(rows(1, first=9, queue_name="c"))
    scene.producer.look("c")
    scene.step()

    assert asked(scene) == 2
    assert {queue for queue, _ in scene.claims} == {"a", "b", "c"}


def test_a_named_queue_that_had_more_than_could_be_claimed_is_claimed_from_again_at_once():
    scene = Scene("*")
    scene.buffer.waiting = 4
    scene.step()
    scene.store.add(rows(6, queue_name="a"))
    scene.store.add(rows(2, first=7, queue_name="b"))
    scene.producer.look("a")
    scene.producer.look("b")
    scene.step()
    scene.take()
    scene.step()

    assert asked(scene) == 1
    assert sorted(scene.claims) == [("a", 2), ("a", 4), ("b", 4)]
    assert sorted(ids(scene.buffer.jobs)) == [5, 6, 7, 8]


def test_it_asks_after_an_error_for_the_named_queues_are_forgotten():
    scene = Scene("*")
    scene.buffer.waiting = 4
    scene.step()
    scene.store.add(rows(1, queue_name="a"))
    scene.producer.look("a")
    scene.store.faults["claim"] = [OperationalError("away")]
    with pytest.raises(OperationalError) as raised:
        scene.step()
    scene.producer.failed(raised.value)
    scene.store.add([row(2, queue_name="b")])
    scene.producer.look("b")
    scene.step()

    assert asked(scene) == 2
    assert sorted(ids(scene.buffer.jobs)) == [1, 2]


def test_it_asks_after_the_poll_interval_though_wake_ups_keep_coming():
    scene = Scene("*")
    scene.buffer.waiting = 4
    scene.step()
    scene.store.add([row(1, queue_name="a"), row(2, queue_name="unheard")])
    scene.producer._asked_at -= scene.situation.poll_interval
    scene.producer.look("a")
    scene.step()

    assert sorted(ids(scene.buffer.jobs)) == [1, 2]


def test_where_an_empty_claim_costs_a_lock_it_is_asked_first_whether_there_is_anything():
    scene = Scene("a", "b", jobs=mixed(0, 1))
    scene.store.probe_before_claim = True
    scene.buffer.waiting = 4
    scene.step()
    assert scene.claims == [("b", 4)]

    scene.producer.look()
    scene.step()
    assert len(scene.claims) == 1, "it claimed from queues that have nothing"


@pytest.mark.parametrize("queues", [("a", "b"), ("*",)])
def test_a_paused_queue_is_not_claimed_from(queues):
    scene = Scene(*queues, jobs=mixed(2, 2))
    scene.buffer.waiting = 4
    scene.situation.paused = frozenset({"a"})
    scene.step()

    assert ids(scene.buffer.jobs) == [2000, 2001]


def test_a_pool_all_of_whose_queues_are_paused_claims_nothing():
    scene = Scene("a", jobs=mixed(2))
    scene.buffer.waiting = 4
    scene.situation.paused = frozenset({"a"})
    scene.step()
    assert scene.claims == []

    scene.situation.paused = frozenset()
    scene.producer.look()
    scene.step()
    assert ids(scene.buffer.jobs) == [1000, 1001]


# -- what is given back -----------------------------------------------------------------------------------------------


def test_what_is_buffered_of_a_queue_that_is_paused_is_given_back():
    scene = Scene("a", "b", jobs=mixed(2, 2))
    scene.buffer.waiting = 4
    scene.step()
    scene.situation.paused = frozenset({"a"})
    scene.step()

    assert scene.released == [1000, 1001]
    assert ids(scene.buffer.jobs) == [2000, 2001]
    assert [job.attempt for job in scene.store.waiting["a"]] == [0, 0]


def test_what_is_claimed_while_a_stop_arrives_is_given_back(started):
    scene = Scene(jobs=rows(10))
    scene.buffer.waiting = 4
    scene.store.after["claim"] = lambda *args: scene.producer.stop()
    started(scene.producer)

    assert scene.producer.join(TIMEOUT)
    assert scene.released == [1, 2, 3, 4]
    assert not scene.buffer.jobs
    assert scene.producer.returning == []
    assert scene.store.closed == 1


@pytest.mark.parametrize("change", [{"may_claim": False}, {"may_claim": False, "trusts_claims": False}])
def test_what_is_claimed_while_claiming_is_forbidden_is_given_back(change):
    scene = Scene(jobs=rows(10))
    scene.buffer.waiting = 4
    scene.store.after["claim"] = lambda *args: scene.situation.__dict__.update(change)
    scene.step()

    assert scene.released == [1, 2, 3, 4]
    assert not scene.buffer.jobs


def test_what_can_not_be_given_back_as_it_stops_is_left_for_the_worker_to_give_back(started):
    scene = Scene(jobs=rows(10))
    scene.buffer.waiting = 4
    scene.store.after["claim"] = lambda *args: scene.producer.stop()
    scene.store.faults["release"] = [OperationalError("away")]
    started(scene.producer)

    assert scene.producer.join(TIMEOUT)
    assert ids(scene.producer.returning) == [1, 2, 3, 4]


def test_what_can_not_be_given_back_is_given_back_before_the_next_claim(started, monkeypatch):
    monkeypatch.setattr(parts, "pause_after", lambda *args: 0.0)
    scene = Scene("a", "b", jobs=mixed(2, 2))
    scene.buffer.waiting = 4
    scene.step()
    scene.store.faults["release"] = [OperationalError("away")] * 3
    scene.situation.paused = frozenset({"a"})
    scene.store.add(mixed(0, 5)[2:])
    scene.buffer.waiting = 8
    scene.producer.look()
    started(scene.producer)

    eventually(lambda: len(scene.store.waiting["a"]) == 2)
    methods = [call[0] for call in scene.store.calls]
    assert "claim" not in methods[methods.index("release") : methods.index("release") + 4]


def test_jobs_that_wait_behind_slow_ones_are_given_back(monkeypatch):
    monkeypatch.setattr(module, "STALE_SECONDS", 0.0)
    scene = Scene(jobs=rows(10))
    scene.have_done(100, 0.05)  # quick ones so far: 20 ahead
    scene.step()
    assert len(scene.buffer.jobs) == 10

    scene.step()
    scene.step()

    assert scene.released == list(range(1, 11))
    assert [job.attempt for job in scene.store.waiting["default"]] == [0] * 10


def test_they_are_not_claimed_again_by_the_same_worker_at_once():
    scene = Scene(jobs=rows(10))
    scene.have_done(100, 0.05)
    scene.step()
    scene.step()
    scene.producer._moved_at -= module.STALE_SECONDS
    scene.step()
    assert len(scene.released) == 10

    for _ in range(3):
        scene.producer.look()
        scene.step()

    assert len(scene.claims) == 1


def test_jobs_that_are_being_worked_off_are_not_stale(monkeypatch):
    monkeypatch.setattr(module, "STALE_SECONDS", 0.0)
    scene = Scene(jobs=rows(10))
    scene.have_done(100, 0.05)
    scene.step()
    for _ in range(5):
        scene.have_done(1, 0.05)
        scene.step()
        scene.take(1)

    assert scene.released == []


def test_a_stale_buffer_is_noticed_without_any_wake_up(started, monkeypatch):
    monkeypatch.setattr(module, "STALE_SECONDS", 0.05)
    scene = Scene(jobs=rows(10))
    scene.have_done(100, 0.05)
    started(scene.producer)

    eventually(lambda: scene.released == list(range(1, 11)))


def test_in_doubt_about_its_lease_it_claims_nothing_and_takes_back_what_is_buffered():
    scene = Scene(jobs=rows(10))
    scene.buffer.waiting = 4
    scene.step()
    scene.situation.may_claim = scene.situation.trusts_claims = False
    scene.step()
    scene.step()

    assert not scene.buffer.jobs
    assert scene.released == [], "whether they are still this worker's is not known"
    assert ids(scene.producer.returning) == [1, 2, 3, 4]
    assert len(scene.claims) == 1

    scene.situation.may_claim = scene.situation.trusts_claims = True
    scene.producer.look()
    scene.step()
    assert scene.released == [1, 2, 3, 4]


def test_what_was_claimed_under_an_id_that_was_given_up_is_neither_run_nor_given_back():
    scene = Scene(jobs=rows(10))
    scene.buffer.waiting = 4
    scene.step()

    scene.situation.worker_id = WORKER + 1
    scene.producer.withdraw()
    assert not scene.buffer.jobs, "an executor could have begun one"
    scene.step()

    assert scene.released == []
    assert scene.producer.returning == []
    assert {job.worker_id for job in scene.buffer.jobs} <= {WORKER + 1}


def test_what_is_claimed_while_the_id_is_given_up_does_not_reach_an_executor():
    scene = Scene(jobs=rows(4))
    scene.buffer.waiting = 4

    def give_up(*args):
        scene.situation.worker_id = WORKER + 1
        scene.producer.withdraw()
        scene.producer.look()

    scene.store.after["claim"] = give_up
    scene.step()
    scene.store.after.clear()
    scene.step()

    assert not scene.buffer.jobs
    assert scene.released == []


def test_what_another_thread_withdraws_is_taken_at_once_and_given_back_by_the_producer(started):
    scene = Scene(jobs=rows(10))
    scene.buffer.waiting = 4
    gate = Gate()
    scene.store.after["claim"] = gate
    started(scene.producer)
    gate.wait()
    gate.open()
    eventually(lambda: len(scene.buffer.jobs) == 4)
    scene.buffer.waiting = 0
    scene.producer.withdraw()
    assert not scene.buffer.jobs

    eventually(lambda: scene.released == [1, 2, 3, 4])


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


# -- work is found concurrently with the doing of it -------------------------------------------------------------------


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
