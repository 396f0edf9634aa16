"""The command line of the benchmarks, and what they print."""

import subprocess
import sys

import pytest

from benchmarks.__main__ import COMMANDS
from benchmarks.core.output import Column, conditions, describe, medians, percentile, table
from tests.benchmarks.conftest import ROOT, benchmarks


@pytest.mark.parametrize("name", COMMANDS)
def test_each_benchmark_has_a_help(name):
    done = benchmarks(name, "--help")

    assert done.returncode == 0, done.stderr
    assert f"python -m benchmarks {name}" in done.stdout


def test_all_benchmarks_are_listed():
    done = benchmarks("--help")

    assert done.returncode == 0
    for name, about in COMMANDS.items():
        assert f"{name:<11} {about}\n" in done.stdout


def test_an_unknown_benchmark_is_refused_with_the_list():
    done = benchmarks("drian")

    assert done.returncode == 2
    assert "drain" in done.stdout


def test_a_table_is_aligned_and_has_no_empty_columns():
    columns = [
        Column("name", "name"),
        Column("rate", "jobs/s"),
        Column("cpu", "µs", ".1f"),
        Column("none", "none"),
    ]

    drawn = table(columns, [{"name": "a", "rate": 1234.6}, {"name": "bcdef", "cpu": 2.25}])

    assert drawn.splitlines() == [
        "| name  | jobs/s |  µs |",
        "|-------|-------:|----:|",
        "| a     |  1,235 |   - |",
        "| bcdef |      - | 2.2 |",
    ]


def test_medians_are_of_numbers():
    assert medians(
        [{"a": "x", "b": 1, "c": None}, {"a": "x", "b": 3, "c": None}, {"a": "x", "b": 10, "c": None}]
    ) == {
        "a": "x",
        "b": 3,
        "c": None,
    }


@pytest.mark.parametrize(("part", "value"), [(0.0, 1), (0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100)])
def test_a_percentile_is_one_of_the_values(part, value):
    assert percentile([*range(100, 0, -1)], part) == value


def test_the_conditions_name_machine_versions_and_date():
    found = conditions()

    line = describe(found)

    assert found["date"] in line
    assert f"{found['machine']['cores']} cores" in line
    assert f"django {found['versions']['django']}" in line
    assert "-" not in found["machine"]["system"]


def test_a_benchmark_of_both_databases_runs_each_in_a_process_of_its_own(database_url):
    done = benchmarks(
        "limit", "--jobs", "100", "--rounds", "1", "--database", "sqlite", "--database", "sqlite"
    )

    assert done.returncode == 0, done.stderr
    assert len([line for line in done.stdout.splitlines() if line.startswith("| sqlite ")]) == 2


def test_the_proxy_is_a_process_of_its_own_that_ends_with_its_use():
    code = (
        "import socket, threading, time\n"
        "from benchmarks.core.proxy import proxy\n"
        "from urllib.parse import urlsplit\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "def echo():\n"
        "    end, _ = server.accept()\n"
        "    end.sendall(end.recv(10))\n"
        "threading.Thread(target=echo, daemon=True).start()\n"
        "with proxy(f'postgres://u:p@127.0.0.1:{server.getsockname()[1]}/x', 30) as url:\n"
        "    assert urlsplit(url).path == '/x' and urlsplit(url).username == 'u', url\n"
        "    client = socket.create_connection(('127.0.0.1', urlsplit(url).port))\n"
        "    began = time.monotonic()\n"
        "    client.sendall(b'hello')\n"
        "    assert client.recv(10) == b'hello'\n"
        "    print('late' if time.monotonic() - began >= 0.03 else 'early')\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], check=False, cwd=ROOT, capture_output=True, text=True, timeout=60
    )

    assert (done.stdout, done.returncode) == ("late\n", 0), done.stderr
