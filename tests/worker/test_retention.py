"""How long finished jobs are kept: by state and queue, at once, for ever, in bounded statements."""

import datetime as dt

import pytest
from django.utils import timezone

from django_jobs.models import Job
from django_jobs.store.rows import NewJob
from django_jobs.worker import Worker, WorkerOptions, retention as module
from django_jobs.worker.options import Pool
from django_jobs.worker.retention import Retention
from tests.store.builders import Recorder

DAY = 86_400


@pytest.fixture
def rules(settings):
    def choose(**retention):
        settings.DJANGO_JOBS = {"RETENTION": retention}
        return Retention()

    return choose


@pytest.fixture
def make(store):
    """Finished jobs of an age."""

    def make(queue_name="default", state="completed", age=0.0, count=1, **columns):
        ids = [job.id for job in store.insert_many([NewJob("tests.job", queue_name)] * count)]
        moment = timezone.now() - dt.timedelta(seconds=age)
        Job.objects.filter(pk__in=ids).update(state=state, finalized_at=moment, **columns)
        return ids

    return make


def left():
    return set(Job.objects.values_list("pk", flat=True))


def test_a_queues_own_rule_goes_before_the_general_one_state_by_state(rules):
    chosen = rules(completed=7, queues={"mail": {"completed": 0, "failed": None}})

    assert chosen.age("mail", "completed") == 0
    assert chosen.age("mail", "failed") is None
    assert chosen.age("mail", "cancelled") == 7 * DAY
    assert chosen.age("other", "completed") == 7
    assert chosen.age("other", "failed") == 30 * DAY


@pytest.mark.parametrize(
    ("chosen", "at_once"),
    [
        ({}, False),
        ({"completed": None}, False),
        ({"completed": 0}, True),
        ({"queues": {"mail": {"cancelled": 0}}}, True),
        ({"completed": 0, "queues": {"mail": {"completed": None}}}, True),
    ],
)
def test_whether_anything_is_deleted_as_it_ends(rules, chosen, at_once):
    assert rules(**chosen).deletes_at_once is at_once


def test_each_queue_is_purged_by_its_own_rule_and_the_others_by_the_general_one(rules, store, make):
    chosen = rules(completed=3600, queues={"mail": {"completed": 60}, "audit": {"completed": None}})
    kept = [
        *make("default", age=1800),
        *make("mail", age=30),
        *make("audit", age=9 * DAY),
        *make("mail", "failed"),
    ]
    make("default", age=4000)
    make("other", age=4000)
    make("mail", age=90)

    assert chosen.purge(store) is False
    assert left() == set(kept)


def test_without_rules_of_queues_a_batch_is_one_statement(rules, store, make):
    chosen = rules(completed=60)
    make(age=90, count=5)
    recorder = store.session = Recorder(store.session)

    chosen.purge(store)

    assert [statement.name for statement, _ in recorder.seen] == ["purge"] * 3
    assert left() == set()


def test_a_job_that_holds_its_period_is_kept(rules, store, make):
    later = timezone.now() + dt.timedelta(hours=1)
    (general,) = make(age=90, unique_key="a", holds_key=True, key_until=later)
    (own,) = make("mail", age=90, unique_key="b", holds_key=True, key_until=later)

    rules(completed=60, queues={"mail": {"completed": 0}}).purge(store)

    assert left() == {general, own}


def test_jobs_that_stay_are_passed_once_and_not_in_every_round(rules, store, make, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 10)
    chosen = rules(completed=60, queues={"audit": {"completed": None}})
    make("audit", age=900, count=100)
    (first,) = make(age=300)

    chosen.purge(store)
    assert first not in left()

    recorder = store.session = Recorder(store.session)
    (second,) = make(age=200)
    chosen.purge(store)

    assert second not in left()
    # Of all the rounds' searches, none went over the hundred again: each rule looked on from where it was.
    searches = [statement.name for statement, _ in recorder.seen if statement.name == "select_expired"]
    assert len(searches) == 2


def test_the_search_starts_anew_after_an_hour(rules, store, make, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    chosen = rules(completed=60, queues={"audit": {"completed": None}})
    make(age=100)
    chosen.purge(store)
    (late,) = make(age=900)  # behind where the search is

    chosen.purge(store)
    assert late in left()
    clock[0] += 3601
    chosen.purge(store)
    assert late not in left()


def test_what_ended_a_moment_ago_is_not_counted_as_passed(rules, store, make):
    chosen = rules(queues={"mail": {"completed": 0}})
    make("mail")
    chosen.purge(store)
    (late,) = make("mail", age=5)  # it was not committed yet when the search passed its time

    chosen.purge(store)
    assert late not in left()


def test_a_round_is_bounded_and_says_that_there_is_more(rules, store, make, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 10)
    monkeypatch.setattr(module, "BATCHES", 2)
    plain, own = rules(completed=60), rules(completed=60, queues={"audit": {"completed": None}})
    for chosen in (plain, own):
        make(age=90, count=35)
        assert chosen.purge(store) is True
        assert len(left()) == 15
        chosen.purge(store)
        assert left() == set()


def test_a_stop_ends_the_round(rules, store, make):
    make(age=90)

    assert rules(completed=60).purge(store, lambda: True) is False
    assert len(left()) == 1


# At once


@pytest.mark.django_db(transaction=True)
def test_what_is_not_kept_is_gone_when_the_worker_has_drained(rules, define, store, settings):
    rules(completed=0, queues={"audit": {"completed": None}, "mail": {"failed": 0}})

    def fail():
        raise ValueError

    fine = define(lambda: None)
    bad = define(fail, max_attempts=1)
    fine.enqueue_many([()] * 50)
    kept = {
        fine.using(queue_name="audit").enqueue().id,
        bad.enqueue().id,
    }
    bad.using(queue_name="mail").enqueue()

    worker = Worker(WorkerOptions(pools=[Pool(("*",), 2)], drain=True))
    worker.keeper.purge = lambda: False  # the completer does it alone
    worker.run()

    assert worker.statistics.completed == 51
    assert left() == kept


@pytest.mark.django_db(transaction=True)
def test_batches_without_such_jobs_pay_nothing(rules, define, store, monkeypatch):
    rules(queues={"mail": {"completed": 0}})
    deleted = []
    monkeypatch.setattr(type(store), "delete", lambda self, ids, *more, **options: deleted.append(ids) or [])
    define(lambda: None).enqueue_many([()] * 5)

    worker = Worker(WorkerOptions(pools=[Pool(("*",), 2)], drain=True))
    worker.keeper.purge = lambda: False
    worker.run()

    assert (worker.statistics.completed, deleted) == (5, [])


def test_what_can_not_be_deleted_is_logged_and_left_to_the_keeper(rules, store, make, monkeypatch, caplog):
    from django.db.utils import OperationalError

    from django_jobs.store.rows import Ended

    chosen = rules(completed=0)
    (job_id,) = make()

    def fail(self, *given, **more):
        raise OperationalError("away")

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "delete", fail)
        chosen.delete_ended(store, store.get([job_id]), {job_id: Ended(job_id, "completed", True)})

    assert "1 jobs that are completed are not deleted yet: OperationalError: away" in caplog.text
    chosen.purge(store)
    assert left() == set()


def test_a_lost_claim_deletes_nothing(rules, store, make):
    from django_jobs.store.rows import Ended

    (job_id,) = make()
    chosen = rules(completed=0)

    chosen.delete_ended(store, store.get([job_id]), {job_id: Ended(job_id, "completed", False)})
    chosen.delete_ended(store, store.get([job_id]), {})

    assert left() == {job_id}
