"""The keeper: one leader promotes what is due, rescues what lost workers held, and purges what is past its time."""

import json
import threading
from types import SimpleNamespace

import pytest
from django.db import connection
from django.db.utils import OperationalError

from django_jobs.models import Job, Leadership, Stat, Worker
from django_jobs.store.rows import NewJob
from django_jobs.worker import keeper as module, parts, retention
from django_jobs.worker.keeper import Keeper
from tests.waiting import eventually
from tests.worker.fakes import TIMEOUT

# The leadership lasts half of this.
LEASE = 1.0


@pytest.fixture
def make(open_store):
    """A keeper on the database, with what it has told in ``woken``."""

    def make(lease=LEASE, trusted=3600.0):
        woken = []
        keeper = Keeper(open_store, lease, lambda: keeper.trusted, woken.append)
        keeper.woken, keeper.trusted = woken, trusted
        return keeper

    return make


@pytest.fixture
def keeper(make, started):
    keeper = started(make(lease=30.0))
    eventually(lambda: keeper.leads)
    return keeper


def states():
    return dict(Job.objects.values_list("id", "state"))


def insert(store, count=1, **options):
    return [job.id for job in store.insert_many([NewJob(**{"name": "tests.job", **options})] * count)]


def age(ids, **times):
    """Move moments of rows into the past: by that many seconds."""
    with connection.cursor() as cursor:
        for column, seconds in times.items():
            if connection.vendor == "postgresql":
                change = f"{column} - interval '{seconds} seconds'"
            else:
                change = f"strftime('%Y-%m-%d %H:%M:%f', {column}, '-{seconds} seconds') || '000'"
            cursor.execute(
                f"UPDATE django_jobs_job SET {column} = {change} WHERE id IN ({','.join(map(str, ids))})"
            )


def lost_worker(store, jobs=1, **options):
    """The ids of jobs that a worker held whose lease has run out."""
    worker = store.register_worker("host", 1, "[]", 4, "1", -1.0)
    ids = insert(store, jobs, **options)
    assert len(store.claim(worker.id, "default", jobs)) == jobs
    return ids


# -- leadership -------------------------------------------------------------------------------------------------------


def test_one_of_two_leads(make, started):
    keepers = [started(make()), started(make())]
    eventually(lambda: any(keeper.leads for keeper in keepers))
    for _ in range(20):
        for keeper in keepers:
            keeper.wake()
        threading.Event().wait(0.02)
        assert sum(keeper.leads for keeper in keepers) == 1

    assert Leadership.objects.get().holder in {keeper.holder for keeper in keepers}


def test_the_other_one_leads_as_soon_as_the_leader_resigns(make, started):
    first = started(make(lease=3600.0))
    eventually(lambda: first.leads)
    second = make(lease=3600.0)
    first.stop()
    assert first.join(TIMEOUT)
    assert not first.leads

    started(second)
    eventually(lambda: second.leads)
    assert second.term == first.term + 1


def test_the_other_one_leads_when_the_leadership_of_a_dead_one_has_run_out(make, store, started):
    store.acquire_leadership(module.LEADERSHIP, "dead", 0.3)
    second = started(make())
    assert not second.leads

    eventually(lambda: second.leads)
    assert second.term == 2


def test_a_leader_that_was_late_learns_that_another_one_leads(make, store, started):
    keeper = started(make())
    eventually(lambda: keeper.leads)
    store.resign_leadership(module.LEADERSHIP, keeper.holder)
    assert store.acquire_leadership(module.LEADERSHIP, "another", 3600.0)

    eventually(lambda: not keeper.leads)


def test_a_keeper_that_does_not_lead_does_nothing(make, store, started):
    store.acquire_leadership(module.LEADERSHIP, "another", 3600.0)
    (running,), (due,) = lost_worker(store), insert(store)
    Job.objects.filter(id=due).update(state="scheduled")
    keeper = started(make())
    eventually(lambda: keeper._renew_at)
    for _ in range(10):
        keeper.wake()
        threading.Event().wait(0.01)

    assert states() == {due: "scheduled", running: "running"}


def test_started_again_it_runs_for_the_leadership_at_once(make, started):
    keeper = started(make(lease=3600.0))
    eventually(lambda: keeper.leads)
    keeper.stop()
    assert keeper.join(TIMEOUT)
    keeper.start()

    eventually(lambda: keeper.leads)


def test_a_resignation_that_fails_does_not_keep_it_from_ending(make, started):
    keeper = started(make())
    eventually(lambda: keeper.leads)

    def fail(*args):
        raise OperationalError("away")

    keeper.store.resign_leadership = fail
    keeper.stop()

    assert keeper.join(TIMEOUT)
    assert not keeper.leads


# -- promotion --------------------------------------------------------------------------------------------------------


def test_a_job_becomes_available_soon_after_it_is_due_without_a_wake_up(make, store, started):
    """The keeper knows when the next one is due, and sleeps until then."""
    (later,) = insert(store, delay=0.3, queue_name="mail")
    keeper = started(make(lease=3600.0))

    eventually(lambda: states()[later] == "available")
    assert keeper.woken == ["mail"]


def test_a_job_that_is_due_before_all_others_is_seen_when_the_keeper_is_woken(keeper, store):
    insert(store, delay=3600.0)
    keeper.wake()
    (sooner,) = insert(store, delay=0.2)
    keeper.wake()

    eventually(lambda: states()[sooner] == "available")


def test_only_what_is_due_is_promoted(keeper, store):
    (due,), (later,) = insert(store, delay=0.05), insert(store, delay=3600.0)
    keeper.wake()
    eventually(lambda: states()[due] == "available")

    assert states()[later] == "scheduled"


def test_a_crowd_is_promoted_in_batches_and_each_queue_is_told(keeper, store, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 10)
    ids = [*insert(store, 25, queue_name="a"), *insert(store, 25, queue_name="b")]
    Job.objects.filter(id__in=ids).update(state="scheduled")
    keeper.wake()
    eventually(lambda: set(states().values()) == {"available"})

    assert set(keeper.woken) == {"a", "b"}


def test_with_nothing_due_a_wake_up_costs_one_statement(keeper, store):
    """Wake-ups come with every commit on SQLite."""
    insert(store, delay=3600.0)
    looks = []
    real = keeper.store.next_due
    keeper.store.next_due = lambda: looks.append(1) or real()
    keeper.store.promote = None
    before = keeper.store.session.statements
    for count in range(1, 11):
        keeper.wake()
        eventually(lambda count=count: len(looks) >= count)
    eventually(lambda: keeper.store.session.statements - before >= 10)

    # A few more are those of the schedules, which are looked at now and then.
    assert keeper.store.session.statements - before <= len(looks) + 5
    assert keeper.failures == 0


@pytest.mark.postgresql
def test_a_due_job_that_somebody_holds_is_not_asked_for_without_a_pause(keeper, store, open_store):
    (held,) = insert(store, delay=0.05)
    raw = open_store().session.connection
    with raw.transaction():
        raw.execute("SELECT 1 FROM django_jobs_job WHERE id = %s FOR UPDATE", (held,))
        keeper.wake()
        before = keeper.store.session.statements
        threading.Event().wait(0.3)
        assert keeper.store.session.statements - before < 50
        assert states()[held] == "scheduled"

    eventually(lambda: states()[held] == "available")


# -- rescue -----------------------------------------------------------------------------------------------------------


def test_the_jobs_of_a_lost_worker_are_made_available_again(make, store, started, caplog):
    ids = lost_worker(store, 3)
    keeper = started(make(lease=0.3))
    eventually(lambda: set(states().values()) == {"available"})

    assert Worker.objects.get().lost_at is not None
    for job in Job.objects.all():
        assert (job.attempt, job.claims) == (1, 1)
        assert [error["class"] for error in job.errors] == ["django_jobs.WorkerLost"]
    assert "is lost" in caplog.text
    assert f"Job {ids[0]} tests.job (attempt 1 of 5)" in caplog.text
    assert set(keeper.woken) == {"default"}


def test_those_that_have_no_attempt_left_are_dead_letters(make, store, started):
    lost_worker(store, max_attempts=1)
    started(make(lease=0.3))

    eventually(lambda: set(states().values()) == {"failed"})


def test_rescued_jobs_come_back_spread_over_part_of_a_lease(make, store):
    lost_worker(store, 30)
    keeper = make(lease=3000.0)
    keeper.rescue()

    due = list(Job.objects.values_list("run_after", flat=True))
    assert set(states().values()) == {"scheduled"}
    assert (max(due) - min(due)).total_seconds() > 100


@pytest.mark.parametrize("trusted", [0.0, 29.0])
def test_nobody_is_rescued_before_the_own_heartbeats_came_for_a_full_lease(make, store, started, trusted):
    """After an outage of the database every worker's lease looks expired."""
    lost_worker(store)
    keeper = started(make(lease=30.0, trusted=trusted))
    eventually(lambda: keeper.leads)
    for _ in range(5):
        keeper._rescue_at = 0.0
        keeper.wake()
        eventually(lambda: keeper._rescue_at > 0.0)
    assert set(states().values()) == {"running"}
    assert Worker.objects.get().lost_at is None

    keeper.trusted = 30.0
    keeper._rescue_at = 0.0
    keeper.wake()
    eventually(lambda: set(states().values()) == {"scheduled"})


def test_nobody_is_rescued_while_the_own_lease_is_over_by_the_database_s_time(make, store):
    """The host slept, or the server stood still, after the keeper had asked how its heartbeats are."""
    own = store.register_worker("host", 2, "[]", 4, "1", -1.0)
    lost_worker(store)
    keeper = make()
    keeper._worker_id = lambda: own.id
    keeper.rescue()
    assert set(states().values()) == {"running"}

    store.heartbeat(own.id, 30.0)
    keeper.rescue()
    assert set(states().values()) == {"scheduled"}


def test_a_worker_that_lives_keeps_its_jobs(make, store, started):
    worker = store.register_worker("host", 1, "[]", 4, "1", 3600.0)
    insert(store)
    store.claim(worker.id, "default", 1)
    lost_worker(store)
    started(make(lease=0.3))

    eventually(lambda: set(states().values()) == {"running", "available"})
    assert Worker.objects.get(id=worker.id).lost_at is None


def test_the_jobs_of_a_worker_without_a_row_are_rescued(make, store, started):
    lost_worker(store)
    Worker.objects.all().delete()
    started(make(lease=0.3))

    eventually(lambda: set(states().values()) == {"available"})


def test_a_thousand_jobs_and_one_are_rescued(make, store, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 10)
    lost_worker(store, 25)
    make().rescue()

    assert set(states().values()) == {"scheduled"}


def test_what_becomes_of_rescued_jobs_is_counted(make, store, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    lost_worker(store, 2, name="tests.again")
    lost_worker(store, 3, name="tests.dead", max_attempts=1)
    store.cancel(lost_worker(store, name="tests.cancelled"))
    make().rescue()

    assert set(Stat.objects.values_list("name", "outcome", "error_class", "count")) == {
        ("tests.again", "retried", "django_jobs.WorkerLost", 2),
        ("tests.dead", "failed", "django_jobs.WorkerLost", 3),
        ("tests.cancelled", "cancelled", "", 1),
    }


# -- purge ------------------------------------------------------------------------------------------------------------


def finished(store, state, count=1):
    worker = store.register_worker("host", 1, "[]", 4, "1", 3600.0)
    ids = insert(store, count)
    claimed = store.claim(worker.id, "default", count)
    from django_jobs.store.rows import Outcome

    store.finish([Outcome(job.id, job.claims, state) for job in claimed])
    return ids


def test_each_state_is_kept_for_its_own_time(make, store, settings):
    settings.DJANGO_JOBS = {"RETENTION": {"completed": 100, "failed": 1000, "cancelled": None}}
    old = {state: finished(store, state) for state in ("completed", "failed", "cancelled")}
    age([id_ for ids in old.values() for id_ in ids], finalized_at=500)
    new = [id_ for state in ("completed", "failed", "cancelled") for id_ in finished(store, state)]
    waiting = insert(store)
    make().purge()

    assert set(states()) == {*old["failed"], *old["cancelled"], *new, *waiting}


def test_the_leader_purges(make, store, settings, started):
    settings.DJANGO_JOBS = {"RETENTION": {"completed": 0}}
    finished(store, "completed", 5)
    started(make())

    eventually(lambda: states() == {})


def test_a_purge_is_bounded_and_goes_on_in_the_next_round(make, store, settings, monkeypatch, started):
    monkeypatch.setattr(retention, "BATCH", 2)
    monkeypatch.setattr(retention, "BATCHES", 3)
    settings.DJANGO_JOBS = {"RETENTION": {"completed": 0}}
    finished(store, "completed", 16)
    keeper = make()

    assert keeper.purge() is True
    assert len(states()) == 10
    started(keeper)
    eventually(lambda: states() == {})
    assert keeper.purge() is False


def test_old_workers_are_forgotten(make, store, monkeypatch):
    monkeypatch.setattr(module, "WORKER_SECONDS", 0.0)
    lives = store.register_worker("host", 1, "[]", 4, "1", 3600.0)
    gone = store.register_worker("host", 1, "[]", 4, "1", 3600.0)
    store.stop_worker(gone.id)
    make().purge()

    assert list(Worker.objects.values_list("id", flat=True)) == [lives.id]


# -- errors -----------------------------------------------------------------------------------------------------------


def test_errors_back_off_and_a_wake_up_does_not_skip_that(keeper, monkeypatch):
    monkeypatch.setattr(parts, "pause_after", lambda failures: TIMEOUT)
    calls = []

    def fail(*args):
        calls.append(1)
        raise OperationalError("away")

    keeper.store.next_due = fail
    keeper.wake()
    eventually(lambda: calls)
    for _ in range(10):
        keeper.wake()
        threading.Event().wait(0.005)

    assert len(calls) == 1


def test_it_goes_on_after_errors_of_any_kind(keeper, store, monkeypatch):
    pauses = []
    monkeypatch.setattr(parts, "pause_after", lambda failures: pauses.append(failures) or 0.0)
    real = keeper.store.next_due
    errors = [OperationalError("away"), ValueError("ours"), OSError("gone")]

    def fail():
        if errors:
            raise errors.pop(0)
        return real()

    keeper.store.next_due = fail
    (due,) = insert(store, delay=0.05)
    keeper.wake()
    eventually(lambda: states()[due] == "available")

    assert pauses == [1, 2, 3]
    assert keeper.leads


def test_errors_in_one_kind_of_work_do_not_starve_another_for_ever(make, store, started, monkeypatch):
    """Retention that can't be read must not keep jobs from being promoted."""
    monkeypatch.setattr(parts, "pause_after", lambda failures: 0.0)
    (due,) = insert(store, delay=0.05)
    keeper = make()

    def fail():
        raise ValueError("RETENTION")

    keeper.purge = fail
    started(keeper)

    eventually(lambda: states()[due] == "available")
    lost_worker(store)
    keeper._rescue_at = 0.0
    eventually(lambda: "running" not in states().values())


def test_a_stop_in_the_middle_of_a_long_purge_ends_it(make, settings):
    settings.DJANGO_JOBS = {"RETENTION": {"completed": 0}}
    keeper = make()
    calls = []

    def purge(state, age, limit):
        calls.append(state)
        keeper.stop()
        return [0] * limit

    keeper._store = SimpleNamespace(purge=purge, purge_workers=lambda age: None, close=lambda: None)
    keeper.purge()

    assert calls.count("completed") == 1


def test_rows_that_others_wrote_do_not_stop_the_keeper(make, store, started):
    """Errors that are no list, and a name that is nobody's."""
    ids = lost_worker(store, 2)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_jobs_job SET errors = %s WHERE id = %s", [json.dumps({"a": 1}), ids[0]])
    started(make(lease=0.3))

    eventually(lambda: set(states().values()) == {"available"})
