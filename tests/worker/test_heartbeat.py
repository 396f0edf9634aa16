"""The reporter of life: it renews the lease, and tells the worker what it must know, in time."""

import datetime as dt

import pytest
from django.db.utils import OperationalError

from django_jobs.worker import heartbeat as module
from django_jobs.worker.heartbeat import Reporter
from tests.waiting import eventually
from tests.worker.beats import INTERVAL, LEASE, Database, Scene, Told
from tests.worker.fakes import TIMEOUT


@pytest.fixture
def scene(monkeypatch):
    return Scene(monkeypatch)


AWAY = OperationalError("away")


def test_it_says_who_lives_and_how_much_was_done(scene):
    scene.beat()

    assert scene.database.calls == [(7, LEASE, 1, 2, 3, True)]
    assert scene.told.words == ["heard"]


def test_it_beats_on_at_its_interval_and_when_woken(started):
    told, database = Told(), Database()
    reporter = started(Reporter(told, lambda: database, LEASE, 0.01))
    eventually(lambda: len(database.calls) > 5)
    reporter.stop()
    assert reporter.join(TIMEOUT)
    assert database.closed == 1

    before = len(database.calls)
    slow = started(Reporter(told, lambda: database, LEASE, 3600.0))
    for count in range(1, 4):
        eventually(lambda count=count: len(database.calls) == before + count)
        slow.wake()


def test_a_heartbeat_that_is_asked_for_comes_while_cancel_requests_are_to_be_looked_for(started):
    database = Database()
    reporter = started(Reporter(Told(), lambda: database, LEASE, 3600.0))
    eventually(lambda: len(database.calls) == 1)
    reporter.look()
    reporter.wake()
    eventually(lambda: len(database.calls) == 2)


# -- looking for cancel requests, between two heartbeats --------------------------------------------------------------


class Looks:
    """The wait for the next heartbeat, in time that the test makes: when it is hinted, and when looked."""

    SECONDS = 60.0

    def __init__(self, monkeypatch, hints):
        scene = Scene(monkeypatch, interval=self.SECONDS)
        self.clock, self.reporter, self.words = scene.clock, scene.reporter, scene.told.words
        self.start = self.clock.seconds
        monkeypatch.setattr(module, "until", lambda moment: max(0.0, moment - self.clock.seconds))
        self.to_come = [*hints]
        self.hints, self.looks, self.rests = [], [], 0
        self.reporter._rest = self.rest
        scene.database.cancel_requests = self.look
        Reporter._until_next(self.reporter, scene.database)

    @property
    def now(self):
        return self.clock.seconds - self.start

    def rest(self, seconds):
        self.rests += 1
        if not self.to_come or self.to_come[0] > self.now + seconds:
            self.clock.advance(seconds)
            return False
        self.clock.advance(max(0.0, self.to_come.pop(0) - self.now))
        self.hints.append(self.now)
        self.reporter.look()
        return True

    def look(self, worker_id):
        self.looks.append(self.now)
        return frozenset()


def every(seconds):
    return [number * seconds for number in range(1, int(50 / seconds))]


@pytest.mark.parametrize(
    "hints",
    [every(0.001), every(0.01), every(0.2), every(0.26), every(7), [5.0, 5.01, 20.0, 20.2, 20.24]],
    ids=["a storm", "many", "just too many", "just not", "few", "bursts"],
)
def test_a_hint_is_followed_by_a_look_within_a_second_and_a_flood_of_them_by_few(monkeypatch, hints):
    made = Looks(monkeypatch, hints)

    assert len(made.hints) == len(hints)
    for moment in made.hints:
        assert any(moment <= look <= moment + 1 for look in made.looks), "a job is told within a second"
    assert len(made.looks) <= min(len(hints), made.SECONDS / module.LOOK_SECONDS)
    assert made.words == ["cancel"] * len(made.looks), "what it found is told each time"


def test_without_a_hint_nothing_is_looked_for(monkeypatch):
    made = Looks(monkeypatch, [])

    assert (made.looks, made.rests) == ([], 1)


# -- errors and doubt -------------------------------------------------------------------------------------------------


def test_errors_within_the_lease_are_no_reason_to_doubt(scene):
    scene.beat()
    for _ in range(5):
        scene.clock.advance(LEASE / 6)
        scene.beat(AWAY)

    assert scene.told.words == ["heard"]
    scene.beat()
    assert scene.told.words == ["heard", "heard"]


def test_errors_past_the_lease_are(scene):
    scene.beat()
    scene.clock.advance(LEASE)
    scene.beat(AWAY)
    scene.beat(AWAY)
    assert scene.told.words == ["heard", "doubt", "doubt"]

    scene.beat()
    assert scene.told.words[-1] == "heard"


def test_the_end_of_the_lease_is_noticed_in_time(scene, monkeypatch):
    """The pauses after errors grow, but not beyond the moment from which the claims are in doubt."""
    monkeypatch.setattr(module, "pause_after", lambda failures: 10.0, raising=False)
    scene.beat()
    end = scene.clock.seconds + LEASE
    while scene.told.words == ["heard"]:
        pause = scene.beat(AWAY)
        assert 0 < pause <= INTERVAL
        if scene.told.words == ["heard"]:
            assert scene.clock.seconds + pause <= end + 1e-6
        scene.clock.advance(pause)

    assert scene.clock.seconds <= end + INTERVAL


def test_in_doubt_the_database_is_not_asked_without_a_pause(scene):
    scene.beat()
    scene.clock.advance(10 * LEASE)
    for _ in range(10):
        pause = scene.beat(AWAY)

    assert pause > INTERVAL / 4


def test_the_lease_counts_from_when_the_heartbeat_was_sent(scene):
    """The answer may be long under way, and the lease runs meanwhile."""
    scene.database.takes = 9.0
    scene.beat()
    scene.database.takes = 0.0
    scene.clock.advance(LEASE - 9.0)
    scene.beat(AWAY)

    assert scene.told.words == ["heard", "doubt"]


def test_a_new_lease_counts_from_its_registration(scene):
    scene.clock.advance(10 * LEASE)
    scene.reporter.renewed(scene.clock.seconds)
    scene.beat(AWAY)

    assert scene.told.words == []


# -- given up ---------------------------------------------------------------------------------------------------------


def test_a_worker_that_was_given_up_goes_on_under_a_new_id_at_once(scene):
    rests = []
    scene.reporter._until_next = rests.append
    scene.beat()
    scene.beat(None)
    scene.beat()

    assert scene.told.words == ["heard", "given up", "heard"]
    assert [call[0] for call in scene.database.calls] == [7, 7, 8]
    assert len(rests) == 2, "it waited under the id that was given up"


def test_a_new_id_that_can_not_be_had_is_tried_for_again(scene):
    scene.told.error = AWAY
    scene.beat(None)
    scene.beat(None)
    scene.told.error = None
    scene.beat(None)
    scene.beat()

    assert scene.told.words == ["given up", "given up", "given up", "heard"]


# -- trust ------------------------------------------------------------------------------------------------------------


def test_trust_begins_with_the_first_heartbeat_and_grows(scene):
    assert scene.reporter.healthy_for == 0.0
    scene.beat()
    for _ in range(10):
        scene.clock.advance(INTERVAL)
        scene.beat()

    assert scene.reporter.healthy_for == 10 * INTERVAL


@pytest.mark.parametrize("answer", [AWAY, None], ids=["error", "given up"])
def test_trust_begins_anew_after_a_heartbeat_that_did_not_come_through(scene, answer):
    scene.beat()
    scene.clock.advance(INTERVAL)
    scene.beat()
    scene.beat(answer)
    assert scene.reporter.healthy_for == 0.0

    scene.beat()
    scene.clock.advance(1.0)
    assert scene.reporter.healthy_for == 1.0


@pytest.mark.parametrize("delay", [LEASE - INTERVAL + 1, LEASE + 1, 100 * LEASE])
def test_there_is_no_trust_after_a_host_stood_still(scene, delay):
    """As long as nothing ran here, no lease of this host was renewed: all workers look lost, and none is."""
    scene.beat()
    scene.clock.advance(INTERVAL)
    scene.beat()
    scene.clock.advance(delay)
    assert scene.reporter.healthy_for == 0.0, "before the first heartbeat afterwards, too"

    scene.beat()
    assert scene.reporter.healthy_for == 0.0
    scene.clock.advance(1.0)
    assert scene.reporter.healthy_for == 1.0


def test_there_is_no_trust_after_a_host_slept(scene):
    """Its monotonic clock stood still with it; the database's time, which the leases go by, did not."""
    scene.beat()
    scene.clock.advance(LEASE)
    scene.beat()
    scene.clock.wall += dt.timedelta(hours=1)
    scene.clock.advance(INTERVAL)
    scene.beat()
    assert scene.reporter.healthy_for == 0.0

    scene.clock.advance(1.0)
    assert scene.reporter.healthy_for == 1.0


def test_there_is_no_trust_after_the_clock_was_set_back(scene):
    """Who has renewed its lease before that seems to have done so in the future, as the dead have."""
    scene.beat()
    scene.clock.advance(LEASE)
    scene.beat()
    scene.database.offset = -60.0
    scene.clock.advance(INTERVAL)
    scene.beat()
    assert scene.reporter.healthy_for == 0.0

    scene.clock.advance(1.0)
    scene.beat()
    assert scene.reporter.healthy_for == 1.0


def test_there_is_trust_where_the_interval_is_half_of_the_lease(monkeypatch):
    """The longest that the checks allow."""
    scene = Scene(monkeypatch, lease=10.0, interval=5.0)
    scene.beat()
    for _ in range(4):
        scene.clock.advance(5.3)
        scene.beat()

    assert scene.reporter.healthy_for > 20.0


# -- clocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "words"), [(-7200.0, "7200.0 s ahead of"), (7200.0, "7200.0 s behind")])
def test_a_wrong_clock_is_told_once(scene, caplog, offset, words):
    scene.database.offset = offset
    for _ in range(3):
        scene.beat()

    assert scene.reporter.skew == -offset
    assert caplog.text.count("This host's clock is") == 1
    assert words in caplog.text


def test_a_small_difference_is_not_told(scene, caplog):
    scene.database.offset = 1.5
    scene.beat()

    assert scene.reporter.skew == -1.5
    assert "clock" not in caplog.text


@pytest.mark.parametrize("offset", [0.0, 4.0, 8.0])
def test_an_answer_that_was_long_under_way_is_no_wrong_clock(scene, caplog, offset):
    scene.database.takes, scene.database.offset = 8.0, offset
    scene.beat()

    assert scene.reporter.skew == 0.0
    assert "clock" not in caplog.text


# -- on the database --------------------------------------------------------------------------------------------------


def test_on_the_database(open_store, store, started):
    worker = store.register_worker("host", 1, "[]", 4, "1", 30.0)
    other = store.register_worker("host", 1, "[]", 4, "1", 30.0)
    told = Told()
    told.worker_id = worker.id
    heard = []
    told.heard = heard.append
    told.given_up = lambda own_store: setattr(told, "worker_id", other.id)
    reporter = started(Reporter(told, open_store, 30.0, 3600.0))
    eventually(lambda: len(heard) == 1)
    assert heard[0].worker.id == worker.id

    store.upsert_queue("mail", pause=True)
    reporter.wake()
    eventually(lambda: len(heard) == 2)
    assert heard[1].paused == {"mail"}

    store.stop_worker(worker.id)  # as good as lost
    reporter.wake()
    eventually(lambda: len(heard) == 3)
    assert heard[2].worker.id == other.id


@pytest.mark.postgresql
def test_a_connection_that_is_killed_costs_one_beat(open_store, store, started):
    worker = store.register_worker("host", 1, "[]", 4, "1", 30.0)
    told = Told()
    told.worker_id = worker.id
    opened = []

    def open_noted():
        opened.append(open_store())
        return opened[-1]

    reporter = started(Reporter(told, open_noted, 30.0, 3600.0))
    eventually(lambda: told.words == ["heard"])
    pid = opened[0].session.connection.info.backend_pid
    store.session.connection.execute("SELECT pg_terminate_backend(%s::integer, 10000)", (pid,))
    reporter.wake()
    eventually(lambda: told.words == ["heard", "heard"])

    assert opened[0].session.connects == 2
