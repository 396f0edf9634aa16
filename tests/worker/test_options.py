"""Which queues a worker works on, from the command line and the settings."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_jobs.worker import Pool, WorkerOptions, parse_pools, pools_from_settings


@pytest.mark.parametrize(
    ("text", "pools"),
    [
        ("default", [Pool(("default",), 10)]),
        ("default:3", [Pool(("default",), 3)]),
        ("default:10,mail:2", [Pool(("default",), 10), Pool(("mail",), 2)]),
        (" default:10 , * ", [Pool(("default",), 10), Pool(("*",), 10)]),
        ("*:1", [Pool(("*",), 1)]),
        ("ärger:10000", [Pool(("ärger",), 10_000)]),
    ],
)
def test_pools_are_read(text, pools):
    assert parse_pools(text) == pools


def test_the_concurrency_is_for_pools_without_a_size(settings):
    settings.DJANGO_JOBS = {"CONCURRENCY": 4}

    assert parse_pools("a,b:2") == [Pool(("a",), 4), Pool(("b",), 2)]
    assert parse_pools("a,b:2", concurrency=7) == [Pool(("a",), 7), Pool(("b",), 2)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no queue"),
        (",", "names no queue"),
        ("a,", "names no queue"),
        (":5", "names no queue"),
        ("a" * 101, "names no queue"),
        ("a:", "whole number from 1 to 10000"),
        ("a:0", "whole number from 1 to 10000"),
        ("a:-1", "whole number from 1 to 10000"),
        ("a:1.5", "whole number from 1 to 10000"),
        ("a:10001", "whole number from 1 to 10000"),
        ("a:²", "whole number from 1 to 10000"),
        ("a:x", "whole number from 1 to 10000"),
        ("a:" + "9" * 5000, "whole number from 1 to 10000"),
        ("a,b,a:3", "'a' is named twice"),
        ("*,*", r"'\*' is named twice"),
    ],
)
def test_what_can_not_be_read_is_told(text, message):
    with pytest.raises(ValueError, match=message):
        parse_pools(text)


def test_without_settings_one_pool_works_on_every_queue(settings):
    settings.DJANGO_JOBS = {}

    assert pools_from_settings() == [Pool(("*",), 10)]
    assert pools_from_settings(3) == [Pool(("*",), 3)]
    assert WorkerOptions().pools == [Pool(("*",), 10)]


def test_the_settings_name_the_pools(settings):
    settings.DJANGO_JOBS = {"QUEUES": {"default": 5, "*": 2}}

    assert WorkerOptions().pools == [Pool(("default",), 5), Pool(("*",), 2)]


def test_the_times_come_from_the_settings_unless_given(settings):
    settings.DJANGO_JOBS = {
        "LEASE": 9, "HEARTBEAT_INTERVAL": 2, "POLL_INTERVAL": 3, "SHUTDOWN_TIMEOUT": 4, "NOTIFY": False,
        "STATEMENT_TIMEOUT": 5,
    }  # fmt: skip
    options = WorkerOptions(lease=8.0)

    assert (options.lease, options.heartbeat_interval, options.poll_interval) == (8.0, 2.0, 3.0)
    assert (options.shutdown_timeout, options.notify, options.statement_timeout) == (4.0, False, 5.0)


def test_a_setting_that_is_none_is_refused(settings):
    settings.DJANGO_JOBS = {"LEASE": "soon"}

    with pytest.raises(ImproperlyConfigured, match="LEASE"):
        WorkerOptions()


def test_a_pool_is_named_by_its_queues():
    assert Pool(("a", "b"), 1).name == "a,b"


def test_whether_a_pool_claims_ahead_the_settings_say(settings):
    settings.DJANGO_JOBS = {"QUEUES": {"a": {"size": 2, "ahead": False}, "b": 3}}

    assert pools_from_settings() == [Pool(("a",), 2, ahead=False), Pool(("b",), 3)]
    assert parse_pools("a:5,c") == [Pool(("a",), 5, ahead=False), Pool(("c",), 10)]
