"""When a worker has had enough."""

import logging
import subprocess
import sys
import threading

import pytest

from django_jobs.worker import recycling
from django_jobs.worker.recycling import MEGABYTE, Allowance, MemoryLimit, resident_memory
from tests.store.builders import in_threads


class Pool:
    """Claims as a producer does, from a queue with so many jobs."""

    def __init__(self, allowance: Allowance, jobs: int) -> None:
        self.allowance = allowance
        self.jobs = jobs
        self.claimed = 0
        self.asked: list[int] = []
        self.error: Exception | None = None

    def claim(self, wanted: int) -> bool:
        return self.allowance.claim(wanted, self.claim_now, lambda: self.claimed)

    def claim_now(self, limit: int) -> bool:
        self.asked.append(limit)
        got = min(limit, self.jobs)
        self.jobs -= got
        self.claimed += got
        if self.error is not None:
            raise self.error
        return got == limit


class TestAllowance:
    @pytest.fixture
    def told(self):
        return []

    @pytest.fixture
    def allow(self, told):
        return lambda jobs: Allowance(jobs, lambda: told.append("spent"))

    def test_no_more_is_claimed_than_is_allowed(self, allow, told):
        pool = Pool(allow(10), 100)
        assert [pool.claim(6), pool.claim(6), pool.claim(6)] == [True, True, False]
        assert pool.asked == [6, 4]
        assert told == ["spent"]

    def test_what_was_not_there_to_be_claimed_is_left_for_others(self, allow, told):
        allowance = allow(10)
        empty, full = Pool(allowance, 3), Pool(allowance, 100)
        assert empty.claim(10) is False
        assert told == []
        assert full.claim(10) is True
        assert (empty.claimed, full.claimed) == (3, 7)
        assert told == ["spent"]

    def test_what_was_claimed_before_an_error_counts(self, allow, told):
        pool = Pool(allow(10), 100)
        pool.error = OSError("away")
        with pytest.raises(OSError, match="away"):
            pool.claim(8)
        pool.error = None
        pool.claim(8)
        assert pool.claimed == 10
        assert told == ["spent"]

    def test_a_pool_does_not_claim_what_another_one_is_about_to(self, allow, told):
        allowance = allow(10)
        first, second = Pool(allowance, 100), Pool(allowance, 100)
        other = threading.Thread(target=second.claim, args=(10,))
        claim_now = first.claim_now

        def slowly(limit):
            other.start()
            other.join(0.2)  # it would claim now
            return claim_now(limit)

        first.claim_now = slowly
        first.claim(10)
        other.join()
        assert (first.claimed, second.claimed) == (10, 0)
        assert told == ["spent"]

    def test_pools_together_claim_just_the_number(self, allow, told):
        allowance = allow(1000)
        pools = [Pool(allowance, jobs) for jobs in (2000, 300, 0)]

        def work(pool):
            while pool.claim(7):
                pass

        in_threads(*(lambda pool=pool: work(pool) for pool in pools))
        assert sum(pool.claimed for pool in pools) == 1000
        assert told == ["spent"]


class TestMemory:
    def test_what_the_process_holds(self):
        # In a process of its own: this one may have as much to spare, left by the tests before.
        script = (
            "from django_jobs.worker.recycling import resident_memory\n"
            "before = resident_memory()\n"
            "block = b'x' * (50 * 1024 * 1024)\n"
            "print(resident_memory() - before)\n"
        )
        grown = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout
        assert 40 * MEGABYTE < int(grown) < 60 * MEGABYTE

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
