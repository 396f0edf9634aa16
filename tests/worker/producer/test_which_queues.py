"""Which queues the producer looks at."""

from types import SimpleNamespace

import pytest
from django.db.utils import OperationalError

from django_jobs.worker import producer as module
from tests.waiting import eventually
from tests.worker.fakes import row, rows
from tests.worker.producer.helping import Scene, ids, mixed


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
    monkeypatch.setattr(module, "ASK_PART", float("inf"))
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


def test_where_asking_is_slow_it_asks_less_often_and_claims_from_what_wake_ups_name():
    scene = Scene("*", jobs=[*rows(9, queue_name="a"), *rows(2, first=10, queue_name="b")])
    scene.buffer.waiting = 4
    scene.step()
    scene.take()
    scene.producer._asking = 1.0
    scene.producer._asked_at -= module.ASK_SECONDS

    scene.store.add(rows(1, first=12, queue_name="c"))
    scene.producer.look("c")
    for _ in range(2):
        scene.step()
        scene.take()
    assert asked(scene) == 1
    assert {queue for queue, _ in scene.claims} == {"a", "b", "c"}

    scene.store.add(rows(9, first=20, queue_name="a"))
    scene.producer.look("a")
    scene.step()
    scene.take()
    scene.producer._asked_at -= 1.0 / module.ASK_PART
    scene.step()
    assert asked(scene) == 2


def test_one_slow_answer_does_not_keep_it_from_asking_for_long(monkeypatch):
    """The machine stood still for a minute. Where nothing wakes it, it sees another queue by asking alone."""
    clock = [1000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    scene = Scene("*", jobs=mixed(50))
    scene.buffer.waiting = 2

    def stand_still():
        clock[0] += 60.0

    scene.store.before["waiting_queues"] = stand_still
    scene.step()
    scene.take()
    scene.store.add(mixed(0, 5))
    clock[0] += module.ASK_LONGEST
    scene.step()

    assert asked(scene) == 2


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


def test_a_named_queue_is_claimed_from_until_it_is_empty_while_another_one_is_full():
    """There may be one for each of a million users: to claim from all that were ever named would starve the rest."""
    scene = Scene("*", jobs=rows(50, queue_name="a"))
    scene.buffer.waiting = 4
    scene.step()
    scene.take()
    scene.producer._asking = 3600.0
    scene.store.add(rows(6, first=100, queue_name="b"))
    scene.producer.look("b")
    scene.producer.look("c")
    for _ in range(8):
        scene.step()
        scene.take()

    assert asked(scene) == 1
    turns = [queue for queue, _ in scene.claims]
    assert (turns.count("b"), turns.count("c")) == (2, 1)
    assert not scene.store.waiting["b"]


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


@pytest.mark.parametrize("queues", [("a",), ("*",)])
def test_what_a_claim_may_have_passed_over_is_claimed_in_time_and_without_a_wake_up(started, queues):
    scene = Scene(*queues)
    scene.buffer.waiting = 4
    scene.store.passed_over = {"a": 0.005}
    started(scene.producer)
    scene.producer.look("a")
    eventually(lambda: len(scene.claims) > 2)
    assert not scene.producer.found_nothing
    scene.store.add(rows(1, queue_name="a"))
    eventually(lambda: ids(scene.buffer.jobs) == [1])

    scene.store.passed_over = {}
    eventually(lambda: scene.producer.found_nothing)
    assert asked(scene) <= 1


def test_a_queue_that_was_paused_meanwhile_is_not_looked_at_again_and_again():
    scene = Scene("a")
    scene.buffer.waiting = 4
    scene.store.passed_over = {"a": 0.0}
    scene.step()
    assert [*scene.producer._again] == ["a"]

    scene.situation.paused = frozenset({"a"})
    scene.step()
    assert not scene.producer._again
    assert len(scene.claims) == 1
