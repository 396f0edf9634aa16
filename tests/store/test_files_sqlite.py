"""SQLite goes on with a file that was deleted, or replaced by a backup: a worker must notice, and nobody else would."""

import contextlib
import sqlite3
from pathlib import Path

import pytest
from django.db import OperationalError, connection, connections

from django_jobs.store import own_store
from django_jobs.store.rows import NewJob

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True), pytest.mark.timeout(30)]


@pytest.fixture
def copies(tmp_path):
    """Three files with the tables, and nothing in them."""
    connection.ensure_connection()
    paths = [tmp_path / f"{name}.sqlite3" for name in "abc"]
    for path in paths:
        with contextlib.closing(sqlite3.connect(path)) as target:
            connection.connection.backup(target)
    return paths


@pytest.fixture
def open_own(monkeypatch):
    """The store of a worker's own on a file of that name."""
    opened = []

    def open_one(name):
        monkeypatch.setitem(connections.settings["default"], "NAME", str(name))
        opened.append(own_store("default"))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def jobs_in(path):
    with contextlib.closing(sqlite3.connect(path)) as reader:
        return [id_ for (id_,) in reader.execute("SELECT id FROM django_jobs_job")]


def restore(copy, path):
    """Put a copy in the place of a database that is in use."""
    for left in ("-wal", "-shm"):
        Path(f"{path}{left}").unlink(missing_ok=True)
    copy.replace(path)


def test_a_file_that_was_replaced_is_opened_anew(copies, open_own, caplog):
    store = open_own(copies[0])
    old = [job.id for job in store.insert_many([NewJob("tests.replaced")] * 5)]
    restore(copies[1], copies[0])
    site = open_own(copies[0])
    theirs = site.insert(NewJob("tests.replaced")).id
    log = Path(f"{copies[0]}-wal")
    before = log.stat().st_ino

    assert [job.id for job in store.get([*old, theirs])] == [theirs]
    mine = store.insert(NewJob("tests.replaced")).id
    store.close()

    assert log.stat().st_ino == before, "the log of the new file is not the old one's to delete"
    assert jobs_in(copies[0]) == [theirs, mine]
    assert f"{copies[0]} was replaced" in caplog.text
    assert store.session.connects == 2


def test_a_file_that_was_deleted_is_waited_for(copies, open_own):
    store = open_own(copies[0])
    job = store.insert(NewJob("tests.deleted"))

    copies[0].unlink()
    for look in (
        lambda: store.get([job.id]),
        store.session.data_version,
        lambda: store.insert(NewJob("tests.deleted")),
    ):
        with pytest.raises(OperationalError, match="was deleted or moved away"):
            look()
    assert not copies[0].exists(), "an empty one in its place would be taken for it"
    restore(copies[2], copies[0])
    assert store.get([job.id]) == []


def test_a_file_is_found_from_another_folder(copies, open_own, monkeypatch, tmp_path):
    """A job may change the folder, and a connection be opened anew after that."""
    monkeypatch.chdir(tmp_path)
    store = open_own(copies[0].name)
    job = store.insert(NewJob("tests.folder"))
    other = tmp_path / "other"
    other.mkdir()

    monkeypatch.chdir(other)
    store.close()

    assert [each.id for each in store.get([job.id])] == [job.id]
    assert list(Path.cwd().iterdir()) == []
