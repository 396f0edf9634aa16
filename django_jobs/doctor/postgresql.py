"""What is looked at on PostgreSQL."""

from __future__ import annotations

import datetime as dt
import importlib
import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django.db import connections

from django_jobs import conf
from django_jobs.doctor.common import expected_indexes
from django_jobs.doctor.findings import ERROR, OK, WARNING, Finding
from django_jobs.serialization import parse_timestamp
from django_jobs.store.postgresql_session import CHANNEL, PostgreSQLSession
from django_jobs.store.statements import Statement
from django_jobs.texts import text as _

OLDEST = 150_000
TIMEOUT = 5.0
# How long a notification may take to arrive.
PATIENCE = 3.0
SKEW_SECONDS = 2.0
OLD_SECONDS = 300.0
# More dead rows than live ones, and many.
MANY_DEAD = 100_000
TABLE = "django_jobs_job"


def version(alias: str) -> Iterator[Finding]:
    """Whether the server is new enough."""
    number, text = _row(
        alias, "SELECT current_setting('server_version_num')::int, current_setting('server_version')"
    )
    if number < OLDEST:
        yield Finding(ERROR, "version", f"PostgreSQL is {text}; 15 is the oldest that is supported.")
    else:
        yield Finding(OK, "version", f"PostgreSQL {text}.")


def isolation(alias: str) -> Iterator[Finding]:
    """Whether the site's transactions run as the statements expect."""
    level, read_only = _row(
        alias, "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"
    )
    if level != "read committed":
        yield Finding(
            WARNING,
            "isolation",
            f"Transactions of the site are {level}: enqueueing beside a worker can fail with a serialization error.",
            "Be ready to try again, or leave OPTIONS['isolation_level'] at READ COMMITTED. (Workers use that anyway.)",
        )
    else:
        yield Finding(OK, "isolation", "Read committed.")
    if read_only == "on":
        yield Finding(
            ERROR,
            "isolation",
            "Transactions are read-only: nothing can be enqueued or run.",
            "Is this a standby?",
        )


def pooler(alias: str) -> Iterator[Finding]:
    """Whether something stands between, and sessions stay whole behind it; and whether notifications arrive."""
    around = conf.get("LISTEN")
    listener, sender = _session(around or alias, direct=around is not None), _session(alias)
    try:
        between = sender.connection.info.backend_pid != _fetch(sender, "SELECT pg_backend_pid()")[0]
        notify, prepared = conf.get("NOTIFY"), conf.get("PREPARED_STATEMENTS")
        arrived = _notification_arrives(listener, sender)
        if not between:
            yield Finding(OK, "pooler", "None: connections go to the server itself.")
        elif around is not None and not prepared:
            yield Finding(OK, "pooler", f"There is one; workers listen past it, on {around!r}.")
        elif arrived and around is None:
            yield Finding(OK, "pooler", "There is one, and sessions stay whole behind it (session mode).")
        else:
            yield Finding(
                WARNING if not (notify or prepared) else ERROR,
                "pooler",
                "There is one, and a session does not keep its server connection (transaction mode).",
                "Set DJANGO_JOBS['PREPARED_STATEMENTS'] to False, and either ['NOTIFY'] too, or ['LISTEN'] to the "
                "alias of a direct connection."
                if notify or prepared
                else "",
            )
        if not notify:
            yield Finding(
                WARNING,
                "notifications",
                f"They are off: a job waits for up to {conf.get('POLL_INTERVAL'):g} s to be noticed.",
                "DJANGO_JOBS['NOTIFY']: True, where a session can LISTEN.",
            )
        elif arrived:
            yield Finding(OK, "notifications", "They arrive.")
        else:
            yield Finding(
                ERROR,
                "notifications",
                f"One that was sent did not arrive within {PATIENCE:g} s: workers find new jobs by polling only.",
                "A pooler in transaction mode does this; let workers connect to the server itself.",
            )
    finally:
        listener.close()
        sender.close()


def _notification_arrives(listener: PostgreSQLSession, sender: PostgreSQLSession) -> bool:
    # A hint that no worker makes anything of but one more look at the queues.
    token = f"doctor-{secrets.token_hex(8)}"
    arrived = False
    sent = False
    deadline = time.monotonic() + PATIENCE
    while not arrived and time.monotonic() < deadline:
        for payload in listener.listen(0.05 if not sent else 0.5):
            arrived = arrived or payload == token
        if not sent:  # it listens by now
            _fetch(sender, "SELECT pg_notify(%(channel)s, %(token)s)", channel=CHANNEL, token=token)
            sent = True
    return arrived


def clock(alias: str) -> Iterator[Finding]:
    """How far this host's clock is from the database's."""
    before = dt.datetime.now(dt.UTC)
    theirs = parse_timestamp(_row(alias, "SELECT clock_timestamp()")[0])
    after = dt.datetime.now(dt.UTC)
    assert theirs is not None
    skew = (theirs - (before + (after - before) / 2)).total_seconds()
    if abs(skew) - (after - before).total_seconds() > SKEW_SECONDS:
        yield Finding(
            WARNING,
            "clock",
            f"This host's clock is {abs(skew):.1f} s {'behind' if skew > 0 else 'before'} the database's.",
            "Jobs go by the database's, so none is harmed; but times in logs differ. Is NTP running?",
        )
    else:
        yield Finding(OK, "clock", "This host and the database agree.")


class _Transaction(NamedTuple):
    """One that has been open for long: a session's, or, with a ``gid``, one that was prepared."""

    pid: int | None
    gid: str | None
    user: str
    application: str
    state: str
    seconds: float


def _open_transactions(alias: str) -> list[_Transaction]:
    """Those that have been open for long: the ten oldest of sessions, then the ten oldest that were prepared."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            """
            (SELECT pid, NULL, COALESCE(usename, '?'), COALESCE(NULLIF(application_name, ''), 'unnamed'),
                    COALESCE(state, '?'), extract(epoch FROM clock_timestamp() - xact_start)::float8
             FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
               AND xact_start < clock_timestamp() - make_interval(secs => %s)
             ORDER BY xact_start LIMIT 10)
            UNION ALL
            (SELECT NULL, gid, '', '', '', extract(epoch FROM clock_timestamp() - prepared)::float8
             FROM pg_prepared_xacts
             WHERE database = current_database() AND prepared < clock_timestamp() - make_interval(secs => %s)
             ORDER BY prepared LIMIT 10)
            """,
            [OLD_SECONDS, OLD_SECONDS],
        )
        return [_Transaction(*row) for row in cursor.fetchall()]


def old_transactions(alias: str) -> Iterator[Finding]:
    """Whether somebody's transaction has been open for long: dead rows pile up behind it, in claims too."""
    found = _open_transactions(alias)
    for each in found:
        minutes = f"{each.seconds / 60:.0f} minutes"
        if each.gid is None:
            yield Finding(
                WARNING,
                "old transactions",
                f"Process {each.pid} ({each.user}, {each.application}, {each.state}) has had a transaction open for "
                f"{minutes}: nothing that ended since can be vacuumed, and claims get slower.",
                f"End it if it was forgotten: SELECT pg_terminate_backend({each.pid})",
            )
        else:
            yield Finding(
                WARNING,
                "old transactions",
                f"The prepared transaction {each.gid!r} has been open for {minutes}.",
                "COMMIT PREPARED or ROLLBACK PREPARED it.",
            )
    if not found:
        yield Finding(OK, "old transactions", f"None is older than {OLD_SECONDS / 60:.0f} minutes.")


def oldest_transaction(alias: str) -> tuple[str, float] | None:
    """Who has had a transaction open for longest, and for how many seconds; None where none is open for long.

    Who it is can be told in other languages, for a page does.
    """
    oldest = max(_open_transactions(alias), key=lambda each: each.seconds, default=None)
    if oldest is None:
        return None
    if oldest.gid is None:
        who = _(
            "process %(pid)s, %(user)s, %(application)s",
            pid=oldest.pid,
            user=oldest.user,
            application=oldest.application,
        )
        return who, oldest.seconds
    return _("prepared %(gid)s", gid=repr(oldest.gid)), oldest.seconds


def autovacuum(alias: str) -> Iterator[Finding]:
    """Whether the table of jobs is vacuumed as a queue needs it."""
    options, running, dead, live = _row(
        alias,
        """
        SELECT COALESCE(reloptions, '{}'), current_setting('autovacuum'),
               pg_stat_get_dead_tuples(oid), pg_stat_get_live_tuples(oid)
        FROM pg_class WHERE oid = 'django_jobs_job'::regclass
        """,
    )
    chosen = dict(option.split("=", 1) for option in options)
    missing = {name: value for name, value in _settings_of_the_migration().items() if name not in chosen}
    if running != "on":
        yield Finding(
            ERROR,
            "autovacuum",
            "It is off on this server: the table of jobs grows without end.",
            "autovacuum = on",
        )
    elif chosen.get("autovacuum_enabled") in ("false", "off"):
        yield Finding(
            ERROR,
            "autovacuum",
            "It is off for the table of jobs, which grows without end.",
            f"ALTER TABLE {TABLE} RESET (autovacuum_enabled)",
        )
    elif missing:
        yield Finding(
            WARNING,
            "autovacuum",
            f"The table of jobs has lost settings of its migration ({', '.join(missing)}): it is vacuumed late.",
            f"ALTER TABLE {TABLE} SET ({', '.join(f'{name} = {value}' for name, value in missing.items())})",
        )
    elif dead > max(live, MANY_DEAD):
        yield Finding(
            WARNING,
            "autovacuum",
            f"The table of jobs has {dead} dead rows beside {live} live ones: vacuum does not keep up.",
            f"Is a transaction open for long? Else: VACUUM (ANALYZE) {TABLE}",
        )
    else:
        yield Finding(OK, "autovacuum", "It is on, with the settings of the migration.")


def _settings_of_the_migration() -> Mapping[str, str]:
    """How the migration sets the table of jobs. Another value is the operator's choice; none at all is a loss."""
    settings: Mapping[str, Mapping[str, str]] = importlib.import_module(
        "django_jobs.migrations.0001_initial"
    ).SETTINGS
    return settings[TABLE]


def indexes(alias: str) -> Iterator[Finding]:
    """Whether the indexes that the statements go by are there, and whole."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            """
            SELECT relname, indisvalid AND indisready FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
            WHERE indrelid = 'django_jobs_job'::regclass
            """
        )
        there = dict(cursor.fetchall())
    missing = sorted((expected_indexes() | {"django_jobs_job_pkey"}) - set(there))
    broken = sorted(name for name, whole in there.items() if not whole)
    if missing:
        yield Finding(
            ERROR,
            "indexes",
            f"These are missing, and claims get slower with every job: {', '.join(missing)}.",
            "Make them as the migrations of django_jobs do (manage.py sqlmigrate django_jobs 0001).",
        )
    if broken:
        yield Finding(
            ERROR,
            "indexes",
            f"These are not valid (a CREATE INDEX CONCURRENTLY that failed?): {', '.join(broken)}.",
            f"REINDEX INDEX CONCURRENTLY {broken[0]}",
        )
    if not missing and not broken:
        yield Finding(OK, "indexes", "All are there, and valid.")


def _row(alias: str, sql: str) -> tuple[Any, ...]:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql)
        row: tuple[Any, ...] = cursor.fetchone()
        return row


def _session(alias: str, direct: bool = False) -> PostgreSQLSession:
    return PostgreSQLSession(alias, TIMEOUT, direct)


def _fetch(session: PostgreSQLSession, sql: str, **parameters: Any) -> tuple[Any, ...]:
    return session.fetch(Statement("doctor", sql, ""), parameters)[0]


SETTINGS = [version, isolation, pooler, clock]
TABLES = [indexes, autovacuum, old_transactions]
