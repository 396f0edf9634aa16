"""The buffer: jobs pass in order, nobody sleeps through one, and what is not taken can be taken back."""

import threading
from concurrent.futures import ThreadPoolExecutor

from django_jobs.worker.buffer import Buffer
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, row, rows


def ids(jobs):
    return [job.id for job in jobs]


def test_jobs_come_out_in_the_order_they_were_put():
    buffer = Buffer()
    buffer.put(rows(3))
    buffer.put(rows(2, first=4))

    assert [buffer.wait(0).id for _ in range(5)] == [1, 2, 3, 4, 5]
    assert buffer.wait(0) is None


def test_an_executor_that_waits_is_woken_by_a_job():
    buffer = Buffer()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(buffer.wait, TIMEOUT)
        eventually(lambda: buffer.waiting == 1)
        buffer.put([row(5)])

        assert waiting.result(TIMEOUT).id == 5
    assert buffer.waiting == 0


def test_each_job_wakes_an_executor_of_its_own():
    buffer = Buffer()
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(buffer.wait, TIMEOUT) for _ in range(4)]
        eventually(lambda: buffer.waiting == 4)
        buffer.put(rows(3))
        eventually(lambda: buffer.waiting == 1)
        buffer.put([row(4)])

        assert sorted(job.result(TIMEOUT).id for job in waiting) == [1, 2, 3, 4]


def test_to_close_it_ends_every_wait_and_keeps_the_jobs():
    buffer = Buffer()
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(buffer.wait) for _ in range(2)]
        eventually(lambda: buffer.waiting == 2)
        buffer.close()

        assert [job.result(TIMEOUT) for job in waiting] == [None, None]
    buffer.put(rows(2))
    assert buffer.closed
    assert buffer.wait(0) is None
    assert ids(buffer.take_back()) == [1, 2]


def test_a_closed_buffer_can_be_opened_again():
    buffer = Buffer()
    buffer.close()
    buffer.open()
    buffer.put([row(1)])

    assert buffer.wait(0).id == 1


def test_all_jobs_are_taken_back_or_only_the_unwanted_and_the_rest_keeps_its_order():
    buffer = Buffer()
    buffer.put(rows(6))

    assert ids(buffer.take_back(lambda job: job.id % 2 == 0)) == [2, 4, 6]
    assert ids(buffer.jobs) == [1, 3, 5]
    assert ids(buffer.take_back()) == [1, 3, 5]
    assert buffer.take_back() == []


def test_the_producer_is_told_when_an_executor_finds_nothing_and_not_while_there_is_something():
    buffer = Buffer()
    told = []
    buffer.on_low = lambda: told.append(buffer.low_told)

    buffer.put([row(1)])
    buffer.wait(0)
    assert told == []
    buffer.wait(0)
    assert told == [True]


def test_who_takes_a_job_no_longer_counts_as_waiting_when_the_buffer_is_seen_empty():
    """Else a worker that drains sees nothing buffered and everybody idle, while a job is on its way."""

    class Jobs(type(Buffer().jobs)):
        def popleft(self):
            seen.append(buffer.waiting)
            return super().popleft()

    seen = []
    buffer = Buffer()
    buffer.jobs = Jobs()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(buffer.wait, TIMEOUT)
        eventually(lambda: buffer.waiting == 1)
        buffer.put([row(1)])
        waiting.result(TIMEOUT)

    assert seen == [0]


def test_to_lose_a_job_to_a_faster_executor_is_not_the_end_of_the_wait():
    """An executor that runs takes without the lock, and one that is woken may come too late."""

    class Jobs(type(Buffer().jobs)):
        stolen = 0

        def popleft(self):
            if not self.stolen:
                self.stolen += 1
                super().popleft()
            return super().popleft()

    buffer = Buffer()
    buffer.jobs = Jobs()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(buffer.wait, TIMEOUT)
        eventually(lambda: buffer.waiting == 1)
        buffer.put([row(1)])
        eventually(lambda: buffer.jobs.stolen)
        buffer.put([row(2)])

        assert waiting.result(TIMEOUT).id == 2


def test_no_job_is_lost_or_taken_twice_by_many_threads():
    """Fast takers, waiting ones and one that takes back, all at once."""
    buffer = Buffer()
    count = 3000
    taken: list[int] = []
    back: list[int] = []
    done = threading.Event()

    def take():
        mine = []
        while True:
            try:
                mine.append(buffer.jobs.popleft().id)
            except IndexError:
                job = buffer.wait(0.05)
                if job is not None:
                    mine.append(job.id)
                elif done.is_set():
                    break
        taken.extend(mine)

    def take_back():
        while not done.wait(0.0005):
            unwanted = buffer.take_back(lambda job: job.id % 7 == 0)
            back.extend(ids(unwanted))

    threads = [threading.Thread(target=take, daemon=True) for _ in range(6)]
    threads.append(threading.Thread(target=take_back, daemon=True))
    for thread in threads:
        thread.start()
    for first in range(1, count, 10):
        buffer.put(rows(10, first))
    eventually(lambda: not buffer.jobs)
    done.set()
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive()

    assert sorted(taken + back) == list(range(1, count + 1))
