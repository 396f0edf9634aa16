"""When a worker has had enough."""

import logging

import pytest

from django_jobs.worker import recycling
from django_jobs.worker.recycling import MEGABYTE, Allowance, MemoryLimit, resident_memory
from tests.store.builders import in_threads


class TestAllowance:
    @pytest.fixture
    def told(self):
        return []

    @pytest.fixture
    def allow(self, told):
        return lambda jobs: Allowance(jobs, lambda: told.append("spent"), lambda: told.append("back"))

    def test_no_more_is_taken_than_there_is(self, allow, told):
        allowance = allow(10)
        assert (allowance.take(6), allowance.take(6), allowance.take(6)) == (6, 4, 0)
        assert told == []

    def test_it_is_spent_when_the_last_are_in_the_executors_hands(self, allow, told):
        allowance = allow(10)
        allowance.take(6)
        allowance.take(4)
        allowance.settle(4, 4)
        assert told == []
        allowance.settle(6, 6)
        assert told == ["spent"]

    def test_what_was_not_there_to_be_claimed_is_taken_again(self, allow, told):
        allowance = allow(10)
        allowance.settle(allowance.take(10), 3)
        assert allowance.take(10) == 7
        assert told == []

    def test_who_got_less_than_wanted_is_told_when_something_comes_back(self, allow, told):
        allowance = allow(10)
        allowance.take(10)
        assert allowance.take(1) == 0
        allowance.settle(10, 9)
        assert told == ["back"]
        allowance.settle(allowance.take(1), 1)
        assert told == ["back", "spent"]

    def test_pools_together_take_just_the_number(self, allow, told):
        allowance = allow(1000)

        def claim():
            claimed = 0
            while taken := allowance.take(7):
                got = taken - claimed % 2 if taken > 1 else taken
                allowance.settle(taken, got)
                claimed += got
            return claimed

        claimed = sum(in_threads(claim, claim, claim))
        while taken := allowance.take(7):  # what came back when the others had gone
            allowance.settle(taken, taken)
            claimed += taken
        assert claimed == 1000
        assert told.count("spent") == 1


class TestMemory:
    def test_what_the_process_holds(self):
        before = resident_memory()
        block = b"x" * (50 * MEGABYTE)
        assert resident_memory() - before > 40 * MEGABYTE
        assert block

    def test_where_the_system_does_not_tell(self, monkeypatch):
        real = resident_memory()
        monkeypatch.setattr(recycling, "Path", lambda path: NotThere())
        assert resident_memory() >= real // 2

    def test_below_the_limit_there_is_no_reason(self):
        assert MemoryLimit(10**6, lambda: 1)() is None

    def test_above_the_limit_there_is_one(self):
        assert "MB of memory, more than 1" in str(MemoryLimit(1, lambda: 1)())

    def test_before_the_first_job_it_is_only_told_once(self, caplog):
        limit = MemoryLimit(1, lambda: 0)
        with caplog.at_level(logging.WARNING, "django_jobs.worker"):
            assert limit() is None
            assert limit() is None
        assert len(caplog.records) == 1
        assert "--max-memory 1" in caplog.text


class NotThere:
    def read_text(self, encoding):
        raise FileNotFoundError
