"""A worker with nothing to do asks the database a bounded number of times, each for a reason that has a period."""

import time
from collections import Counter
from pathlib import Path

import pytest

from django_jobs import conf
from django_jobs.store import sqlite_session
from django_jobs.store.sessions import OwnSession
from django_jobs.worker import archive, keeper, listener, ticker
from django_jobs.worker.worker import POLL_STRETCH
from tests.waiting import eventually

HEARTBEAT, LEASE, POLL = 0.5, 3.0, 0.1
PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "endurance.md"
# After each commit the listener on SQLite looks at the file's version for a tenth of a second: first after 1 ms,
# then after twice as long each time, up to 10 ms; and once before, and once when all is quiet.
LOOKS = 4 + 10 + 2
# Each may come a little early, or have begun before it is counted.
SPARE = 3


@pytest.fixture
def asked(monkeypatch):
    """How often each statement is run by the worker's own connections."""
    names: Counter[str] = Counter()
    fetch = OwnSession.fetch
    version = sqlite_session.SQLiteSession.data_version

    def noting(self, statement, parameters):
        names[statement.name] += 1
        return fetch(self, statement, parameters)

    def noting_version(self):
        names["data_version"] += 1
        return version(self)

    monkeypatch.setattr(OwnSession, "fetch", noting)
    monkeypatch.setattr(sqlite_session.SQLiteSession, "data_version", noting_version)
    return names


def per_second(database_name: str, heartbeat: float, lease: float, poll: float) -> dict[str, float]:
    """How often each statement may be run, with such settings."""
    renewals, beats, rescues = keeper.RENEWALS / (lease * keeper.LEADERSHIP_PART), 1 / heartbeat, 3 / lease
    looks = 1 / ticker.REFRESH_SECONDS
    rates = {
        "heartbeat": beats,
        "acquire_leadership": renewals,
        "lose_workers": rescues,
        "rescue": rescues,
        "due_schedules": looks,
        # Whenever the keeper goes round: for each of its own reasons, which may wake it a moment before.
        "next_due": 2 * (renewals + rescues + looks),
        "waiting_queues": 1 / (poll * POLL_STRETCH),
        "purge": 3 / keeper.PURGE_SECONDS,
        "purge_workers": 1 / keeper.PURGE_SECONDS,
        "unfolded_stats": 2 / archive.LOOK_SECONDS,
        "purge_stats": 1 / archive.LOOK_SECONDS,
        "listen": 1 / listener.CHECK_SECONDS,
    }
    if database_name == "sqlite":
        commits = (
            beats + renewals
        )  # of this worker's own connections: of them, too, a file tells only that it was written
        rates |= {
            "next_due": rates["next_due"] + commits,
            "waiting_queues": rates["waiting_queues"] + commits,
            "data_version": LOOKS * commits + 1,
        }
        del rates["listen"]
    return rates


def test_an_idle_worker_asks_no_more_than_its_periods_say(live, asked, database_name):
    worker = live(heartbeat_interval=HEARTBEAT, lease=LEASE, poll_interval=POLL)
    eventually(lambda: worker.listener.healthy and worker.keeper.leads)
    eventually(lambda: all(pool.producer.found_nothing for pool in worker.pools))
    asked.clear()
    began = time.monotonic()
    eventually(lambda: asked["heartbeat"] >= 5)
    counted = dict(asked)
    elapsed = time.monotonic() - began

    rates = per_second(database_name, HEARTBEAT, LEASE, POLL)
    allowed = {name: rate * elapsed + SPARE for name, rate in rates.items()}
    assert counted.keys() <= allowed.keys()
    assert {name: (number, allowed[name]) for name, number in counted.items() if number > allowed[name]} == {}
    assert counted["acquire_leadership"] >= 1


def test_the_documentation_says_how_many_that_is():
    page = " ".join(PAGE.read_text("utf-8").split())
    settings = conf.get("HEARTBEAT_INTERVAL"), conf.get("LEASE"), conf.get("POLL_INTERVAL")

    on_postgresql = 60 * sum(per_second("postgresql", *settings).values())
    on_sqlite = {name: 60 * rate for name, rate in per_second("sqlite", *settings).items()}
    looks = on_sqlite.pop("data_version")

    assert f"at most {on_postgresql:.0f} in a minute on PostgreSQL" in page
    assert (
        f"On SQLite at most {sum(on_sqlite.values()):.0f}, and {looks:.0f} looks at the file's version"
        in page
    )
