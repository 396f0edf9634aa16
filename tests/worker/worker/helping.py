"""What the tests of whole workers share."""

import threading

from django.utils import timezone

from django_jobs.models import Job, Worker as WorkerModel
from django_jobs.store.answers import Heartbeat
from django_jobs.worker import Pool, Worker, WorkerOptions
from tests.worker.fakes import TIMEOUT

NEVER = 3600.0


class Run:
    """A worker in a thread."""

    def __init__(self, **options):
        options = {
            "pools": [Pool(("*",), 2)],
            "poll_interval": NEVER,  # wake-ups must do
            "heartbeat_interval": NEVER,
            "lease": 2 * NEVER,
            "shutdown_timeout": TIMEOUT,
            **options,
        }
        self.worker = Worker(WorkerOptions(**options))
        self.code = None
        self.error = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            self.code = self.worker.run()
        except BaseException as error:
            self.error = error

    def start(self):
        self.thread.start()
        return self

    def end(self):
        """Wait for the end."""
        self.thread.join(TIMEOUT)
        assert not self.thread.is_alive(), "the worker did not end"
        if self.error is not None:
            raise self.error
        return self.code

    def stop(self):
        self.worker.stop()
        return self.end()

    @property
    def row(self):
        return WorkerModel.objects.get(id=self.worker.worker_id)

    def beat(self):
        """Make the worker hear what its heartbeat brings, now."""
        self.worker.reporter.wake()


def states():
    return dict(Job.objects.values_list("id", "state"))


def job(row):
    return Job.objects.get(id=row.id)


def heartbeat(worker, paused=(), cancelled=()):
    return Heartbeat(worker.row, timezone.now(), frozenset(paused), frozenset(cancelled))
