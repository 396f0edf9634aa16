"""The doctor: each thing that can be wrong with the running database, made so, and what is said of it."""

import datetime as dt
import io
import json
from importlib import import_module

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, connections, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from django_jobs import doctor, operations
from django_jobs.doctor import common, sqlite
from django_jobs.models import Worker
from django_jobs.store import django_store, own_store
from django_jobs.store.rows import NewJob
from tests.waiting import eventually

try:
    from django_jobs.doctor import postgresql
except ModuleNotFoundError:  # no psycopg: a run on SQLite, whose tests don't use it
    postgresql = None

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = dt.timedelta(hours=1)
JOB_SETTINGS = import_module("django_jobs.migrations.0001_initial").SETTINGS["django_jobs_job"]


@pytest.fixture(autouse=True)
def whatever_died_before(monkeypatch):
    """Rows that other tests have rolled back are counted until vacuum comes, and are not looked at here."""
    if postgresql is not None:
        monkeypatch.setattr(postgresql, "MANY_DEAD", float("inf"))


def look(examination=None):
    """Findings by name: what was said at each level."""
    found = list(doctor.examine() if examination is None else examination("default"))
    return {finding.name: (finding.level, finding.message, finding.hint) for finding in found}


def worker(**columns):
    now = timezone.now()
    times = {"started_at": now, "heartbeat_at": now, "expires_at": now + HOUR}
    return Worker.objects.create(**{"host": "here", "pid": 1, "queues": ["*"], **times, **columns})


def wait_in(queue_name, count=1):
    django_store("default").insert_many([NewJob("tests.job", queue_name)] * count)


def execute(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)


def test_the_test_project_is_well_but_for_the_worker():
    findings = look()

    assert {name for name, (level, *_) in findings.items() if level != "ok"} == {"workers"}
    assert findings["guarantees"][1] == own_store("default").guarantees().describe()
    assert {"settings", "migrations", "version", "indexes", "old transactions"} <= set(findings)


class TestCommand:
    def run(self, *options):
        out = io.StringIO()
        code = 0
        try:
            call_command("jobs", "doctor", *options, stdout=out)
        except SystemExit as end:
            code = end.code
        return out.getvalue(), code

    def test_warnings_are_no_failure(self):
        out, code = self.run()

        assert code == 0
        assert out.endswith("0 errors, 1 warning.\n")
        assert "Start one: manage.py runjobs" in out

    def test_all_is_well(self):
        worker()

        assert self.run()[0].endswith("All is well.\n")

    def test_an_error_is_exit_code_1(self):
        wait_in("mail")

        out, code = self.run()

        assert code == 1
        assert "error    workers: No worker is alive, and jobs wait in mail." in out

    def test_as_json(self):
        out, _ = self.run("--json")

        records = [json.loads(line) for line in out.splitlines()]
        assert set(records[0]) == {"level", "name", "message", "hint"}


class TestWorkers:
    def test_alive(self):
        worker()
        worker(host="there")
        worker(host="gone", stopped_at=timezone.now())
        worker(host="late", expires_at=timezone.now() - HOUR)

        assert look(common.workers)["workers"][:2] == ("ok", "2 alive, on here, there.")

    def test_a_queue_that_nobody_works_on(self):
        worker(queues=["default,mail"])
        for name in ("default", "mail", "slow"):
            wait_in(name)

        assert look(common.workers)["queues"][:2] == (
            "error",
            "Jobs wait in queues that no worker works on: slow.",
        )

    def test_a_paused_queue_with_jobs(self):
        worker()
        wait_in("mail")
        operations.pause("mail")
        operations.pause("empty")

        assert look(common.workers)["queues"][:2] == ("warning", "Jobs wait in queues that are paused: mail.")

    def test_all_quiet(self):
        worker(quiet_requested_at=timezone.now())

        assert "asked to be quiet" in look(common.workers)["workers"][1]


class TestMigrations:
    def test_one_that_is_not_applied(self):
        (newest,) = MigrationLoader(connection).graph.leaf_nodes("django_jobs")
        MigrationRecorder(connection).record_unapplied(*newest)
        try:
            findings = look()
        finally:
            MigrationRecorder(connection).record_applied(*newest)

        assert findings["migrations"][:2] == ("error", f"Not applied: {newest[1]}.")
        # The tables may not be there: what needs them is left out.
        assert "workers" not in findings
        assert "version" in findings

    def test_one_that_this_version_does_not_know(self):
        MigrationRecorder(connection).record_applied("django_jobs", "9999_future")
        try:
            findings = look(common.migrations)
        finally:
            MigrationRecorder(connection).record_unapplied("django_jobs", "9999_future")

        assert findings["migrations"][0] == "warning"
        assert "9999_future" in findings["migrations"][1]


@pytest.fixture
def without_index():
    """The index of the claims is gone; it comes back in the end."""
    from django_jobs.models import Job

    (index,) = [each for each in Job._meta.indexes if each.name == "django_jobs_job_claim"]
    with connection.schema_editor() as editor:
        editor.remove_index(Job, index)
    yield
    with connection.schema_editor() as editor:
        editor.add_index(Job, index)


def test_an_index_that_is_missing(without_index):
    level, message, _ = look()["indexes"]

    assert (level, "django_jobs_job_claim" in message) == ("error", True)


def test_every_index_that_a_statement_goes_by_is_expected():
    assert common.expected_indexes() == {
        "django_jobs_job_claim",
        "django_jobs_job_due",
        "django_jobs_job_running",
        "django_jobs_job_cancel",
        "django_jobs_job_finished",
        "django_jobs_job_pending",
        "django_jobs_job_unique_key",
    }


def test_a_database_that_is_away(monkeypatch):
    def refuse():
        raise OperationalError("connection refused\nis it up?")

    monkeypatch.setattr(connections["default"], "ensure_connection", refuse)

    findings = look()

    assert findings["connection"][:2] == (
        "error",
        "The database can't be reached: connection refused is it up?",
    )
    assert "migrations" not in findings


def test_an_examination_that_fails_hides_no_other(monkeypatch):
    def workers(alias):
        raise RuntimeError("no\nidea")
        yield

    monkeypatch.setattr(common, "TABLES", [workers, common.workers])

    found = [finding.message for finding in doctor.examine() if finding.name == "workers"]

    assert found[0] == "This could not be looked at: RuntimeError: no idea"
    assert len(found) == 2


def test_what_the_system_checks_say_is_told(settings):
    settings.DJANGO_JOBS = {"CONCURENCY": 5}

    level, message, hint = look()["settings"]

    assert (level, "CONCURENCY" in message, "E002" in message) == ("error", True, True)
    assert "CONCURRENCY" in hint


@pytest.mark.sqlite
class TestSQLite:
    @pytest.fixture
    def pragma(self):
        """Set a pragma until the test ends."""
        yield lambda text: execute(f"PRAGMA {text}")
        connection.close()
        execute("PRAGMA journal_mode=WAL")

    def test_a_journal_that_makes_readers_wait(self, pragma):
        pragma("journal_mode=DELETE")

        level, message, hint = look(sqlite.journal)["journal"]
        assert (level, "delete" in message) == ("error", True)
        assert "journal_mode=WAL" in hint

    def test_deferred_transactions(self, monkeypatch):
        monkeypatch.setattr(connection, "transaction_mode", None)

        assert look(sqlite.transactions)["transactions"][0] == "error"

    def test_a_short_timeout(self, pragma):
        pragma("busy_timeout=500")

        assert look(sqlite.busy_timeout)["busy timeout"][:2] == (
            "warning",
            "The write lock is waited for only 0.5 s; then 'database is locked' is raised.",
        )

    def test_an_old_version(self, monkeypatch):
        monkeypatch.setattr(sqlite.sqlite3, "sqlite_version_info", (3, 36, 0))

        assert look(sqlite.version)["version"][0] == "error"

    def test_a_reader_that_keeps_the_log_from_being_written_back(self, monkeypatch):
        monkeypatch.setattr(sqlite, "LONG_LOG_PAGES", 10)
        other = connections.create_connection("default")
        try:
            with other.cursor() as cursor:
                # A read that is open: the pages written from now on can't be written back.
                raw = cursor.cursor.connection
                raw.execute("BEGIN")
                raw.execute("SELECT count(*) FROM django_jobs_job").fetchall()
                django_store("default").insert_many([NewJob("tests.job", args=f'["{"x" * 5000}"]')] * 50)
                level, message, _ = look(sqlite.old_readers)["old transactions"]
                raw.rollback()
        finally:
            other.close()

        assert (level, "can't be written back" in message) == ("warning", True)
        assert look(sqlite.old_readers)["old transactions"][0] == "ok"


@pytest.mark.postgresql
class TestPostgreSQL:
    def test_notifications_arrive(self):
        findings = look(postgresql.pooler)

        assert findings["notifications"][:2] == ("ok", "They arrive.")
        assert findings["pooler"][0] == "ok"

    def test_notifications_that_do_not_arrive(self, monkeypatch):
        monkeypatch.setattr(postgresql, "_notification_arrives", lambda *sessions: False)

        assert look(postgresql.pooler)["notifications"][0] == "error"

    def test_a_pooler_that_keeps_sessions_whole_and_one_that_does_not(self, monkeypatch, settings):
        fetch = postgresql._fetch
        monkeypatch.setattr(
            postgresql,
            "_fetch",
            lambda session, sql, **more: (-1,) if "backend_pid" in sql else fetch(session, sql, **more),
        )
        assert "session mode" in look(postgresql.pooler)["pooler"][1]

        monkeypatch.setattr(postgresql, "_notification_arrives", lambda *sessions: False)
        level, message, hint = look(postgresql.pooler)["pooler"]
        assert (level, "transaction mode" in message) == ("error", True)
        assert "PREPARED_STATEMENTS" in hint

        settings.DJANGO_JOBS = {"NOTIFY": False, "PREPARED_STATEMENTS": False}
        findings = look(postgresql.pooler)
        assert findings["pooler"][0] == findings["notifications"][0] == "warning"

    def test_another_isolation_level(self):
        execute("SET default_transaction_isolation = 'serializable'")
        try:
            level, message, _ = look(postgresql.isolation)["isolation"]
        finally:
            execute("RESET default_transaction_isolation")

        assert (level, "serializable" in message) == ("warning", True)

    def test_a_read_only_server(self):
        execute("SET default_transaction_read_only = on")
        try:
            assert look(postgresql.isolation)["isolation"][0] == "error"
        finally:
            execute("RESET default_transaction_read_only")

    def test_an_old_version(self, monkeypatch):
        monkeypatch.setattr(postgresql, "OLDEST", 999_999)

        assert look(postgresql.version)["version"][0] == "error"

    @pytest.mark.parametrize(("hours", "words"), [(2, "behind"), (-2, "before")])
    def test_a_clock_that_is_wrong(self, monkeypatch, hours, words):
        monkeypatch.setattr(
            postgresql, "_row", lambda alias, sql: [dt.datetime.now(dt.UTC) + dt.timedelta(hours=hours)]
        )

        level, message, _ = look(postgresql.clock)["clock"]
        assert (level, f"7200.0 s {words} the database's" in message) == ("warning", True)

    def test_an_old_transaction_is_named(self, monkeypatch):
        monkeypatch.setattr(postgresql, "OLD_SECONDS", 0.0)
        other = connections.create_connection("default")
        try:
            other.set_autocommit(False)
            with other.cursor() as cursor:
                cursor.execute("SET application_name = 'the report'; SELECT pg_backend_pid()")
                cursor.execute("SELECT pg_backend_pid()")
                (pid,) = cursor.fetchone()
            found = [
                each for each in postgresql.old_transactions("default") if f"Process {pid} " in each.message
            ]
        finally:
            other.close()

        (finding,) = found
        assert (finding.level, "the report, idle in transaction" in finding.message) == ("warning", True)
        assert f"pg_terminate_backend({pid})" in finding.hint

    def test_autovacuum_that_is_off(self):
        execute("ALTER TABLE django_jobs_job SET (autovacuum_enabled = off)")
        level, _, hint = look(postgresql.autovacuum)["autovacuum"]
        execute(hint)

        assert level == "error"
        assert look(postgresql.autovacuum)["autovacuum"][0] == "ok"

    @pytest.mark.parametrize(
        "lost", [["autovacuum_vacuum_cost_delay"], list(JOB_SETTINGS)], ids=["one", "all"]
    )
    def test_settings_of_the_migration_that_are_lost_can_be_copied(self, lost):
        execute(f"ALTER TABLE django_jobs_job RESET ({', '.join(lost)})")
        level, message, hint = look(postgresql.autovacuum)["autovacuum"]
        execute(hint)

        assert (level, ", ".join(lost) in message) == ("warning", True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT reloptions FROM pg_class WHERE oid = 'django_jobs_job'::regclass")
            assert set(cursor.fetchone()[0]) == {f"{name}={value}" for name, value in JOB_SETTINGS.items()}
        assert look(postgresql.autovacuum)["autovacuum"][0] == "ok"

    def test_a_setting_of_the_operators_own_is_no_loss(self):
        execute("ALTER TABLE django_jobs_job SET (autovacuum_vacuum_cost_delay = 1)")
        try:
            assert look(postgresql.autovacuum)["autovacuum"][0] == "ok"
        finally:
            execute("ALTER TABLE django_jobs_job SET (autovacuum_vacuum_cost_delay = 0)")

    def test_vacuum_that_does_not_keep_up(self, monkeypatch):
        monkeypatch.setattr(postgresql, "MANY_DEAD", 9)
        execute("SELECT pg_stat_force_next_flush()")
        execute("SELECT pg_stat_reset_single_table_counters('django_jobs_job'::regclass)")
        with transaction.atomic():
            wait_in("mail", 10)
            transaction.set_rollback(True)
        execute("SELECT pg_stat_force_next_flush()")

        eventually(lambda: look(postgresql.autovacuum)["autovacuum"][0] == "warning")
        _, message, hint = look(postgresql.autovacuum)["autovacuum"]
        assert "10 dead rows beside 0 live ones" in message
        assert "VACUUM (ANALYZE) django_jobs_job" in hint

    def test_an_index_that_is_not_valid(self):
        with transaction.atomic():
            execute(
                "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'django_jobs_job_due'::regclass"
            )
            level, message, hint = look(postgresql.indexes)["indexes"]
            transaction.set_rollback(True)

        assert (level, "django_jobs_job_due" in message) == ("error", True)
        assert hint == "REINDEX INDEX CONCURRENTLY django_jobs_job_due"
