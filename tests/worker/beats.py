"""A reporter of life whose clocks, database and worker are the test's."""

import datetime as dt
from types import SimpleNamespace

from django_jobs.store.answers import Heartbeat
from django_jobs.store.rows import WorkerRow
from django_jobs.worker import heartbeat as module
from django_jobs.worker.heartbeat import Reporter
from django_jobs.worker.lost_answers import Epoch

LEASE, INTERVAL = 30.0, 5.0


class Clock:
    """Both clocks of this host, which move when told to."""

    def __init__(self, monkeypatch):
        self.seconds = 1000.0
        self.wall = dt.datetime(2031, 5, 6, tzinfo=dt.UTC)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.seconds))
        monkeypatch.setattr(module, "dt", SimpleNamespace(datetime=self, UTC=dt.UTC, timedelta=dt.timedelta))

    def now(self, zone):
        return self.wall

    def advance(self, seconds):
        self.seconds += seconds
        self.wall += dt.timedelta(seconds=seconds)


class Told:
    """The worker, as the reporter knows it: what it was told, in order."""

    leads = True

    def __init__(self):
        self.epoch = Epoch(30.0)
        self.worker_id = 7
        self.words = []
        self.error = None

    def counts(self):
        return 1, 2, 3

    def reported(self, store):
        pass

    def heard(self, heartbeat):
        self.words.append("heard")

    def cancel(self, job_ids):
        self.words.append("cancel")

    def doubt(self):
        self.words.append("doubt")

    def given_up(self, store):
        self.words.append("given up")
        if self.error is not None:
            raise self.error
        self.worker_id += 1


class Database:
    """A store that knows heartbeats alone. ``answers`` are consumed: a time, None (given up) or an error."""

    def __init__(self, clock=None):
        self.clock = clock
        self.answers = []
        self.calls = []
        self.closed = 0
        self.takes = 0.0
        self.offset = 0.0

    def heartbeat(self, worker_id, lease, running, completed, failed, skew, memory, leads, epoch):
        self.calls.append((worker_id, lease, running, completed, failed, leads))
        answer = self.answers.pop(0) if self.answers else "ok"
        now = (self.clock.wall if self.clock else dt.datetime.now(dt.UTC)) + dt.timedelta(seconds=self.offset)
        if self.clock:
            self.clock.advance(self.takes)
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            return None
        return Heartbeat(WorkerRow(worker_id, *[None] * 9), now, frozenset(), frozenset())

    def cancel_requests(self, worker_id):
        return frozenset()

    def close(self):
        self.closed += 1


class Scene:
    """A reporter whose steps the test takes."""

    def __init__(self, monkeypatch, lease=LEASE, interval=INTERVAL):
        self.clock = Clock(monkeypatch)
        self.database = Database(self.clock)
        self.told = Told()
        self.reporter = Reporter(self.told, lambda: self.database, lease, interval)
        self.reporter._until_next = lambda store: None

    def beat(self, answer="ok"):
        """One step, as the part's thread takes it; the pause after an error that it would make."""
        self.database.answers = [answer]
        try:
            self.reporter.step()
            self.reporter.failures = 0
        except Exception as error:
            self.reporter.failures += 1
            self.reporter.failed(error)
            return self.reporter.pause()
        return None
