"""``DJANGO_JOBS``: read when used, with its defaults, and clear about what is wrong."""

import datetime as dt
import math

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_jobs import conf


@pytest.fixture(autouse=True)
def _nothing_is_set(settings):
    settings.DJANGO_JOBS = {}
    del settings.DJANGO_JOBS


class TestGet:
    @pytest.mark.parametrize("value", [None, {}])
    def test_defaults(self, settings, value):
        settings.DJANGO_JOBS = value

        assert {name: conf.get(name) for name in conf.SETTINGS} == {
            name: setting.default for name, setting in conf.SETTINGS.items()
        }

    def test_defaults_where_nothing_is_set(self):
        assert conf.get("CONCURRENCY") == 10

    def test_is_read_when_used(self):
        with override_settings(DJANGO_JOBS={"CONCURRENCY": 3}):
            assert conf.get("CONCURRENCY") == 3
            assert conf.get("LEASE") == 30
        assert conf.get("CONCURRENCY") == 10

    @pytest.mark.parametrize("value", [[], "CONCURRENCY", 5, [("CONCURRENCY", 3)]])
    def test_must_be_a_dict(self, settings, value):
        settings.DJANGO_JOBS = value

        with pytest.raises(
            ImproperlyConfigured, match=rf"^DJANGO_JOBS must be a dict, not {type(value).__name__}\.$"
        ):
            conf.get("CONCURRENCY")

    def test_an_unknown_name_is_the_programmers_error(self):
        with pytest.raises(KeyError):
            conf.get("NOTHING")


class TestSettings:
    @pytest.mark.parametrize("setting", conf.SETTINGS.values(), ids=lambda setting: setting.name)
    def test_every_default_is_accepted_and_documented(self, setting):
        assert setting.valid(setting.default)
        assert setting.accepts
        assert setting.purpose.endswith(".")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("DATABASE", "default"),
            ("QUEUES", {"mail": 1, "*": 10_000}),
            ("QUEUES", {"mail": {"size": 3, "ahead": False}, "slow": {"ahead": True}, "*": {}}),
            ("CONCURRENCY", 1),
            ("MAX_ATTEMPTS", 32_767),
            ("LEASE", 0.5),
            ("SHUTDOWN_TIMEOUT", 0),
            ("NOTIFY", False),
            ("RETENTION", {"completed": None, "failed": 0, "cancelled": dt.timedelta(days=1)}),
            ("RETENTION", {"failed": 5, "queues": {"mail": {"completed": 0, "failed": None}, "slow": {}}}),
            ("STATISTICS_RETENTION", None),
            ("STATISTICS_RETENTION", 0),
            ("STATISTICS_RETENTION", dt.timedelta(days=1)),
            ("MIDDLEWARE", ("a.b",)),
        ],
    )
    def test_accepts(self, settings, name, value):
        settings.DJANGO_JOBS = {name: value}

        assert conf.get(name) == value

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("DATABASE", "nowhere"),
            ("DATABASE", 5),
            ("DATABASE", ["default"]),
            ("QUEUES", ["mail"]),
            ("QUEUES", {"mail": 0}),
            ("QUEUES", {"mail": True}),
            ("QUEUES", {"": 1}),
            ("QUEUES", {"mail": {"size": 0}}),
            ("QUEUES", {"mail": {"size": None}}),
            ("QUEUES", {"mail": {"ahead": 1}}),
            ("QUEUES", {"mail": {"behind": True}}),
            ("QUEUES", {5: 1}),
            ("QUEUES", {"q" * 101: 1}),
            ("CONCURRENCY", 0),
            ("CONCURRENCY", 10_001),
            ("CONCURRENCY", True),
            ("CONCURRENCY", "10"),
            ("CONCURRENCY", None),
            ("MAX_ATTEMPTS", 0),
            ("MAX_ATTEMPTS", 32_768),
            ("MAX_ARGUMENT_BYTES", 1e6),
            ("MAX_RESULT_BYTES", 0),
            ("MAX_ERRORS", 1),
            ("MAX_TRACEBACK_BYTES", 499),
            ("LEASE", 0),
            ("LEASE", math.nan),
            ("LEASE", math.inf),
            ("LEASE", 1e300),
            ("LEASE", dt.timedelta(seconds=30)),
            ("HEARTBEAT_INTERVAL", -1),
            ("POLL_INTERVAL", "1"),
            ("SHUTDOWN_TIMEOUT", -0.1),
            ("NOTIFY", 1),
            ("PREPARED_STATEMENTS", None),
            ("STATEMENT_TIMEOUT", 10**400),
            ("RETENTION", []),
            ("RETENTION", {"complete": 5}),
            ("RETENTION", {"queues": ["mail"]}),
            ("RETENTION", {"queues": {"mail": 5}}),
            ("RETENTION", {"queues": {"": {}}}),
            ("RETENTION", {"queues": {"mail": {"complete": 5}}}),
            ("RETENTION", {"queues": {"mail": {"queues": {}}}}),
            ("RETENTION", {"completed": -1}),
            ("RETENTION", {"completed": dt.timedelta(seconds=-1)}),
            ("RETENTION", {"completed": dt.timedelta.max}),
            ("RETENTION", {"completed": "7 days"}),
            ("RETENTION", {"completed": True}),
            ("MIDDLEWARE", "a.b"),
            ("MIDDLEWARE", [""]),
            ("MIDDLEWARE", [print]),
        ],
        ids=lambda value: value if isinstance(value, str) else type(value).__name__,
    )
    def test_refuses(self, settings, name, value):
        settings.DJANGO_JOBS = {name: value}

        with pytest.raises(ImproperlyConfigured) as refusal:
            conf.get(name)
        message = str(refusal.value)
        assert message.startswith(f"DJANGO_JOBS[{name!r}] is ")
        assert message.endswith(f"; it must be {conf.SETTINGS[name].accepts}.")


class TestRetention:
    def test_defaults_to_a_week_and_a_month_for_what_failed(self):
        assert conf.retention() == {"completed": 7 * 86_400, "failed": 30 * 86_400, "cancelled": 7 * 86_400}

    def test_what_is_not_named_keeps_its_default(self, settings):
        settings.DJANGO_JOBS = {"RETENTION": {"completed": dt.timedelta(hours=1), "failed": None}}

        assert conf.retention() == {"completed": 3600, "failed": None, "cancelled": 7 * 86_400}

    def test_zero_is_not_for_ever(self, settings):
        settings.DJANGO_JOBS = {"RETENTION": {"completed": 0}}

        assert conf.retention()["completed"] == 0

    def test_a_queue_says_what_differs(self, settings):
        settings.DJANGO_JOBS = {
            "RETENTION": {
                "failed": 5,
                "queues": {"mail": {"completed": dt.timedelta(hours=1), "failed": None}},
            }
        }

        assert conf.retention() == {"completed": 7 * 86_400, "failed": 5, "cancelled": 7 * 86_400}
        assert conf.queue_retention() == {"mail": {"completed": 3600, "failed": None}}

    def test_no_queue_says_anything(self):
        assert conf.queue_retention() == {}


def test_pools_by_size_or_by_what_differs(settings):
    settings.DJANGO_JOBS = {
        "CONCURRENCY": 4,
        "QUEUES": {"a": 2, "b": {"size": 3, "ahead": False}, "c": {"ahead": False}},
    }

    assert conf.pools() == {"a": (2, True), "b": (3, False), "c": (4, False)}
