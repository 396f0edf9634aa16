"""A site in processes of its own, with settings that the test chooses."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.conftest import ManageProcess
from tests.databases import with_database_name
from tests.setups.poolers import PGBOUNCER

ROOT = Path(__file__).resolve().parent.parent.parent

# Where the program is not installed there is nothing to test; .ci/run says so.
collect_ignore = [] if PGBOUNCER else ["test_pgbouncer_postgresql.py"]


class Site:
    """A site on the test database: ``setup`` are its settings that differ from the tests' own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.setup: dict[str, Any] = {}
        self.started: list[ManageProcess] = []

    @property
    def environment(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self.url,
            "DJANGO_SETTINGS_MODULE": "tests.setups.settings",
            "SETUP": json.dumps(self.setup),
        }

    def start(self, *arguments: str, **more: Any) -> ManageProcess:
        """Start ``manage.py``."""
        process = ManageProcess(*arguments, env=self.environment, **more)
        self.started.append(process)
        return process

    def manage(self, *arguments: str) -> str:
        """Run ``manage.py`` to its end, and return what it printed."""
        process = self.start(*arguments)
        code = process.wait()
        assert code == 0, f"{arguments} ended with {code}:\n{process.output}"
        return process.output

    def python(self, code: str) -> str:
        """Run Python in the site, and return what it printed."""
        result = subprocess.run(
            [sys.executable, "-c", f"import django\ndjango.setup()\n{code}"],
            cwd=ROOT,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout.strip()

    def end(self) -> None:
        for process in self.started:
            process.end()
            sys.stdout.write(f"$ manage.py {' '.join(process.args)}\n{process.output}")


@pytest.fixture
def site(transactional_db: None, database_url: str) -> Iterator[Site]:
    site = Site(database_url)
    yield site
    site.end()


@pytest.fixture
def another_database(
    transactional_db: None, database_url: str, tmp_path: Path, database_name: str
) -> Iterator[str]:
    """The URL of an empty database beside the test's own."""
    if database_name == "sqlite":
        yield f"sqlite:///{tmp_path}/another.sqlite3"
        return
    name = f"another_{os.getpid()}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    yield with_database_name(database_url, name)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
