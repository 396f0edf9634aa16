"""A worker with nothing to do asks the database a bounded number of times, each for a reason that has a period."""

import time
from collections import Counter

import pytest

from django_jobs.store import sqlite_session
from django_jobs.store.sessions import OwnSession
from django_jobs.worker import archive, keeper, listener, ticker
from django_jobs.worker.worker import POLL_STRETCH
from tests.waiting import eventually

HEARTBEAT, LEASE, POLL = 0.5, 3.0, 0.1
RENEWAL = LEASE * keeper.LEADERSHIP_PART / keeper.RENEWALS
RESCUE = LEASE / 3
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


def per_second(database_name: str) -> dict[str, float]:
    """How often each statement may be run, with those settings."""
    renewals, beats, rescues = 1 / RENEWAL, 1 / HEARTBEAT, 1 / RESCUE
    looks = 1 / ticker.REFRESH_SECONDS
    rates = {
        "heartbeat": beats,
        "acquire_leadership": renewals,
        "lose_workers": rescues,
        "rescue": rescues,
        "due_schedules": looks,
        # Whenever the keeper goes round: for each of its own reasons, which may wake it a moment before.
        "next_due": 2 * (renewals + rescues + looks),
        "waiting_queues": 1 / (POLL * POLL_STRETCH),
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

    allowed = {name: rate * elapsed + SPARE for name, rate in per_second(database_name).items()}
    assert counted.keys() <= allowed.keys()
    assert {name: (number, allowed[name]) for name, number in counted.items() if number > allowed[name]} == {}
    assert counted["acquire_leadership"] >= 1
