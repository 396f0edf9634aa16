"""A worker whose line goes silent in the middle of a statement, and that is then told to stop: nobody answers, and
nobody says that nobody will. It ends all the same, and what the server has done meanwhile is not left behind."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest
from django.db import connection, connections

from django_jobs.models import Job, Worker
from tests.chaos.proxy import Proxy
from tests.conftest import ManageProcess
from tests.waiting import eventually
from tests.workload import jobs

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]

SHORT = {"DJANGO_JOBS": '{"STATEMENT_TIMEOUT": 1, "POLL_INTERVAL": 0.2}'}


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    settings = connections.settings["default"]
    proxy = Proxy(settings["HOST"], int(settings["PORT"]))
    yield proxy
    proxy.close()


@pytest.fixture
def locked() -> Iterator[Callable[[], None]]:
    """The table of workers, for a while: statements that read it stand still on the server. Called, it ends."""
    other = connection.copy()
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("LOCK TABLE django_jobs_worker IN ACCESS EXCLUSIVE MODE")
    yield other.rollback
    other.close()


def waits(word: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s",
            [f"%{word}%"],
        )
        return bool(cursor.fetchone()[0])


#: Whether the network recovers before the worker has ended: that it does not takes the worker's whole patience.
RECOVERS = [True, False] if os.environ.get("DJANGO_JOBS_TEST_ALL_FAULTS", "0") != "0" else [True]


@pytest.mark.parametrize("recovers", RECOVERS)
def test_sigterm_while_a_claim_is_on_a_line_that_went_silent(
    run_manage: Callable[..., ManageProcess],
    proxy: Proxy,
    database_url: str,
    request: pytest.FixtureRequest,
    recovers: bool,
) -> None:
    address = database_url.replace(f":{proxy.target[1]}/", f":{proxy.port}/")
    assert address != database_url
    worker = run_manage("runjobs", env={"DATABASE_URL": address, **SHORT})
    worker.wait_for_output("Working on")
    jobs.nothing.enqueue().wait(30)
    unlock = request.getfixturevalue("locked")
    ids = [job.id for job in jobs.nothing.enqueue_many([()] * 20)]
    eventually(lambda: waits("state = 'running'"))

    proxy.turn("silent")
    unlock()
    eventually(lambda: Job.objects.filter(pk__in=ids, state="running").count() == 20)
    worker.send_signal(signal.SIGTERM)
    worker.wait_for_output("its connection is cut")
    if recovers:
        proxy.heal(forget=True)  # new lines are well; those that there are stay silent

    assert worker.wait() == 0
    left = {*Job.objects.filter(pk__in=ids).values_list("state", "attempt")}
    if recovers:
        assert left == {("available", 0)}
        assert Worker.objects.get().stopped_at is not None
    else:
        assert left == {("running", 1)}
        assert "Its jobs run again after its lease" in worker.output
