"""A job that is running."""

import pytest

from django_jobs import JobContext
from django_jobs.store import django_store
from django_jobs.worker.signs import Signs


@pytest.fixture
def running(transactional_db, define):
    """The context of a job that a worker has claimed; the statements run in this thread."""
    definition = define(lambda: None)
    store = django_store("default")
    worker = store.register_worker("host", 1, "[]", 1, "1", 300.0)
    definition.enqueue()
    (job,) = store.claim(worker.id, "default", 1)
    signs = Signs("default")
    signs.worker_id = worker.id
    return JobContext(job, definition.name, signs)
