"""What a job may do to Django's connections; each in a function that is run as one."""

import contextlib

import pytest
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections, transaction
from django.db.utils import InterfaceError

from tests.workload.models import Effect


def begin():
    """Enter a transaction, and never leave it."""
    transaction.atomic().__enter__()
    Effect.objects.create(job_id=2, claims=1, pid=1)


def begin_and_fail():
    begin()
    raise ValueError("no")


def exit_in_a_transaction():
    begin()
    raise SystemExit(3)


def abort():
    """An aborted transaction."""
    begin()
    with contextlib.suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere")


def begin_in_sql():
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO workload_effect (job_id, claims, pid) VALUES (2, 1, 1)")


def turn_autocommit_off():
    transaction.set_autocommit(False)
    Effect.objects.create(job_id=2, claims=1, pid=1)


def turn_autocommit_off_and_do_nothing():
    transaction.set_autocommit(False)


def close():
    connection.ensure_connection()
    connection.close()


def close_in_a_transaction():
    begin()
    connection.close()


def close_behind_djangos_back():
    connection.ensure_connection()
    connection.connection.close()


def close_behind_djangos_back_in_a_transaction():
    begin()
    connection.connection.close()


def swallow_an_error():
    with contextlib.suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere")


def leave_a_savepoint():
    begin()
    transaction.atomic().__enter__()


def mark_for_rollback():
    begin()
    transaction.set_rollback(True)


def forget_the_wrapper():
    connection.ensure_connection()
    connection.close()
    del connections[DEFAULT_DB_ALIAS]


EVERYWHERE = [
    begin,
    begin_and_fail,
    exit_in_a_transaction,
    abort,
    begin_in_sql,
    turn_autocommit_off,
    turn_autocommit_off_and_do_nothing,
    close,
    close_in_a_transaction,
    close_behind_djangos_back,
    close_behind_djangos_back_in_a_transaction,
    swallow_an_error,
    leave_a_savepoint,
    mark_for_rollback,
    forget_the_wrapper,
]


def end_own_server_process():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def end_own_server_process_in_a_transaction():
    begin()
    end_own_server_process()


def end_own_server_process_unheard():
    """It is gone, and no statement has met that yet."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]
    terminate(pid)


def end_own_server_process_and_swallow_the_error():
    with contextlib.suppress(DatabaseError, InterfaceError):
        end_own_server_process()


def terminate(pid):
    """End a server process, and wait until it is gone."""
    other = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
            assert cursor.fetchone() == (True,)
    finally:
        other.close()


def leave_a_copy_half_done():
    connection.ensure_connection()
    connection.connection.pgconn.exec_(b"COPY workload_effect TO STDOUT")


POSTGRESQL = [
    end_own_server_process, end_own_server_process_in_a_transaction, end_own_server_process_unheard,
    end_own_server_process_and_swallow_the_error, leave_a_copy_half_done,
]  # fmt: skip

BREAKING = [*EVERYWHERE, *[pytest.param(function, marks=pytest.mark.postgresql) for function in POSTGRESQL]]
