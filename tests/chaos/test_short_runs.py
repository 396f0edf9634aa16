"""A short run of each command, with a seed that stays. The long runs, with others, are by hand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import ServerError, find_binaries

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def server_of_its_own(database_name: str) -> None:
    """On PostgreSQL a run starts a server, which it ill-treats: the one that DATABASE_URL names would not do."""
    if database_name == "postgresql":
        try:
            find_binaries()
        except ServerError as error:
            pytest.skip(str(error))


def run(module: str, *arguments: str) -> str:
    """Run a command in a process of its own; its output. It is ended in order if it takes too long."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.chaos.settings"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        output, _ = process.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        process.terminate()
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 0, output
    return output


# With these seeds a worker is killed that no supervisor has: its jobs are rescued, or stuck.
@pytest.mark.parametrize(
    ("seed", "seconds", "lease"),
    [
        pytest.param("29", "3", "0.8", marks=pytest.mark.sqlite),
        pytest.param("7", "8", "1.2", marks=pytest.mark.postgresql),
    ],
)
def test_nothing_is_lost_and_nothing_is_stuck(database_name, seed, seconds, lease):
    output = run(
        "tests.chaos", "--seed", seed, "--database", database_name, "--seconds", seconds, "--lease", lease,
        "--patience", "45",
    )  # fmt: skip
    assert "nothing lost, nothing stuck, effects exact" in output


def test_a_storm_of_operations_meets_no_error_and_leaves_an_exact_tally(database_name):
    output = run(
        "tests.chaos.storm", "--seed", "7", "--database", database_name, "--seconds", "2", "--processes", "2"
    )
    assert "the tally is exact" in output
