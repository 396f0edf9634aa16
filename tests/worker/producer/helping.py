"""What the producer's tests share."""

from types import SimpleNamespace

from django_jobs.worker.buffer import Buffer
from django_jobs.worker.lost_answers import Epoch
from django_jobs.worker.options import Pool
from django_jobs.worker.producer import Producer
from tests.worker.fakes import WORKER, FakeStore, rows


class Scene:
    """A producer with all that is around it, in memory. Steps are taken by the test, or by the part's own thread."""

    def __init__(self, *queues, size=4, elsewhere=(), jobs=(), ahead=True):
        self.store = FakeStore(jobs)
        self.buffer = Buffer()
        self.done, self.seconds = 0, 0.0
        self.situation = SimpleNamespace(
            worker_id=WORKER,
            epoch=Epoch(30.0),
            may_claim=True,
            trusts_claims=True,
            paused=frozenset(),
            poll_interval=3600.0,
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


def mixed(*counts):
    """Jobs of the queues a, b, c ...; ids say which."""
    jobs = []
    for position, count in enumerate(counts):
        jobs += rows(count, first=1000 * (position + 1), queue_name="abcdefgh"[position])
    return jobs
