"""What the tests of the keeper share: rows whose time has come."""

from django.db import connection

from django_jobs.models import Job
from django_jobs.store.rows import NewJob

# The leadership lasts half of this.
LEASE = 1.0


def states():
    return dict(Job.objects.values_list("id", "state"))


def insert(store, count=1, **options):
    return [job.id for job in store.insert_many([NewJob(**{"name": "tests.job", **options})] * count)]


def age(ids, **times):
    """Move moments of rows into the past: by that many seconds."""
    with connection.cursor() as cursor:
        for column, seconds in times.items():
            if connection.vendor == "postgresql":
                change = f"{column} - interval '{seconds} seconds'"
            else:
                change = f"strftime('%Y-%m-%d %H:%M:%f', {column}, '-{seconds} seconds') || '000'"
            cursor.execute(
                f"UPDATE django_jobs_job SET {column} = {change} WHERE id IN ({','.join(map(str, ids))})"
            )


def lost_worker(store, jobs=1, **options):
    """The ids of jobs that a worker held whose lease has run out."""
    worker = store.register_worker("host", 1, "[]", 4, "1", -1.0)
    ids = insert(store, jobs, **options)
    assert len(store.claim(worker.id, "default", jobs)) == jobs
    return ids
