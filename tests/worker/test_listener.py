"""The listener: it wakes who waits for work, and says when it can't."""

import sqlite3
import threading
from types import SimpleNamespace

import pytest
from django.db import connection, transaction
from django.db.utils import OperationalError

from django_jobs.store.rows import NewJob
from django_jobs.worker import listener as module, parts
from django_jobs.worker.listener import FileListener, NotifyListener
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT, Gate
from tests.workload.models import Effect

postgresql = pytest.mark.postgresql
sqlite = pytest.mark.sqlite


class Hints(list):
    def __call__(self, hint):
        self.append(hint)


@pytest.fixture
def hints():
    return Hints()


@pytest.fixture
def opened():
    return []


@pytest.fixture
def listener(open_store, database_name, hints, opened, started, monkeypatch):
    """The listener of the database, healthy, with its first hint gone."""
    monkeypatch.setattr(parts, "pause_after", lambda failures: 0.0)

    def open_noted():
        opened.append(open_store())
        return opened[-1]

    if database_name == "postgresql":
        listener = NotifyListener(open_noted, hints)
    else:
        listener = FileListener(open_noted, hints, 0.005)
    started(listener)
    eventually(lambda: listener.healthy)
    eventually(lambda: hints == [""])
    hints.clear()
    return listener


def backend(store):
    return store.session.connection.info.backend_pid


def kill(store, pid):
    store.session.connection.execute("SELECT pg_terminate_backend(%s::integer, 10000)", (pid,))


# -- both -------------------------------------------------------------------------------------------------------------


def test_what_happened_before_it_listened_is_looked_at(open_store, database_name, hints, started):
    """The first hint is: anything may have happened."""
    store = open_store()
    store.insert(NewJob("tests.job"))
    make = NotifyListener if database_name == "postgresql" else lambda *args: FileListener(*args, 0.005)
    started(make(open_store, hints))

    eventually(lambda: hints == [""])


def test_a_committed_job_is_heard_of(listener, store, hints):
    store.insert(NewJob("tests.job", queue_name="mail"))

    eventually(lambda: hints)
    assert hints[0] in ("+mail", "")


def test_a_job_in_a_transaction_is_heard_of_when_it_is_committed(listener, hints):
    from django_jobs.store import django_store

    with transaction.atomic():
        django_store("default").insert(NewJob("tests.job", queue_name="mail"))
        threading.Event().wait(0.05)
        assert hints == []

    eventually(lambda: hints)


def test_it_is_healthy_only_while_it_runs(listener):
    listener.stop()

    assert listener.join(TIMEOUT)
    assert not listener.healthy


def test_started_again_it_looks_at_everything_again(listener, store, hints):
    listener.stop()
    assert listener.join(TIMEOUT)
    store.insert(NewJob("tests.job"))
    hints.clear()

    listener.start()
    eventually(lambda: "" in hints)
    eventually(lambda: listener.healthy)
    hints.clear()
    store.insert(NewJob("tests.job"))
    eventually(lambda: hints)


# -- PostgreSQL -------------------------------------------------------------------------------------------------------


@postgresql
def test_each_kind_of_hint(listener, store, hints):
    worker = store.register_worker("host", 1, "[]", 4, "1", 30.0)
    store.insert(NewJob("tests.job", queue_name="ä queue"))
    eventually(lambda: hints == ["+ä queue"])

    store.insert(NewJob("tests.job", delay=3600.0))
    eventually(lambda: hints[1:] == ["@"])

    (job,) = store.claim(worker.id, "ä queue", 1)
    store.cancel([job.id])
    eventually(lambda: hints[2:] == [f"!{worker.id}"])


@postgresql
def test_many_hints_in_one_packet_all_arrive(listener, store, hints):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify('django_jobs', '+' || i) FROM generate_series(1, 500) AS i")

    eventually(lambda: len(hints) == 500)
    assert sorted(hints) == sorted(f"+{number}" for number in range(1, 501))


@postgresql
def test_a_killed_connection_is_noticed_made_anew_and_all_is_looked_at_again(
    listener, store, hints, opened, caplog
):
    seen = []
    failed = listener.failed

    def note(error):
        failed(error)
        seen.append(listener.healthy)

    listener.failed = note
    kill(store, backend(opened[0]))

    eventually(lambda: seen)
    assert not any(seen), "in between, the worker must know that wake-ups may be missed"
    eventually(lambda: listener.healthy)
    eventually(lambda: hints == [""])
    store.insert(NewJob("tests.job", queue_name="mail"))
    eventually(lambda: hints[1:] == ["+mail"])
    assert "The listener has a database error" in caplog.text


@postgresql
def test_a_silent_connection_is_asked_whether_the_server_is_there(
    open_store, store, hints, opened, started, monkeypatch
):
    """Each time that nothing was heard for a while; without a reconnect, and without a hint."""
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.01)

    def open_noted():
        opened.append(open_store())
        return opened[-1]

    started(NotifyListener(open_noted, hints))
    eventually(lambda: opened and opened[0].session.statements > 5)

    assert hints == [""]
    assert opened[0].session.connects == 1


@postgresql
def test_a_stop_ends_the_wait_for_a_notification(listener, caplog):
    """It would last for CHECK_SECONDS."""
    assert module.CHECK_SECONDS >= 10
    listener.stop()

    assert listener.join(5)
    assert "database error" not in caplog.text


@postgresql
def test_a_stop_while_the_connection_is_broken_does_not_fail(
    open_store, hints, opened, store, started, monkeypatch
):
    """A worker that is stopped during an outage must stop in order."""
    monkeypatch.setattr(parts, "pause_after", lambda failures: 3600.0)

    def open_noted():
        opened.append(open_store())
        return opened[-1]

    listener = started(NotifyListener(open_noted, hints))
    eventually(lambda: listener.healthy)
    kill(store, backend(opened[0]))
    eventually(lambda: not listener.healthy)

    listener.stop()
    assert listener.join(5)


@postgresql
def test_a_stop_before_there_is_a_connection_is_not_missed(open_store, hints, started):
    gate = Gate()

    def open_late():
        gate()
        return open_store()

    listener = started(NotifyListener(open_late, hints))
    gate.wait()
    listener.stop()
    gate.open()

    assert listener.join(5)


@postgresql
def test_a_server_that_can_not_be_reached_is_tried_again(hints, open_store, started, monkeypatch):
    pauses = []
    monkeypatch.setattr(parts, "pause_after", lambda failures: pauses.append(failures) or 0.0)
    store = open_store()
    real = store.session._open

    def fail():
        if len(pauses) < 3:
            raise OperationalError("connection refused")
        return real()

    store.session._open = fail
    listener = started(NotifyListener(lambda: store, hints))
    eventually(lambda: listener.healthy)

    assert pauses == [1, 2, 3]
    assert hints == [""]


# -- SQLite -----------------------------------------------------------------------------------------------------------


@sqlite
def test_every_commit_of_another_connection_is_heard_of(listener, store, hints):
    Effect.objects.create(job_id=1, claims=1, pid=1)
    eventually(lambda: hints == [""])

    store.insert(NewJob("tests.job"))
    eventually(lambda: hints == ["", ""])


@sqlite
def test_where_nothing_is_committed_nothing_is_heard_of(listener, store, hints, opened):
    looks = []
    real = opened[0].session.data_version
    opened[0].session.data_version = lambda: looks.append(1) or real()
    store.waiting_queues()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        Effect.objects.create(job_id=1, claims=1, pid=1)
        raise ZeroDivisionError

    eventually(lambda: len(looks) > 5)
    assert hints == []


def numbers(*answers):
    """A store whose data_version gives these, one after the other, errors too; the last one for ever."""
    left = list(answers)

    def data_version():
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return SimpleNamespace(session=SimpleNamespace(data_version=data_version), close=lambda: None)


def test_a_number_that_stays_is_no_hint_and_one_that_moves_is_one(hints, started):
    started(FileListener(lambda: numbers(5, 5, 5, 6, 6, 4), hints, 0.001))

    eventually(lambda: len(hints) == 3)


@pytest.mark.parametrize(
    "error", [OperationalError("locked"), sqlite3.OperationalError("locked"), OSError("gone")]
)
def test_after_an_error_everything_is_looked_at_whatever_the_number_says(hints, started, monkeypatch, error):
    """It is a number of the connection's, and the next connection may begin with the same."""
    healthy = []
    listener = FileListener(lambda: numbers(5, error, 5), hints, 0.001)
    monkeypatch.setattr(parts, "pause_after", lambda failures: healthy.append(listener.healthy) or 0.0)
    started(listener)

    eventually(lambda: len(hints) == 2)
    assert healthy == [False]
    eventually(lambda: listener.healthy)


def test_on_another_connection_everything_is_looked_at_and_its_file_is_watched(hints, started):
    """The file was replaced: the number may be the same, and nobody writes to the old file."""
    store = numbers(5)
    store.session.connects = 1
    listener = started(FileListener(lambda: store, hints, 0.001))
    eventually(lambda: hints == [""] and listener.watch is not None)
    before = listener.watch

    store.session.connects = 2
    eventually(lambda: hints == ["", ""] and listener.watch not in (None, before))


def test_started_again_a_file_listener_looks_at_everything_whatever_the_number_says(hints, started):
    listener = started(FileListener(lambda: numbers(5), hints, 0.001))
    eventually(lambda: hints == [""])
    listener.stop()
    assert listener.join(TIMEOUT)
    listener.start()

    eventually(lambda: hints == ["", ""])


def test_a_listener_that_never_connected_can_be_stopped(hints):
    for listener in (NotifyListener(lambda: None, hints), FileListener(lambda: None, hints, 1.0)):
        listener.stop()
        assert listener.join(0)
        listener.close()
