"""The databases that are measured: a PostgreSQL server with its defaults, or that of DATABASE_URL; a file of SQLite."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

VENDORS = ("sqlite", "postgresql")


@dataclass(frozen=True)
class Database:
    """An empty database.

    :param url: as ``DATABASE_URL``.
    :param version: ``PostgreSQL 18.1``.
    :param folder: a folder of this run, for files.
    """

    vendor: str
    url: str
    version: str
    folder: Path

    @property
    def file(self) -> Path:
        """The file, of SQLite."""
        return Path(self.url.removeprefix("sqlite:///"))


@contextlib.contextmanager
def open_database(vendor: str) -> Iterator[Database]:
    """An empty database, gone afterwards."""
    with contextlib.ExitStack() as resources:
        folder = Path(tempfile.mkdtemp(prefix="benchmarks-"))
        resources.callback(shutil.rmtree, folder, ignore_errors=True)
        if vendor == "sqlite":
            url = f"sqlite:///{folder}/db.sqlite3"
            yield Database(vendor, url, f"SQLite {sqlite3.sqlite_version}", folder)
            return
        server = resources.enter_context(open_server())
        name = f"benchmarks_{os.getpid()}"
        url = with_name(server, name)
        version = resources.enter_context(_created(server, name))
        yield Database(vendor, url, version, folder)


@contextlib.contextmanager
def open_server() -> Iterator[str]:
    """The URL of a server: that of DATABASE_URL, or one of our own, with PostgreSQL's defaults of writing to disk."""
    given = os.environ.get("BENCHMARKS_SERVER") or os.environ.get("DATABASE_URL", "")
    if given.startswith(("postgres:", "postgresql:")):
        yield with_name(given, "postgres")
        return
    from tests.servers import PostgresServer

    server = PostgresServer(settings={"fsync": "on"})
    try:
        server.start()
        yield server.url()
    finally:
        server.remove()


@contextlib.contextmanager
def _created(server: str, name: str) -> Iterator[str]:
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
        version = connection.info.parameter_status("server_version") or "?"
    with (
        contextlib.suppress(psycopg.Error),
        psycopg.connect(with_name(server, name), autocommit=True) as connection,
    ):
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    try:
        yield f"PostgreSQL {version.split()[0]}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def with_name(url: str, name: str) -> str:
    """The same server, another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def with_address(url: str, port: int) -> str:
    """The same database, reached through a port of this host."""
    parts = urlsplit(url)
    login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return urlunsplit(parts._replace(netloc=f"{login}127.0.0.1:{port}"))
