"""Run a benchmark as a user does, at a tiny size, on the database of the test run."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def benchmarks(*arguments: str) -> subprocess.CompletedProcess[str]:
    """``python -m benchmarks``, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.fixture
def run(database_name: str) -> Callable[..., dict[str, Any]]:
    """Run a benchmark on the database of the run; what it prints with --json."""

    def run(*arguments: str) -> dict[str, Any]:
        chosen = () if arguments[0] == "peers" else ("--database", database_name)
        done = benchmarks(*arguments, *chosen, "--json")
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        assert {row["database"] for row in result["rows"]} == {database_name}
        return result

    return run
