"""What a worker measures for scrapers, and how several workers' measures become one."""

import json

import pytest

from django_jobs.store.answers import Ended
from django_jobs.worker import measures as module
from django_jobs.worker.measures import BOUNDS, Measures, add_up
from django_jobs.worker.recorder import Recorder
from django_jobs.worker.snapshots import SnapshotFile, SnapshotFolder
from django_jobs.worker.statistics import Statistics
from django_jobs.worker.tallies import OTHERS
from tests.worker.fakes import attempted
from tests.worker.test_tallies import job


@pytest.fixture
def statistics():
    return Statistics(measures=Measures())


def record(statistics, *pairs):
    ended = {item.outcome.id: Ended(item.outcome.id, state, state is not None) for item, state in pairs}
    Recorder(statistics)([item for item, _ in pairs], ended)


def snapshot(statistics):
    return statistics.measures.snapshot({"statements": 5}, {"running": 2})


def buckets(rows, name="tests.job"):
    """The bounds of the buckets that hold something, with how much, and the sum."""
    (found,) = [row[2] for row in rows if row[1] == name]
    bounds = [*BOUNDS, "more"]
    return {bound: number for bound, number in zip(bounds, found, strict=False) if number}, found[-1]


def test_counts_and_histograms(statistics):
    record(
        statistics,
        (attempted(job(1, 0.0))._replace(seconds=0.005), "completed"),
        (attempted(job(2, 3.0))._replace(seconds=0.006), "completed"),
        (attempted(job(3, 9000.0), "retry", 5.0)._replace(seconds=7200.0), "scheduled"),
        (attempted(job(4, 3.0), "failed")._replace(seconds=0.006), "failed"),
        (attempted(job(5, 3.0), "snoozed", 5.0)._replace(seconds=0.006), "scheduled"),
        (attempted(job(6, 3.0), "retry", 5.0)._replace(seconds=0.006), "cancelled"),
        (attempted(job(7, 3.0))._replace(seconds=0.006), None),
    )
    found = snapshot(statistics)

    assert sorted(found["attempts"]) == [
        ["default", "tests.job", "cancelled", 1],
        ["default", "tests.job", "completed", 2],
        ["default", "tests.job", "failed", 1],
        ["default", "tests.job", "retried", 1],
        ["default", "tests.job", "snoozed", 1],
    ]
    assert buckets(found["runs"]) == ({0.005: 1, 0.01: 2, "more": 1}, pytest.approx(7200.017))
    assert buckets(found["waits"]) == ({0.005: 1, 5.0: 2, "more": 1}, 9006.0)
    assert (found["counters"], found["gauges"]) == ({"statements": 5}, {"running": 2})


def test_they_grow(statistics):
    record(statistics, (attempted(job(1))._replace(seconds=0.1), "completed"))
    before = snapshot(statistics)
    record(statistics, (attempted(job(2))._replace(seconds=0.1), "completed"))

    assert buckets(before["runs"]) == ({0.1: 1}, 0.1)
    assert buckets(snapshot(statistics)["runs"]) == ({0.1: 2}, 0.2)


def test_kinds_without_end_are_bounded(statistics, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEYS", 3)
    for number in range(5):
        record(
            statistics, (attempted(job(number, name=f"tests.{number}"))._replace(seconds=0.1), "completed")
        )

    found = snapshot(statistics)
    assert sorted(name for _, name, _ in found["runs"]) == [OTHERS, "tests.0", "tests.1", "tests.2"]
    assert buckets(found["runs"], OTHERS) == ({0.1: 2}, 0.2)
    assert ["(others)", "(others)", "completed", 2] in found["attempts"]


def test_without_a_scraper_nothing_is_measured():
    assert Statistics().measures is None


def test_several_become_one(statistics):
    record(statistics, (attempted(job(1))._replace(seconds=0.1), "completed"))
    one = snapshot(statistics)
    record(statistics, (attempted(job(2, name="tests.other"))._replace(seconds=0.1), "completed"))
    two = json.loads(json.dumps(snapshot(statistics)))

    both = add_up([one, two])

    assert sorted(both["attempts"]) == [
        ["default", "tests.job", "completed", 2], ["default", "tests.other", "completed", 1],
    ]  # fmt: skip
    assert buckets(both["runs"]) == ({0.1: 2}, 0.2)
    assert (both["counters"], both["gauges"]) == ({"statements": 10}, {"running": 4})
    assert add_up([one], without_gauges=True)["gauges"] == {}


class TestChildren:
    @pytest.fixture
    def folder(self):
        folder = SnapshotFolder()
        yield folder
        folder.close()

    @pytest.fixture
    def write(self, folder, statistics, monkeypatch):
        """A child with that process id hands over what was measured."""

        def write(pid):
            for name, value in folder.environment().items():
                monkeypatch.setenv(name, value)
            monkeypatch.setattr("os.getpid", lambda: pid)
            file = SnapshotFile.inherited()
            assert file is not None
            assert SnapshotFile.inherited() is None  # what the child starts is none of its supervisor's
            file.write(snapshot(statistics))
            monkeypatch.undo()

        return write

    def total(self, found):
        return sum(row[-1] for row in found["attempts"])

    def test_those_that_have_ended_count_on_and_are_not_counted_twice(self, folder, write, statistics):
        record(statistics, (attempted(job(1))._replace(seconds=0.1), "completed"))
        write(11)
        write(12)
        found = folder.collect(lambda: [11, 12])
        assert (self.total(found), found["gauges"]) == (2, {"running": 4})

        record(statistics, (attempted(job(2))._replace(seconds=0.1), "completed"))
        write(11)  # its last word
        for _ in range(3):
            found = folder.collect(lambda: [12])
            assert (self.total(found), found["gauges"]) == (3, {"running": 2})

        for _ in range(2):
            assert self.total(folder.collect(list)) == 3

    def test_of_those_that_have_ended_no_file_stays_though_nobody_asks(self, folder, write, statistics):
        record(statistics, (attempted(job(1))._replace(seconds=0.1), "completed"))
        for pid in (11, 12, 11):  # the last one has the process id of the first
            write(pid)
            (folder._folder / f"{pid}.part").write_text("it was killed while it wrote")
            folder.take_in(pid)
        folder.take_in(13)  # which has not come to write any

        assert [*folder._folder.iterdir()] == []
        assert self.total(folder.collect(list)) == 3

    def test_a_file_that_can_not_be_read_is_left_out(self, folder, write, statistics, caplog):
        record(statistics, (attempted(job(1))._replace(seconds=0.1), "completed"))
        write(11)
        (folder._folder / "12.json").write_text('{"att')

        assert self.total(folder.collect(lambda: [11, 12])) == 1
        assert "process 12" in caplog.text

    def test_the_folder_goes_at_the_end(self, folder, write):
        write(11)
        folder.close()
        assert not folder._folder.exists()
        write_after = SnapshotFile(folder._folder)
        write_after.write({})  # a child that outlives its supervisor
