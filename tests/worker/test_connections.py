"""Django's connections in an executor thread: whatever a job does to them, the next job has sound ones."""

import threading
import types

import pytest
from asgiref.sync import sync_to_async
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.backends.signals import connection_created

from django_jobs import registry
from django_jobs.worker import connections as kept
from django_jobs.worker.attempt import Runner
from django_jobs.worker.buffer import Buffer
from django_jobs.worker.executor import Executors
from django_jobs.worker.signs import Signs
from tests.waiting import eventually
from tests.worker.breaking import (
    BREAKING,
    begin,
    begin_and_fail,
    end_own_server_process,
    end_own_server_process_in_a_transaction,
    end_own_server_process_unheard,
    exit_in_a_transaction,
    swallow_an_error,
    terminate,
)
from tests.worker.fakes import row
from tests.workload.models import Effect


class OneThread:
    """One executor thread, and the functions that it is made to run as jobs."""

    def __init__(self, define):
        self.define = define
        self.ended = []
        self.executors = Executors(Buffer(), Runner(registry, Signs()), self.ended.append, 1)

    def run(self, function):
        """The outcome, and with it the error, of ``function`` run as a job."""
        definition = self.define(function)
        count = len(self.ended)
        self.executors.buffer.put([row(count + 1, name=definition.name)])
        eventually(lambda: len(self.ended) > count)
        return self.ended[-1]

    def must_complete(self, function):
        ended = self.run(function)
        assert ended.outcome.kind == "completed", ended.trace
        return ended


@pytest.fixture
def thread(transactional_db, define, started):
    thread = OneThread(define)
    started(thread.executors)
    return thread


@pytest.fixture
def opened():
    """The connections that Django has opened since."""
    raw = []

    def note(connection, **kwargs):
        raw.append(connection.connection)

    connection_created.connect(note)
    yield raw
    connection_created.disconnect(note)


def is_closed(raw):
    if connection.vendor == "postgresql":
        return raw.closed
    try:
        return raw.total_changes < 0
    except Exception:
        return True


def write():
    """What a job does on a sound connection: its write is committed, at once."""
    assert not connection.in_atomic_block
    assert connection.get_autocommit()
    Effect.objects.create(job_id=1, claims=1, pid=1)


@pytest.mark.parametrize("break_it", BREAKING, ids=lambda function: function.__name__)
def test_the_next_job_has_a_sound_connection(thread, break_it):
    raising = (
        begin_and_fail,
        exit_in_a_transaction,
        end_own_server_process,
        end_own_server_process_in_a_transaction,
    )

    ended = thread.run(break_it)
    assert ended.outcome.kind == ("retry" if break_it in raising else "completed"), ended.trace
    assert ended.outcome.error_class != "django_jobs.WorkerError"
    for _ in range(2):
        thread.must_complete(write)

    # What was not committed is rolled back, and holds no lock; what the next job wrote is there.
    assert list(Effect.objects.values_list("job_id", flat=True)) == [1, 1]


@pytest.mark.parametrize("break_it", BREAKING, ids=lambda function: function.__name__)
def test_the_same_after_a_job_that_used_the_connection_well(thread, break_it):
    thread.must_complete(write)
    thread.run(break_it)
    thread.must_complete(write)

    assert list(Effect.objects.values_list("job_id", flat=True)) == [1, 1]


def test_the_connection_is_kept_from_job_to_job(thread, opened, settings):
    """CONN_MAX_AGE is 0 by default, and does not mean a new connection for each job."""
    assert connection.settings_dict["CONN_MAX_AGE"] == 0

    for _ in range(10):
        thread.must_complete(write)

    assert len(opened) == 1


def test_an_error_that_did_not_break_the_connection_costs_none(thread, opened):
    thread.must_complete(write)
    for _ in range(3):
        thread.must_complete(swallow_an_error)
        thread.must_complete(write)

    assert len(opened) == 1


def test_a_connection_older_than_conn_max_age_is_not_used_on(thread, opened):
    """Also where the executor is never idle."""

    def write_on_an_old_connection():
        write()
        wrapper = connections[DEFAULT_DB_ALIAS]
        wrapper.settings_dict = {**wrapper.settings_dict, "CONN_MAX_AGE": 600}
        wrapper.close_at = 0.0

    thread.must_complete(write_on_an_old_connection)
    thread.must_complete(write)

    assert len(opened) == 2
    assert is_closed(opened[0])


def test_async_jobs_use_and_leave_the_connections_of_their_thread_as_others_do(thread, opened):
    async def awrite():
        await Effect.objects.acreate(job_id=1, claims=1, pid=1)

    async def abegin():
        await sync_to_async(begin)()

    for _ in range(3):
        thread.must_complete(awrite)
    thread.must_complete(write)
    assert len(opened) == 1

    thread.must_complete(abegin)
    thread.must_complete(write)
    assert len(opened) == 2
    assert list(Effect.objects.values_list("job_id", flat=True)) == [1] * 5


def test_a_job_without_a_query_opens_no_connection(thread, opened):
    thread.must_complete(lambda: None)

    assert opened == []


def test_an_idle_thread_closes_its_connections(thread, opened, monkeypatch):
    monkeypatch.setattr(kept, "KEEP_SECONDS", 0.01)
    thread.must_complete(write)

    eventually(lambda: is_closed(opened[0]))
    thread.must_complete(write)
    assert len(opened) == 2


def test_a_thread_that_ends_closes_its_connections(thread, opened):
    thread.must_complete(write)
    thread.executors.stop()

    assert thread.executors.join(30)
    assert is_closed(opened[0])


@pytest.mark.postgresql
@pytest.mark.parametrize("trusted", [0.0, 60.0])
def test_a_connection_that_ended_while_the_thread_was_idle_is_not_used(thread, monkeypatch, trusted):
    """Noticed on the socket at once; or, where that says nothing, by asking after a while of silence."""
    monkeypatch.setattr(kept, "TRUST_SECONDS", trusted)
    if not trusted:
        monkeypatch.setattr(kept, "_has_input", lambda descriptor: False)
    pids = []

    def note():
        write()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            pids.append(cursor.fetchone()[0])

    thread.must_complete(note)
    eventually(lambda: thread.executors.idle)
    terminate(pids[0])
    thread.must_complete(note)

    assert pids[0] != pids[1]


def test_queries_are_not_logged_on_and_on(thread, settings):
    settings.DEBUG = True
    counts = []

    def job():
        counts.append(len(connection.queries_log))
        write()
        counts.append(len(connection.queries_log))

    thread.must_complete(job)
    thread.must_complete(job)

    assert counts[0] == counts[2] == 0
    assert counts[1] == counts[3] > 0


def test_a_site_without_autocommit_has_its_connection_kept_and_its_leftovers_rolled_back(
    thread, opened, monkeypatch
):
    monkeypatch.setitem(connections.settings[DEFAULT_DB_ALIAS], "AUTOCOMMIT", False)

    def commit():
        Effect.objects.create(job_id=1, claims=1, pid=1)
        transaction.commit()

    def forget():
        Effect.objects.create(job_id=2, claims=1, pid=1)

    def enter():
        transaction.atomic(savepoint=False).__enter__()

    thread.must_complete(commit)
    thread.must_complete(commit)
    assert len(opened) == 1
    for leave in (forget, enter):
        thread.must_complete(leave)
        thread.must_complete(commit)

    assert list(Effect.objects.values_list("job_id", flat=True)) == [1] * 4


class Pool:
    """As much of psycopg_pool's ConnectionPool as Django uses."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.out = 0
        self.returned = []

    def open(self):
        pass

    def getconn(self):
        self.out += 1
        import psycopg

        raw = psycopg.connect(**self.parameters, autocommit=True)
        raw._pool = self
        return raw

    def putconn(self, raw):
        raw._pool = None
        self.out -= 1
        self.returned.append(not raw.closed)
        raw.close()


@pytest.mark.postgresql
def test_a_connection_of_a_pool_is_put_back_after_each_job(thread, monkeypatch):
    """There are fewer than executors. One that is broken is put back too, closed: else the pool counts it for ever."""
    parameters = connection.get_connection_params()
    pool = Pool(parameters)
    options = {**connections.settings[DEFAULT_DB_ALIAS]["OPTIONS"], "pool": True}
    monkeypatch.setitem(connections.settings[DEFAULT_DB_ALIAS], "OPTIONS", options)
    monkeypatch.setitem(type(connections[DEFAULT_DB_ALIAS])._connection_pools, DEFAULT_DB_ALIAS, pool)

    for job in (write, begin, write, end_own_server_process_unheard, write):
        thread.must_complete(job)

    assert pool.out == 0
    # The fourth is the one that the server process was ended with.
    assert pool.returned == [True, False, True, True, False, True]


@pytest.mark.parametrize("usable", [True, False])
def test_after_an_error_a_connection_of_another_database_is_asked_whether_it_is_usable(usable):
    wrapper = types.SimpleNamespace(
        vendor="mysql", in_atomic_block=False, closed_in_transaction=False, needs_rollback=False, connection=object(),
        autocommit=True, errors_occurred=True, is_usable=lambda: usable, settings_dict={"AUTOCOMMIT": True},
    )  # fmt: skip

    assert kept._sound(wrapper) is usable
    assert wrapper.errors_occurred is not usable


def test_a_connection_that_can_not_be_closed_is_forgotten_all_the_same():
    def fail():
        raise OSError("no")

    done = threading.Event()
    left = []

    def in_thread():
        wrapper = connections[DEFAULT_DB_ALIAS]
        wrapper.connection = types.SimpleNamespace(close=fail)
        kept.discard(wrapper)
        left.append((wrapper.connection, connections.all(initialized_only=True)))
        done.set()

    threading.Thread(target=in_thread).start()
    assert done.wait(30)

    assert left == [(None, [])]
