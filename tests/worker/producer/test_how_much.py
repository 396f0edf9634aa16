"""How much the producer claims, and when."""

import threading

import pytest
from django.db.utils import OperationalError

from django_jobs.worker import parts
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, row, rows
from tests.worker.producer.helping import Scene, ids

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
    assert len(scene.buffer.jobs) <= 4 + scene.producer.ahead()


def test_claiming_never_exceeds_the_room_whatever_the_executors_do():
    scene = Scene(size=4, jobs=rows(20_000))
    scene.have_done(1000, 0.0005)
    for number in range(200):
        scene.buffer.waiting = number % 5
        scene.take(min(len(scene.buffer.jobs), number * 7 % 400))
        before = len(scene.buffer.jobs)
        room = 4 + scene.producer.ahead()  # more where claims are slow, as on a machine that is busy
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
