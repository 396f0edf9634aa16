"""What a child notes outlives it, and tells what had started and what had completed."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from django_jobs import registry
from django_jobs.worker.attempt import FOR_THE_LOOP
from django_jobs.worker.event_loop import EventLoop
from django_jobs.worker.shared_notes import VARIABLE, NotedRunner, Notes
from django_jobs.worker.signs import Signs
from tests.worker.fakes import row, rows


@pytest.fixture
def notes():
    notes = Notes.create(4)
    yield notes
    notes.close()


@pytest.fixture
def child(notes, monkeypatch):
    """The child's end of the same notes."""
    monkeypatch.setenv(VARIABLE, str(os.dup(notes.descriptor)))
    end = Notes.inherited()
    assert end is not None
    yield end
    end.close()


def test_that_a_child_lives_is_noted_where_that_is_wanted(notes, child):
    assert (child.probed, notes.beat_at) == (False, 0.0)
    notes.probe()
    assert child.probed

    before = time.monotonic()
    child.beat()
    assert before <= notes.beat_at <= time.monotonic()
    assert notes.worker_ids == []


def test_what_has_started_is_known_and_what_has_completed(notes, child):
    first, second = child.start(row(1, claims=3)), child.start(row(2**60, claims=1))
    child.complete(first)
    child.end(first)

    assert notes.started() == {(1, 3): True, (2**60, 1): False}

    child.end(second)
    assert notes.started() == {(1, 3): True, (2**60, 1): False}, "what ended may not be stored yet"


def test_nothing_noted_is_nothing_started(notes, child):
    assert notes.started() == {}
    assert notes.worker_ids == []
    assert (notes.retiring, notes.asked, notes.ended) == (False, False, False)


def test_a_claim_in_the_entry_of_an_older_one_is_not_taken_for_completed(notes, child):
    entry = child.start(row(1))
    child.complete(entry)
    child.end(entry)
    child._free.clear()
    child._free.append(entry)

    assert child.start(row(2)) == entry

    assert notes.started() == {(2, 1): False}


def test_a_torn_entry_is_no_completed_one(notes, child):
    # The process died between two words of an entry: the new id stands beside the claims of the job before.
    entry = child.start(row(1, claims=7))
    child.complete(entry)
    child._words[entry] = 2

    assert notes.started() == {(2, 7): False}


def test_an_attempt_that_runs_for_long_keeps_its_entry(notes, child):
    child.start(row(1))
    for job in rows(30_000, first=2):
        child.end(child.start(job))

    started = notes.started()

    assert started[1, 1] is False
    # As many as may have ended and not be stored yet are remembered.
    assert all((number, 1) in started for number in range(30_001 - 20_000, 30_001))


def test_when_there_are_too_many_to_note_nothing_is_known(notes, child):
    while child._free:
        child._free.popleft()

    entry = child.start(row(1))
    child.complete(entry)
    child.end(entry)

    assert notes.started() is None


def test_the_ids_of_the_childs_workers_the_newest_first(notes, child):
    for number in range(1, 41):
        child.register(number)
    assert notes.worker_ids == list(range(40, 8, -1))


def test_what_the_child_says_of_itself(notes, child):
    child.retire()
    child.was_asked()
    child.count(10, 3, 1)
    child.leave()
    assert notes.retiring
    assert notes.asked
    assert notes.ended
    assert notes.totals == (10, 3, 1)


@pytest.mark.parametrize("value", ["", "x", "-1", "99999", "0"])
def test_a_variable_that_names_no_notes_is_ignored(monkeypatch, value):
    monkeypatch.setenv(VARIABLE, value)
    assert Notes.inherited() is None
    assert VARIABLE not in os.environ


def test_a_strangers_file_is_no_notes(monkeypatch, tmp_path):
    (tmp_path / "file").write_bytes(b"\0" * 4096)
    with (tmp_path / "file").open("r+b") as file:
        monkeypatch.setenv(VARIABLE, str(file.fileno()))
        assert Notes.inherited() is None


def test_they_outlive_a_child_that_is_killed(notes):
    script = (
        "import os, signal\n"
        "from django_jobs.worker.shared_notes import Notes\n"
        "from tests.worker.fakes import row\n"
        "notes = Notes.inherited()\n"
        "notes.register(5)\n"
        "notes.complete(notes.start(row(1)))\n"
        "notes.start(row(2))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    setup = "import os, django; os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'tests.settings'); django.setup()\n"
    done = subprocess.run(
        [sys.executable, "-c", setup + script],
        env={**os.environ, **notes.environment()},
        pass_fds=[notes.descriptor],
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert notes.worker_ids == [5]
    assert notes.started() == {(1, 1): True, (2, 1): False}


class TestRunner:
    def run(self, child, definition, **columns):
        return NotedRunner(child, registry, Signs()).run(row(name=definition.name, **columns))

    def test_a_job_is_noted_before_it_starts(self, notes, child, define):
        seen = []
        self.run(child, define(lambda: seen.append(notes.started())))
        assert seen == [{(1, 1): False}]

    def test_a_job_without_a_result_is_noted_as_completed(self, notes, child, define):
        self.run(child, define(lambda: None))
        assert notes.started() == {(1, 1): True}

    @pytest.mark.parametrize("function", [lambda: 5, lambda: 1 / 0], ids=["a result", "an error"])
    def test_what_the_notes_do_not_hold_is_not_noted_as_completed(self, notes, child, define, function):
        self.run(child, define(function))
        assert notes.started() == {(1, 1): False}

    def test_entries_come_back_however_a_job_ends(self, child, define):
        free = len(child._free)

        def leave():
            raise SystemExit

        for definition in (define(lambda: None), define(leave)):
            self.run(child, definition)
        assert len(child._free) == free

    def test_an_async_job_is_noted_when_it_starts_on_the_loop(self, notes, child, define):
        seen = []

        async def work():
            seen.append(notes.started())

        free = len(child._free)
        job = row(name=define(work).name)
        runner = NotedRunner(child, registry, Signs(), loop=EventLoop())

        assert runner.run(job, lambda record: None) == FOR_THE_LOOP
        assert notes.started() == {}
        asyncio.run(runner.arun(job))
        assert seen == [{(1, 1): False}]
        assert notes.started() == {(1, 1): True}
        assert len(child._free) == free

    def test_a_job_with_metadata_to_be_stored_is_not_noted_as_completed(self, notes, child, define):
        def work(context):
            context.merge_metadata({"a": 1}, later=True)

        self.run(child, define(work, takes_context=True))
        assert notes.started() == {(1, 1): False}
