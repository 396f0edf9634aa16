"""The comparison with other queues: the machinery, with ours as the peer; and what is said of one that can't be
installed."""

import sys

import pytest

from benchmarks.peers import installing
from benchmarks.peers.command import Peers
from benchmarks.peers.installing import NotInstalled, check, reason
from benchmarks.peers.registry import PEERS


@pytest.mark.postgresql
def test_our_own_queue_is_one_of_them(run):
    result = run(
        "peers", "--only", "django_jobs", "--rounds", "1", "--scale", "0.1", "--singles", "5", "--tells", "3"
    )

    [row] = result["rows"]
    assert result["skipped"] == []
    assert row["peer"] == "django_jobs"
    assert row["jobs"] == 20_005
    assert row["factor"] == 1
    assert 0 < row["p50_ms"] <= row["p99_ms"]
    assert 0 < row["statements"] < 0.1
    assert all(
        row[name] > 0 for name in ("jobs_per_second", "many_per_second", "one_per_second", "client_us")
    )


def test_every_peer_has_its_script():
    names = {path.name for path in installing.SCRIPTS.iterdir()}

    assert {peer.script for peer in PEERS} <= names
    assert len({peer.name for peer in PEERS}) == len(PEERS)


def test_what_cannot_be_installed_is_told_with_the_reason():
    told = "import sys; sys.exit('some progress\\nERROR: nobody has it\\nmore')"

    with pytest.raises(NotInstalled, match=r"^nobody has it$"):
        check([sys.executable, "-c", told])
    with pytest.raises(NotInstalled, match="no-such-program"):
        check(["no-such-program"])


def test_a_python_that_is_too_old_is_the_reason():
    text = (
        "ERROR: Ignored the following versions that require a different python version: "
        "0.5.0 Requires-Python >=3.12; 0.7.0 Requires-Python >=3.12\n"
        "ERROR: No matching distribution found for it\n"
    )

    assert reason(text.splitlines(), text).startswith("it requires Python >=3.12, this is 3.")


def test_who_is_skipped_stands_below_the_table():
    result = {
        "date": "2030-01-01 00:00 UTC",
        "machine": {"cpu": "a", "cores": 2, "memory_gb": 1, "system": "b", "load": 0.1},
        "versions": {},
        "rows": [{"peer": "django_jobs", "jobs_per_second": 5}],
        "skipped": [{"peer": "nobody", "reason": "it is not there"}],
    }

    assert Peers().report(result).endswith("\nSkipped: nobody: it is not there")
