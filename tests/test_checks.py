"""The system checks: each finding, what it says, and what it advises."""

import pytest
from django.core.checks import Error, Warning, run_checks  # noqa: A004
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from django_jobs import checks, conf
from django_jobs.checks import check_database, check_settings


@pytest.fixture
def check(settings):
    """Run the checks of settings with this ``DJANGO_JOBS``."""

    def run(value):
        settings.DJANGO_JOBS = value
        return check_settings()

    return run


@pytest.fixture
def database(monkeypatch):
    """Let the database be what the test wants it to be; nothing connects."""

    def become(vendor, **options):
        monkeypatch.setattr(connections["default"], "vendor", vendor)
        monkeypatch.setattr(connections["default"], "display_name", vendor.capitalize(), raising=False)
        monkeypatch.setitem(connections["default"].settings_dict, "OPTIONS", options)
        return check_database()

    return become


def middleware(step):
    return step


def ids(messages):
    return [message.id for message in messages]


def only(messages):
    (message,) = messages
    return message


def test_the_test_project_is_sound():
    assert [message for message in run_checks() if str(message.id).startswith("django_jobs")] == []


def test_are_registered_under_the_apps_name(settings):
    settings.DJANGO_JOBS = {"NOTHING": 1}

    assert ids(run_checks(tags=["django_jobs"])) == ["django_jobs.E002"]


class TestSettings:
    @pytest.mark.parametrize("value", [None, {}, {"CONCURRENCY": 5}, {"LEASE": 10, "HEARTBEAT_INTERVAL": 5}])
    def test_nothing_is_wrong(self, check, value):
        assert check(value) == []

    def test_not_a_dict(self, check):
        message = only(check(["CONCURRENCY"]))

        assert (message.id, message.msg) == ("django_jobs.E001", "DJANGO_JOBS must be a dict, not list.")
        assert message.hint == "Write DJANGO_JOBS = {...}, or leave it out."
        assert isinstance(message, Error)

    @pytest.mark.parametrize(
        ("name", "nearest"),
        [
            ("CONCURENCY", "CONCURRENCY"),
            ("concurrency", "CONCURRENCY"),
            ("ATTEMPTS", "MAX_ATTEMPTS"),
            ("HEARTBEAT", "HEARTBEAT_INTERVAL"),
            ("MIDDLEWARES", "MIDDLEWARE"),
        ],
    )
    def test_an_unknown_key_names_the_nearest(self, check, name, nearest):
        message = only(check({name: 5}))

        assert (message.id, message.msg) == ("django_jobs.E002", f"DJANGO_JOBS has the unknown key {name!r}.")
        assert message.hint == f"Did you mean {nearest!r}?"

    @pytest.mark.parametrize("name", ["XYZ", 5, None])
    def test_an_unknown_key_like_no_other_lists_them(self, check, name):
        message = only(check({name: 5}))

        assert message.id == "django_jobs.E002"
        assert message.hint == f"The known keys are {', '.join(sorted(conf.SETTINGS))}."

    def test_a_value_that_is_not_accepted(self, check):
        message = only(check({"CONCURRENCY": "many"}))

        assert (message.id, message.msg) == ("django_jobs.E003", "DJANGO_JOBS['CONCURRENCY'] is 'many'.")
        assert message.hint == "It must be a whole number from 1 to 10000. The default is 10."

    def test_every_finding_is_reported(self, check):
        assert ids(check({"CONCURRENCY": 0, "LEAS": 5, "NOTIFY": None})) == [
            "django_jobs.E003",
            "django_jobs.E002",
            "django_jobs.E003",
        ]

    @pytest.mark.parametrize(
        "value", [{"LEASE": 9}, {"HEARTBEAT_INTERVAL": 16}, {"LEASE": 2, "HEARTBEAT_INTERVAL": 1.1}]
    )
    def test_a_lease_too_short_for_its_heartbeat(self, check, value):
        message = only(check(value))

        assert message.id == "django_jobs.E004"
        assert "one late heartbeat, and running jobs are taken for lost" in message.msg
        assert message.hint == "Set LEASE to at least twice HEARTBEAT_INTERVAL; the defaults are 30 and 5."

    def test_middleware(self, check):
        assert check({"MIDDLEWARE": [f"{__name__}.middleware"]}) == []

    @pytest.mark.parametrize(
        ("path", "problem"),
        [
            ("nodots", "which can't be imported: nodots doesn't look like a module path"),
            (
                "django_jobs.nothing",
                'which can\'t be imported: Module "django_jobs" does not define a "nothing"',
            ),
            ("nothing.here", "which can't be imported: No module named 'nothing'"),
            ("django_jobs.conf.NAMESPACE", "which can't be called."),
        ],
    )
    def test_middleware_that_is_none(self, check, path, problem):
        message = only(check({"MIDDLEWARE": [path]}))

        assert message.id == "django_jobs.E005"
        assert message.msg.startswith(f"DJANGO_JOBS['MIDDLEWARE'] names {path!r}, {problem}")
        assert message.hint.startswith("Give the dotted path of a function or class")

    def test_middleware_whose_module_raises(self, check, tmp_path, monkeypatch):
        (tmp_path / "broken_middleware.py").write_text("1 / 0")
        monkeypatch.syspath_prepend(tmp_path)

        message = only(check({"MIDDLEWARE": ["broken_middleware.wrap"]}))

        assert message.id == "django_jobs.E005"
        assert "can't be imported: division by zero" in message.msg


class TestDatabase:
    def test_postgresql(self, database):
        assert database("postgresql") == []

    @pytest.mark.parametrize("vendor", ["mysql", "oracle", "microsoft"])
    def test_another_one(self, database, vendor):
        message = only(database(vendor))

        assert (message.id, message.level) == ("django_jobs.E010", Error("").level)
        assert message.msg == (
            f"DATABASES['default'] is {vendor.capitalize()}; jobs can be kept in SQLite or PostgreSQL only."
        )
        assert (
            message.hint == "Name one of those in DJANGO_JOBS['DATABASE'], and route the app's models to it."
        )

    def test_one_that_does_not_exist_is_left_to_the_check_of_settings(self, settings):
        settings.DJANGO_JOBS = {"DATABASE": "nowhere"}

        assert check_database() == []
        assert ids(check_settings()) == ["django_jobs.E003"]

    def test_settings_that_are_no_dict_are_left_to_the_check_of_settings(self, settings):
        settings.DJANGO_JOBS = 5

        assert check_database() == []

    def test_one_that_the_router_names_but_does_not_exist(self, monkeypatch):
        def fail():
            raise ImproperlyConfigured("There is no database 'nowhere' in DATABASES; there are: default.")

        monkeypatch.setattr("django_jobs.checks.jobs_database", fail)

        message = only(check_database())
        assert message.id == "django_jobs.E010"
        assert message.msg == "There is no database 'nowhere' in DATABASES; there are: default."
        assert message.hint == "Correct DATABASE_ROUTERS."


class TestSQLite:
    SOUND = {"init_command": "PRAGMA journal_mode=WAL;", "transaction_mode": "IMMEDIATE", "timeout": 20}

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"init_command": "pragma JOURNAL_MODE = wal ; pragma synchronous=normal"},
            {"transaction_mode": "immediate"},
            {"transaction_mode": "EXCLUSIVE"},
            {"timeout": 10},
            {"timeout": 30.5},
        ],
    )
    def test_nothing_is_wrong(self, database, options):
        assert database("sqlite", **{**self.SOUND, **options}) == []

    def test_every_finding_is_a_warning(self, database):
        messages = database("sqlite")

        assert ids(messages) == ["django_jobs.W011", "django_jobs.W012", "django_jobs.W013"]
        assert all(isinstance(message, Warning) for message in messages)

    @pytest.mark.parametrize("command", [None, "", "PRAGMA journal_mode=DELETE"])
    def test_without_the_write_ahead_log(self, database, command):
        message = only(database("sqlite", **{**self.SOUND, "init_command": command}))

        assert message.id == "django_jobs.W011"
        assert message.msg.startswith("DATABASES['default'] does not switch SQLite to its write-ahead log")
        assert (
            message.hint == "OPTIONS: 'init_command': 'PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;'"
        )

    @pytest.mark.parametrize("mode", [None, "DEFERRED"])
    def test_with_deferred_transactions(self, database, mode):
        message = only(database("sqlite", **{**self.SOUND, "transaction_mode": mode}))

        assert message.id == "django_jobs.W012"
        assert "'database is locked' at once, whatever the timeout" in message.msg
        assert message.hint == "OPTIONS: 'transaction_mode': 'IMMEDIATE'"

    @pytest.mark.parametrize("timeout", [5, 0, 9.9, None, "20"])
    def test_with_a_short_timeout(self, database, timeout):
        message = only(database("sqlite", **{**self.SOUND, "timeout": timeout}))

        assert message.id == "django_jobs.W013"
        assert message.msg.startswith(f"DATABASES['default'] waits {timeout} s for SQLite's write lock")
        assert message.hint == "OPTIONS: 'timeout': 20"

    def test_the_hints_are_sound(self, database):
        assert database("sqlite", **self.SOUND) == []


class TestTransaction:
    """Whether the jobs are where the site's own data is."""

    @pytest.fixture(autouse=True)
    def _elsewhere(self, settings, monkeypatch):
        monkeypatch.setitem(connections.settings, "elsewhere", connections.settings["default"])

    def test_they_are(self):
        assert checks.check_transaction() == []

    def test_they_are_not(self, settings):
        settings.DJANGO_JOBS = {"DATABASE": "elsewhere"}
        (warning,) = checks.check_transaction()

        assert warning.id == "django_jobs.W014"
        assert "'elsewhere'" in warning.msg
        assert "on_commit" in warning.hint

    def test_some_of_the_sites_data_is_there(self, settings):
        class Router:
            def db_for_write(self, model, **_):
                return "elsewhere" if model._meta.app_label in ("django_jobs", "library") else None

        settings.DATABASE_ROUTERS = [Router()]
        assert checks.check_transaction() == []


class TestPooler:
    @pytest.mark.parametrize(
        ("chosen", "ids"),
        [
            ({}, []),
            ({"PREPARED_STATEMENTS": False}, ["django_jobs.W015"]),
            ({"PREPARED_STATEMENTS": False, "NOTIFY": False}, []),
            ({"PREPARED_STATEMENTS": False, "LISTEN": "default"}, []),
            ({"LISTEN": "default"}, []),
        ],
    )
    def test_who_listens_can_hear(self, settings, chosen, ids):
        settings.DJANGO_JOBS = chosen
        assert [message.id for message in checks._check_postgresql()] == ids
