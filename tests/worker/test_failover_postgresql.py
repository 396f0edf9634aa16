"""After a failover the old server lives on, and takes no writes: connections to it are made anew."""

import pytest
from django.db import connection, connections

from django_jobs import job, registry
from tests.store.builders import wait_until
from tests.workload import jobs
from tests.workload.models import Effect

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def fail_over():
    """From the call on, all connections that exist are to a server that is read-only, and new ones to one that is not:
    so it looks to a client behind a name that has moved on."""
    name = connection.settings_dict["NAME"]

    def run(*statements):
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            cursor.execute("SELECT pg_reload_conf()")
        connection.close()

    def happen():
        run(
            f"ALTER DATABASE {name} SET default_transaction_read_only = off",
            "ALTER SYSTEM SET default_transaction_read_only = on",
        )

    yield happen
    run(
        "ALTER SYSTEM RESET default_transaction_read_only",
        f"ALTER DATABASE {name} RESET default_transaction_read_only",
    )


@pytest.fixture
def effect_before():
    """A job that has a connection of the site's open before the failover, and writes on it after that."""

    @job(name="tests.write", backoff=0, max_attempts=10)
    def write():
        Effect.objects.create(job_id=1, claims=1, pid=1)

    yield write
    registry.remove(write)


def test_a_worker_goes_on_with_the_new_server(live, fail_over, effect_before):
    worker = live(size=1, heartbeat_interval=0.2, poll_interval=0.1)
    effect_before.enqueue().wait(30)
    fail_over()

    row = effect_before.enqueue()
    row.wait(60)

    assert (row.state, Effect.objects.count()) == ("completed", 2)
    assert not worker.signs.stopping
    beats = worker.reporter.failures
    wait_until(lambda: worker.reporter.failures == 0, f"a heartbeat after {beats} that failed")
    jobs.nothing.enqueue().wait(30)


def test_a_read_only_error_gives_up_the_connection(open_store, fail_over):
    store = open_store()
    before = store.session.connection
    fail_over()
    with pytest.raises(Exception, match="read-only"):
        store.promote()

    assert before.closed
    assert store.promote() == []
    connections.close_all()
