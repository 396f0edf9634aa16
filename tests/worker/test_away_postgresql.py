"""The server is stopped, and is away for longer than the lease, while a worker idles, runs a job and finishes one.

``DJANGO_JOBS_TEST_AWAY`` is for how many seconds, at least.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import environ
import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from django_jobs.models import Job, Worker
from tests.conftest import ManageProcess
from tests.servers import PostgresServer, ServerError
from tests.waiting import eventually
from tests.workload import jobs
from tests.workload.models import Effect

pytestmark = pytest.mark.postgresql

AWAY = float(os.environ.get("DJANGO_JOBS_TEST_AWAY", "2"))
# Polling would hide a wake-up that is lost: there is none.
SETTINGS = {"DJANGO_JOBS": '{"LEASE": 2, "HEARTBEAT_INTERVAL": 0.5, "POLL_INTERVAL": 600}'}
# The longest pause between two tries is 10 s.
PATIENCE = 30.0


@pytest.fixture
def server(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    """A server of its own, which has become the site's, with the tables that the test needs."""
    try:
        server = PostgresServer(settings={"shared_preload_libraries": ""})
    except ServerError as error:  # DATABASE_URL names one, and there is none to be started
        pytest.skip(str(error))
    try:
        server.start()
        connection.close()
        with monkeypatch.context() as patched:
            address = environ.Env.db_url_config(server.url())
            for name in ("HOST", "PORT", "USER", "PASSWORD", "NAME"):
                patched.setitem(connection.settings_dict, name, address[name])
            make_tables()
            yield server
            connection.close()
    finally:
        server.remove()


def make_tables() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate([node for node in executor.loader.graph.leaf_nodes() if node[0] == "django_jobs"])
    with connection.schema_editor() as editor:
        editor.create_model(Effect)


@contextmanager
def held(job_id: int) -> Iterator[None]:
    """Hold the job's row, until the block or the server ends: its outcome can't be stored meanwhile."""
    other = connection.copy()
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_jobs_job WHERE id = %s FOR UPDATE", [job_id])
        yield
    finally:
        other.close()


def is_waited_for() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return bool(cursor.fetchone()[0])


def test_a_worker_outlasts_a_server_that_is_away_for_longer_than_its_lease(
    server: PostgresServer, run_manage: Callable[..., ManageProcess], tmp_path: Path
) -> None:
    running, finishing = tmp_path / "running", tmp_path / "finishing"
    worker = run_manage(
        "runjobs", "--queues", "default:1,slow:1,mail:1", env={"DATABASE_URL": server.url(), **SETTINGS}
    )
    jobs.leave_effect.enqueue().wait(PATIENCE)  # its executor has a connection of the site's open
    once = {"max_attempts": 1}
    first = jobs.wait_for_file.using(**once).enqueue(str(running))
    second = jobs.wait_for_file.using(queue_name="slow", **once).enqueue(str(finishing))
    eventually(lambda: all(Path(f"{path}.begun").exists() for path in (running, finishing)))
    waiting = jobs.leave_effect.using(**once).enqueue_many([()] * 20)

    with held(second.id):
        finishing.touch()
        eventually(is_waited_for)  # the statement that stores it is under way
        said = len(worker.output)
        since = time.monotonic()
        server.stop()
    connection.close()
    eventually(lambda: "could not renew its lease in time" in worker.output[said:], PATIENCE)
    # It has taken back what was claimed ahead, so there is nothing to run but what runs.
    running.touch()
    eventually(Path(f"{running}.ended").exists)
    threading.Event().wait(max(0.0, since + AWAY - time.monotonic()))
    assert worker.process.poll() is None, worker.output
    server.start()

    for job in (first, second, *waiting):
        job.wait(PATIENCE)
    later = [
        jobs.nothing.using(queue_name=name).enqueue().wait(PATIENCE) for name in ("default", "slow", "mail")
    ]
    everything = 1 + len([first, second, *waiting, *later])
    assert Job.objects.filter(state="completed", attempt=1, errors=None).count() == everything
    assert Job.objects.count() == everything
    # It was not taken for lost: so nothing that had begun was begun again.
    assert Worker.objects.get().lost_at is None
    assert set(Job.objects.filter(id__in=[first.id, second.id]).values_list("claims", flat=True)) == {1}
    assert Effect.objects.values("job_id").distinct().count() == Effect.objects.count() == 1 + len(waiting)

    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert f"Stopped. {everything} completed, 0 failed attempts (0 for good)." in worker.output
