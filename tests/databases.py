"""A pytest plugin that chooses the database of the run: ``--database sqlite`` (default) or ``postgresql``.

The choice is made before Django's settings are read. SQLite needs nothing. PostgreSQL is the server that
``DATABASE_URL`` names, if it names one, else a server that is started for this run (``tests.servers``; the
variable ``PG_BINDIR`` chooses its version).
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

SQLITE = "sqlite"
POSTGRESQL = "postgresql"
DATABASES = (SQLITE, POSTGRESQL)


@dataclass(frozen=True, slots=True)
class Database:
    name: str
    url: str
    description: str


DATABASE = pytest.StashKey[Database]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("django_jobs").addoption(
        "--database", choices=DATABASES, default=SQLITE, help="The database of the run. Default: sqlite."
    )


@pytest.hookimpl(wrapper=True)  # a wrapper comes before pytest-django, which reads the settings here
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    options = early_config.known_args_namespace
    resources = contextlib.ExitStack()
    early_config.add_cleanup(resources.close)
    if options.database == POSTGRESQL and not (options.help or options.version):
        database = postgresql(resources)
    else:
        database = sqlite(resources)
    os.environ["DATABASE_URL"] = database.url
    early_config.stash[DATABASE] = database
    return (yield)


def sqlite(resources: contextlib.ExitStack) -> Database:
    folder = tempfile.mkdtemp(prefix="django-jobs-")
    resources.callback(shutil.rmtree, folder, ignore_errors=True)
    return Database(SQLITE, f"sqlite:///{folder}/db.sqlite3", f"SQLite {sqlite3.sqlite_version}")


def postgresql(resources: contextlib.ExitStack) -> Database:
    url = os.environ.get("DATABASE_URL", "")
    if url.startswith(("postgres:", "postgresql:")):
        return Database(POSTGRESQL, url, "PostgreSQL of DATABASE_URL")

    from tests.servers import PostgresServer, ServerError

    try:
        server = PostgresServer()
        resources.callback(server.remove)
        server.start()
    except ServerError as exc:
        raise pytest.UsageError(str(exc)) from exc
    return Database(
        POSTGRESQL, server.url("django_jobs"), f"PostgreSQL {server.version}, started for this run"
    )


def pytest_report_header(config: pytest.Config) -> str:
    return f"database: {config.stash[DATABASE].description}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of tests for PostgreSQL may import its driver, which a run on SQLite does not need to have."""
    wanted = config.stash[DATABASE].name == POSTGRESQL
    return None if wanted or not collection_path.name.endswith("_postgresql.py") else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test of one database is deselected on the other, not skipped: there is nothing to make up for."""
    chosen = config.stash[DATABASE].name
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        wanted = [name for name in DATABASES if item.get_closest_marker(name)]
        (kept if not wanted or chosen in wanted else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def with_database_name(url: str, name: str) -> str:
    """The same server, another database."""
    if url.startswith("sqlite:"):
        return f"sqlite:///{name}"
    address, question_mark, options = url.partition("?")
    server, slash, _ = address.rpartition("/")
    return server + slash + name + question_mark + options
