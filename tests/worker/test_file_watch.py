"""A watch of a file: it ends its wait when somebody writes, and where it can't be had there is looking."""

import errno
import sys
import threading
import time

import pytest

from django_jobs.worker import file_watch as module
from django_jobs.worker.file_watch import Inotify, Looking, watch_file
from django_jobs.worker.listener import FileListener
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT
from tests.workload.models import Effect

linux = pytest.mark.xfail(sys.platform != "linux", reason="inotify is Linux's", run=False)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "db.sqlite3"
    path.write_bytes(b"1")
    return path


@pytest.fixture
def quiet(monkeypatch):
    """Nobody has written for long, and nothing but a write ends a wait soon."""
    monkeypatch.setattr(module, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(module, "SAFETY_SECONDS", 2 * TIMEOUT)


@pytest.fixture
def inotify(file):
    watch = Inotify([str(file), f"{file}-wal"], 0.01)
    yield watch
    watch.close()


class Waiting:
    """A wait of a watch, in a thread."""

    def __init__(self, watch):
        self.returned = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(watch,), daemon=True)
        self.thread.start()

    def run(self, watch):
        watch.wait()
        self.returned.set()


def append(path):
    with path.open("ab") as file:
        file.write(b"2")


@linux
@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_write_to_the_file_or_its_log_ends_the_wait(file, quiet, suffix):
    written = file.with_name(file.name + suffix)
    written.touch()
    watch = Inotify([str(file), f"{file}-wal"], 0.01)
    waiting = Waiting(watch)
    assert not waiting.returned.wait(0.05)
    append(written)

    assert waiting.returned.wait(TIMEOUT)
    watch.close()


@linux
def test_a_write_before_the_wait_is_not_missed(inotify, file, quiet):
    append(file)

    assert Waiting(inotify).returned.wait(TIMEOUT)


@linux
def test_after_a_write_it_is_looked_at_again_and_again_for_a_while(inotify, file, monkeypatch):
    """What was told of first may not be committed yet, and nothing tells of that."""
    monkeypatch.setattr(module, "SAFETY_SECONDS", 2 * TIMEOUT)
    monkeypatch.setattr(module, "SETTLE_SECONDS", 2 * TIMEOUT)
    append(file)
    for _ in range(20):
        assert Waiting(inotify).returned.wait(TIMEOUT)


@linux
def test_it_is_looked_at_all_the_same_should_it_tell_nothing(inotify, monkeypatch):
    monkeypatch.setattr(module, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(module, "SAFETY_SECONDS", 0.01)

    assert Waiting(inotify).returned.wait(TIMEOUT)


@linux
def test_an_interruption_ends_the_wait(inotify, quiet):
    waiting = Waiting(inotify)
    assert not waiting.returned.wait(0.05)
    inotify.interrupt()

    assert waiting.returned.wait(TIMEOUT)


@linux
@pytest.mark.parametrize("change", ["remove", "replace"])
def test_a_file_that_is_another_one_now_is_told(inotify, file, quiet, change):
    assert not inotify.ended
    if change == "remove":
        file.unlink()
    else:
        file.rename(file.with_name("old"))
        file.write_bytes(b"another")
    inotify.wait()

    assert inotify.ended


@linux
def test_a_watch_that_told_nothing_of_a_change_is_deaf(inotify, file, quiet, monkeypatch):
    append(file)
    inotify.wait()
    inotify.saw_change()
    assert not inotify.deaf

    monkeypatch.setattr(module, "DEAF_SECONDS", 0.0)
    inotify.saw_change()
    assert inotify.deaf


@linux
def test_to_close_it_twice_does_no_harm(inotify):
    inotify.close()
    inotify.close()
    inotify.interrupt()


@linux
def test_the_best_watch_that_can_be_had(file, tmp_path, monkeypatch):
    best = watch_file(str(file), 0.5)
    assert isinstance(best, Inotify)
    best.close()
    for path in (None, "", str(tmp_path / "none")):
        assert isinstance(watch_file(path, 0.5), Looking)

    def refuse(*args):
        raise OSError(errno.EMFILE, "too many")

    monkeypatch.setattr(module, "Inotify", refuse)
    assert isinstance(watch_file(str(file), 0.5), Looking)
    monkeypatch.undo()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert isinstance(watch_file(str(file), 0.5), Looking)


def test_looking_comes_back_by_itself():
    watch = Looking(0.001)
    watch.wait()
    watch.saw_change()
    watch.interrupt()
    watch.close()

    assert (watch.deaf, watch.ended) == (False, False)


# -- the listener ----------------------------------------------------------------------------------------------------


@pytest.fixture
def hints():
    class Hints(list):
        def __call__(self, hint):
            self.append(hint)

    return Hints()


@pytest.fixture
def patient(monkeypatch):
    """Nothing but a write, or a look soon after one, ends a wait."""
    monkeypatch.setattr(module, "SAFETY_SECONDS", 2 * TIMEOUT)


@pytest.fixture
def listener(open_store, hints, started):
    listener = started(FileListener(open_store, hints, 0.001))
    eventually(lambda: listener.healthy and listener.watch)
    return listener


@pytest.mark.sqlite
@linux
def test_a_commit_is_told_by_the_kernel_alone(patient, listener, hints):
    for number in range(1, 4):
        Effect.objects.create(job_id=number, claims=1, pid=1)
        eventually(lambda number=number: len(hints) == 1 + number)
        eventually(lambda: time.monotonic() - listener.watch._told_at > module.SETTLE_SECONDS)

    assert isinstance(listener.watch, Inotify)


@pytest.mark.sqlite
@linux
def test_a_listener_whose_watch_is_deaf_looks(listener, hints, monkeypatch):
    monkeypatch.setattr(module, "DEAF_SECONDS", 0.0)
    Effect.objects.create(job_id=1, claims=1, pid=1)
    eventually(lambda: isinstance(listener.watch, Looking))
    Effect.objects.create(job_id=2, claims=1, pid=1)

    eventually(lambda: len(hints) == 3)


@pytest.mark.sqlite
@linux
def test_a_listener_whose_files_are_others_watches_those(patient, listener, hints):
    first = listener.watch
    first.ended = True
    Effect.objects.create(job_id=1, claims=1, pid=1)
    eventually(lambda: listener.watch is not first)
    eventually(lambda: len(hints) == 2)
    Effect.objects.create(job_id=2, claims=1, pid=1)

    eventually(lambda: len(hints) == 3)


@pytest.mark.sqlite
@linux
def test_a_stop_ends_the_wait_for_the_kernel(patient, listener):
    listener.stop()

    assert listener.join(TIMEOUT)
    assert listener.watch is None
