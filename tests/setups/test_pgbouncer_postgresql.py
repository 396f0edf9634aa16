"""PgBouncer in transaction mode, the real program: no session of a client keeps its server connection."""

import pytest
from django.db import connection

from django_jobs.models import Job
from tests.setups.poolers import PgBouncer
from tests.waiting import eventually
from tests.workload import jobs

pytestmark = pytest.mark.postgresql

POLLED = {"PREPARED_STATEMENTS": False, "NOTIFY": False, "POLL_INTERVAL": 0.1}
# Nobody waits for a poll in this test.
TOLD = {"PREPARED_STATEMENTS": False, "LISTEN": "direct", "POLL_INTERVAL": 600}


@pytest.fixture
def pooler(site):
    settings = {**connection.settings_dict}
    pooler = PgBouncer(settings)
    pooler.start(settings)
    site.setup = {"DATABASES": {"default": pooler.changes()}}
    yield pooler
    pooler.remove()


def enqueue(site, count):
    return site.python(
        "from tests.workload import jobs, tasks\n"
        f"jobs.leave_effect.enqueue_many([()] * {count})\n"
        f"jobs.nothing.using(run_after=__import__('datetime').timedelta(seconds=1)).enqueue()\n"
        "jobs.fail.enqueue('recorded \\u2603')\n"
        "result = tasks.attempts_and_id.enqueue()\n"
        "print(result.id)"
    )


def finished():
    return not Job.objects.exclude(state__in=("completed", "failed")).exists()


def test_everything_runs_by_polling(site, pooler):
    site.setup["DJANGO_JOBS"] = POLLED
    worker = site.start("runjobs", "--concurrency", "8")
    worker.wait_for_output("Stop with Ctrl-C")
    enqueue(site, 200)

    eventually(finished, timeout=60)
    assert Job.objects.filter(state="completed").count() == 202
    assert Job.objects.get(state="failed").errors[0]["message"] == "recorded ☃"
    worker.process.terminate()
    assert worker.wait() == 0
    assert "prepared statement" not in worker.output
    assert "Traceback" not in worker.output


def test_a_direct_alias_listens(site, pooler):
    site.setup["DJANGO_JOBS"] = TOLD
    site.setup["DATABASES"]["direct"] = {}
    worker = site.start("runjobs")
    worker.wait_for_output("Stop with Ctrl-C")
    enqueue(site, 1)
    eventually(finished)
    site.python("from tests.workload import jobs; jobs.nothing.enqueue()")

    eventually(finished)


def test_nothing_stays_on_the_servers_side(site, pooler):
    """What a worker sets for its own statements would slow down the site's, on whichever connection they get."""
    site.setup["DJANGO_JOBS"] = POLLED
    enqueue(site, 50)
    site.manage("runjobs", "--drain")

    clients = [pooler.connect(connection.settings_dict) for _ in range(3)]
    try:
        for client in clients:  # each in a transaction, so that each has a server connection of its own
            client.execute("BEGIN")
            names = ("enable_seqscan", "enable_hashjoin", "jit", "statement_timeout", "TimeZone")
            shown = [client.execute(f"SHOW {name}").fetchone()[0] for name in names]
            defaults = [
                client.execute("SELECT reset_val FROM pg_settings WHERE name = %s", (name,)).fetchone()[0]
                for name in names
            ]
            assert shown == defaults
    finally:
        for client in clients:
            client.close()


def test_a_worker_killed_there_is_rescued(site, pooler):
    site.setup["DJANGO_JOBS"] = {**POLLED, "LEASE": 2, "HEARTBEAT_INTERVAL": 0.5}
    jobs.wait_until_told.enqueue()
    first = site.start("runjobs")
    eventually(lambda: Job.objects.filter(state="running").exists())
    first.process.kill()
    Job.objects.update(name=jobs.nothing.name, args=[], kwargs={})
    site.start("runjobs")

    eventually(lambda: Job.objects.filter(state="completed").exists(), timeout=60)


def test_the_doctor_knows_it(site, pooler):
    site.setup["DJANGO_JOBS"] = POLLED
    assert "transaction mode" in site.manage("jobs", "doctor")

    site.setup["DJANGO_JOBS"] = TOLD
    site.setup["DATABASES"]["direct"] = {}
    output = site.manage("jobs", "doctor")
    assert "workers listen past it, on 'direct'" in output
    assert "They arrive." in output


def test_the_check_knows_what_can_not_be(site, pooler):
    site.setup["DJANGO_JOBS"] = {"PREPARED_STATEMENTS": False}

    assert "django_jobs.W015" in site.manage("check")
