"""A logging handler that raises, as the site's own may, harms nothing but the log."""

import logging
from collections.abc import Iterator

import pytest
from django.db import OperationalError

from django_jobs.models import Job
from django_jobs.worker.logs import guard_logs
from tests.waiting import eventually
from tests.workload.jobs import fail, nothing


class Raising(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.handled = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.handled += 1
        raise RuntimeError("the collector of logs is away")


@pytest.fixture
def raising() -> Iterator[Raising]:
    logger, handler = logging.getLogger("django_jobs"), Raising()
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def test_every_part_goes_on(raising, live):
    worker = live(size=2, heartbeat_interval=0.05, poll_interval=0.05, lease=30.0)
    nothing.enqueue().wait(30)
    handled = raising.handled
    failed = set()

    def once(part, store, name):
        statement = getattr(store, name)

        def fail_once(*args, **kwargs):
            if part.name not in failed:
                failed.add(part.name)
                raise OperationalError("the database is away")
            return statement(*args, **kwargs)

        setattr(store, name, fail_once)

    (parts,) = worker.pools
    eventually(lambda: worker.reporter._store is not None)
    once(worker.reporter, worker.reporter._store, "heartbeat")
    once(parts.producer, parts.producer.store, "claim")
    once(worker.keeper, worker.keeper.store, "acquire_leadership")
    worker.keeper._renew_at = 0.0
    worker.keeper.wake()
    ids = [nothing.enqueue().id, *(fail.using(max_attempts=1).enqueue("text").id for _ in range(3))]

    eventually(lambda: Job.objects.filter(pk__in=ids, finalized_at__isnull=False).count() == 4)
    eventually(lambda: failed == {"heartbeat", "producer", "keeper"})
    assert raising.handled > handled
    eventually(lambda: worker.problem() is None and worker.statistics.dead == 3)
    assert all(part.is_alive() for part in (worker.reporter, worker.keeper, parts.producer))


def test_an_exception_that_can_not_be_told_is_told_of(caplog):
    class Untold(Exception):
        @property
        def __cause__(self):
            raise RuntimeError("no words for it")

    guard_logs()
    try:
        raise Untold
    except Untold:
        logging.getLogger("django_jobs.worker").exception("The %s failed", "part")

    assert "The part failed (what it was can't be told)" in caplog.text
