"""The supervisor, with children that are small scripts, and no database."""

import contextlib
import os
import signal
import sys
import threading

import pytest

from django_jobs.worker import supervisor as module
from django_jobs.worker.handback import Estate
from django_jobs.worker.lifeline import Lifeline
from django_jobs.worker.shared_notes import _BEAT as BEAT
from django_jobs.worker.supervisor import Place, Supervisor
from tests.waiting import eventually

# What each script begins with: the child's end of the notes, without Django.
NOTES = """
import mmap, os, signal, sys, threading
words = memoryview(mmap.mmap(int(os.environ["DJANGO_JOBS_NOTES"]), 0)).cast("q")
lifeline = int(os.environ["DJANGO_JOBS_LIFELINE"])
def register(worker): words[9] = worker; words[8] = 1
def retire(): words[1] = 1
def asked(): words[2] = 1
def leave(code=0): words[5] = 7; words[3] = 1; sys.exit(code)
"""
WORK = "signal.signal(signal.SIGTERM, lambda *_: leave())\nregister(os.getpid())\nthreading.Event().wait()\n"


class FakeHandBack:
    """Takes estates, and hands them back when the test says so."""

    def __init__(self) -> None:
        self.estates: list[Estate] = []
        self.started = self.stopped = False

    def start(self) -> None:
        self.started = True

    def add(self, estate: Estate) -> None:
        self.estates.append(estate)

    def wait(self, timeout: float) -> bool:
        return True

    def stop(self) -> None:
        self.stopped = True

    def join(self, timeout: float) -> bool:
        return True


class Run:
    """A supervisor in a thread, and how it ended."""

    def __init__(self, script: str, processes: int = 1, **options) -> None:
        self.hand_back = FakeHandBack()
        options = {"shutdown_timeout": 60.0, **options}
        command = [sys.executable, "-S", "-c", NOTES + script]
        self.supervisor = Supervisor(command, processes, 4, self.hand_back, **options)  # type: ignore[arg-type]
        self.code: int | None = None
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        self.code = self.supervisor.run()

    def pids(self, count: int) -> list[int]:
        """The children, once so many are at work."""
        eventually(lambda: len(self.at_work()) == count)
        return [child.pid for child in self.at_work()]

    def at_work(self):
        found = []
        for child in self.supervisor.children:
            with contextlib.suppress(ValueError):  # its notes are closed just now
                found += [child] if child.notes.worker_ids else []
        return found

    def join(self) -> int | None:
        self.thread.join(30)
        assert not self.thread.is_alive(), "the supervisor did not end"
        return self.code


@pytest.fixture
def run(request):
    runs = []

    def start(*args, **options):
        runs.append(Run(*args, **options))
        return runs[-1]

    yield start
    for one in runs:
        one.supervisor.stop_now()
        one.thread.join(5)
        for child in one.supervisor.children:
            child.process.kill()
        one.thread.join(30)


def test_a_stop_is_passed_on_and_waited_for(run):
    one = run(WORK, processes=3)
    one.pids(3)
    one.supervisor.stop()
    assert one.join() == 0
    assert one.supervisor.completed == 21
    assert one.hand_back.estates == []
    assert one.hand_back.stopped


def test_a_child_that_is_killed_is_replaced_and_what_it_held_is_handed_back(run):
    one = run(WORK, processes=2)
    first, second = one.pids(2)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: first not in [child.pid for child in one.at_work()] and len(one.at_work()) == 2)
    assert second in one.pids(2)
    (estate,) = one.hand_back.estates
    assert estate.worker_ids == [first]
    assert estate.name == f"Process {first} was killed by signal SIGKILL"


def test_of_each_child_it_is_told_once_that_it_has_ended(run):
    ended = []
    one = run(WORK, processes=2, on_ended=ended.append)
    first, _ = one.pids(2)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: first not in [child.pid for child in one.at_work()] and len(one.at_work()) == 2)
    last = one.pids(2)
    one.supervisor.stop()
    assert one.join() == 0

    assert sorted(ended) == sorted([first, *last])


class Watched:
    """Probes that tell what they were told."""

    def __init__(self):
        self.words = []

    def watch(self, ask, status):
        self.words.append(status)

    def stopping(self):
        self.words.append("stopping")

    def stop(self):
        self.words.append("stop")

    def join(self, timeout):
        self.words.append("join")


# A child that notes that it lives, until it gets SIGUSR1.
BEATING = (
    WORK.replace("threading.Event().wait()\n", "")
    + f"""
import time
quiet, never = threading.Event(), threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: quiet.set())
while not never.wait(0.01):
    if not quiet.is_set():
        words[{BEAT}] = time.monotonic_ns()
"""
)


def test_a_child_that_is_not_heard_of_any_more_is_a_problem(run):
    probes = Watched()
    one = run(BEATING, processes=2, probes=probes, silence=3.0)
    _, second = one.pids(2)
    assert all(child.notes.probed for child in one.at_work())
    eventually(lambda: all(child.heard_at for child in one.at_work()))
    assert one.supervisor.problem() is None

    os.kill(second, signal.SIGUSR1)
    eventually(lambda: one.supervisor.problem() == f"process {second} has not been heard of for 3 s")

    os.kill(second, signal.SIGKILL)
    eventually(lambda: second not in one.pids(2))
    assert one.supervisor.problem() is None
    one.supervisor.stop()
    assert one.join() == 0
    assert probes.words == ["Keeps 2 workers at work", "stopping", "stop", "join"]


def test_a_supervisor_that_stands_still_is_a_problem(run):
    one = run(WORK)
    one.pids(1)
    one.supervisor.stop()
    one.join()
    one.supervisor.pulse.at -= 100
    assert one.supervisor.problem().startswith("the supervisor has stood still for 10")


def test_an_exit_that_is_not_in_order_is_a_death_too(run):
    one = run("register(5)\nos._exit(0)\n")
    eventually(lambda: one.hand_back.estates)
    assert one.hand_back.estates[0].name.endswith("ended with exit code 0")


def test_a_child_that_is_killed_when_it_has_stopped_in_order_leaves_nothing(run):
    # At its very end a process has no handlers any more, and dies of the SIGTERM that is passed on to it.
    one = run("register(5)\nwords[5] = 7; words[3] = 1\nos.kill(os.getpid(), signal.SIGKILL)\n", drain=True)
    assert one.join() == 0
    assert one.supervisor.completed == 7
    assert one.hand_back.estates == []


def test_a_child_that_never_came_to_claim_leaves_nothing(run):
    one = run("sys.exit(1)\n")
    eventually(lambda: one.supervisor.places[0].deaths >= 2)
    assert one.hand_back.estates == []


def test_a_child_that_dies_again_and_again_is_not_started_in_a_circle_and_a_stop_ends_it(run):
    one = run("sys.exit(1)\n")
    place = one.supervisor.places[0]
    eventually(lambda: place.deaths >= 2)
    assert place.child is None
    one.supervisor.stop()
    assert one.join() == 0


def test_the_pauses_between_deaths():
    place = Place()
    assert [place.died(1.0) for _ in range(8)] == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert place.died(60.0) == 0.0
    assert place.died(1.0) == 1.0
    place.deaths = 10_000
    assert place.died(1.0) == 30.0


def test_a_command_that_cannot_be_run_is_tried_again_and_a_stop_ends_it(run, monkeypatch):
    one = run(WORK)
    (pid,) = one.pids(1)
    one.supervisor.command = ["/nowhere/python"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: one.supervisor.places[0].deaths >= 2)
    one.supervisor.stop()
    assert one.join() == 0


def test_a_child_that_does_not_stop_in_time_is_killed_and_what_it_held_is_handed_back(run):
    one = run(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WORK.partition("\n")[2],
        shutdown_timeout=0.1,
        grace=0.1,
    )
    one.pids(1)
    one.supervisor.stop()
    assert one.join() == 0
    assert one.hand_back.estates[0].name.endswith("was killed by signal SIGKILL")


def test_a_second_request_comes_by_the_lifeline_and_not_by_a_second_signal_alone(run, tmp_path):
    heard = tmp_path / "heard"
    one = run(
        "signal.signal(signal.SIGTERM, lambda *_: None)\nregister(1)\n"
        f"heard = os.read(lifeline, 1)\nopen({str(heard)!r}, 'wb').write(heard)\nleave()\n"
    )
    one.pids(1)
    one.supervisor.stop()
    one.supervisor.stop_now()
    assert one.join() == 0
    assert heard.read_bytes() == b"!"


def test_a_retiring_child_is_replaced_while_it_ends_its_jobs(run, tmp_path):
    done = tmp_path / "done"
    one = run(
        f"if not os.path.exists({str(done)!r}):\n"
        f"    open({str(done)!r}, 'w').close()\n"
        "    signal.signal(signal.SIGTERM, lambda *_: leave())\n"
        "    register(1)\n    retire()\n    threading.Event().wait()\n" + WORK
    )
    eventually(lambda: len(one.supervisor.leaving) == 1 and len(one.pids(2)) == 2)
    (leaving,) = one.supervisor.leaving
    os.kill(leaving.pid, signal.SIGTERM)  # its jobs have ended
    eventually(lambda: not one.supervisor.leaving)
    assert len(one.pids(1)) == 1
    assert one.hand_back.estates == []


def test_retiring_children_whose_jobs_do_not_end_do_not_become_ever_more(run):
    one = run(
        "signal.signal(signal.SIGTERM, lambda *_: leave())\nregister(1)\nretire()\nthreading.Event().wait()\n",
        processes=2,
    )
    eventually(lambda: one.supervisor.completed >= 7 * 4)
    assert len(one.supervisor.leaving) <= 8  # two, and those that were just asked to stop


def test_a_child_that_its_row_told_to_stop_is_not_replaced(run):
    one = run("register(1)\nasked()\nleave()\n", processes=2)
    assert one.join() == 0
    assert one.supervisor.completed == 14


def test_a_child_that_somebody_else_told_to_stop_is_replaced(run):
    one = run(WORK)
    (pid,) = one.pids(1)
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: one.supervisor.completed == 7 and len(one.at_work()) == 1)
    assert one.pids(1) != [pid]


class TestDrain:
    def test_it_ends_when_all_have_and_says_what_they_say(self, run, tmp_path):
        one = run("register(1)\nleave(1)\n", processes=2, drain=True)
        assert one.join() == 1
        assert one.supervisor.completed == 14

    def test_a_child_that_dies_is_replaced_once_its_jobs_are_due_again(self, run, tmp_path):
        mark = tmp_path / "mark"
        one = run(
            f"register(1)\nif not os.path.exists({str(mark)!r}):\n"
            f"    open({str(mark)!r}, 'w').close()\n    os._exit(9)\nleave()\n",
            drain=True,
        )
        eventually(lambda: one.hand_back.estates)
        place = one.supervisor.places[0]
        eventually(lambda: place.child is None and place.waits_for is not None)
        assert one.supervisor.completed == 0
        one.hand_back.estates[0].settled.set()
        assert one.join() == 0
        assert one.supervisor.completed == 7

    def test_a_child_that_cannot_begin_ends_it(self, run):
        one = run("sys.exit(1)\n", processes=2, drain=True)
        assert one.join() == 1


def expect_the_error(run: Run) -> None:
    with pytest.raises(ZeroDivisionError):
        run.supervisor.run()


def test_without_the_supervisor_children_notice(run, monkeypatch):
    # An error of the supervisor's own: children stop in order, as after its death.
    monkeypatch.setattr(module.Supervisor, "_kill_the_late", lambda self: 1 / self.failing)
    monkeypatch.setattr(module.Supervisor, "failing", 1, raising=False)
    monkeypatch.setattr(Run, "work", expect_the_error)
    one = run("register(1)\nos.read(lifeline, 1)\nleave()\n")
    one.pids(1)
    (child,) = one.supervisor.children
    monkeypatch.setattr(module.Supervisor, "failing", 0)
    assert child.process.wait(30) == 0
    one.join()


def test_a_lifeline_that_was_let_go_can_be_told_anything():
    line = Lifeline()
    line.close()
    line.close()
    line.hurry()
