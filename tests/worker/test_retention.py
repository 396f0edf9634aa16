"""How long finished jobs are kept: by state and queue, at once, for ever, in bounded statements."""

import contextlib
import datetime as dt

import pytest
from django.db import transaction
from django.db.utils import OperationalError
from django.utils import timezone

from django_jobs import conf, current_job
from django_jobs.models import Job
from django_jobs.signals import job_finished
from django_jobs.store.rows import NewJob, Outcome
from django_jobs.worker import Worker, WorkerOptions, retention as module
from django_jobs.worker.attempted import Attempted
from django_jobs.worker.completer import Completer
from django_jobs.worker.options import Pool
from django_jobs.worker.recorder import Recorder
from django_jobs.worker.retention import Retention
from django_jobs.worker.statistics import Statistics
from tests.store.builders import Recorder as Statements
from tests.waiting import eventually
from tests.workload.models import Effect

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
    chosen = rules(
        completed=7, cancelled=0, queues={"mail": {"completed": 0, "failed": None}, "audit": {"cancelled": 5}}
    )

    assert [(rule.state, rule.age, rule.queue_name, rule.other_than) for rule in chosen.rules] == [
        ("completed", 7, None, ("mail",)),
        ("completed", 0, "mail", ()),
        ("failed", 30 * DAY, None, ("mail",)),
        ("cancelled", 0, None, ("audit",)),
        ("cancelled", 5, "audit", ()),
    ]
    assert conf.unkept("mail") == {"completed", "cancelled"}
    assert conf.unkept("audit") == set()
    assert conf.unkept("other") == {"cancelled"}


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
    recorder = store.session = Statements(store.session)

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

    recorder = store.session = Statements(store.session)
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


def test_full_batches_follow_each_other_and_after_one_that_is_not_the_next_round_begins_anew(
    rules, store, make, monkeypatch
):
    monkeypatch.setattr(module, "BATCH", 10)
    monkeypatch.setattr(module, "BATCHES", 2)
    chosen = rules(completed=60, failed=None, cancelled=None)
    make(age=90, count=25)
    recorder = store.session = Statements(store.session)

    assert chosen.purge(store) is True
    late = make(age=900)  # it was not committed yet when the first batch passed its time
    assert chosen.purge(store) is False
    assert left() == set(late)
    assert chosen.purge(store) is False
    assert left() == set()
    begun = [asked["after_id"] for statement, asked in recorder.seen if statement.name == "purge"]
    assert [bool(id_) for id_ in begun] == [False, True, True, False]
    assert begun[1] < begun[2]


def test_they_begin_anew_after_an_hour_too(rules, store, make, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(module, "BATCH", 10)
    monkeypatch.setattr(module, "BATCHES", 1)
    chosen = rules(completed=60, failed=None, cancelled=None)
    make(age=90, count=20)
    assert chosen.purge(store) is True
    (late,) = make(age=900)

    clock[0] += 3601
    assert chosen.purge(store) is True
    assert late not in left()


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
def test_batches_without_such_jobs_pay_nothing(rules, define, store):
    rules(queues={"mail": {"completed": 0}})
    define(lambda: None).enqueue_many([()] * 5)

    worker = Worker(WorkerOptions(pools=[Pool(("*",), 2)], drain=True))
    seen = recorded(worker)
    worker.run()

    assert worker.statistics.completed == 5
    assert {name for name in seen if "finish" in name or name in ("complete", "delete")} == {"complete"}


@pytest.mark.django_db(transaction=True)
def test_of_a_batch_the_outcomes_that_can_not_end_so_are_finished_as_usual(rules, define, store):
    rules(completed=0)

    def fail():
        raise ValueError

    define(fail, max_attempts=1).enqueue()

    worker = Worker(WorkerOptions(pools=[Pool(("*",), 2)], drain=True))
    seen = recorded(worker)
    worker.run()

    assert (worker.statistics.dead, "finish" in seen, "finish_and_delete" in seen) == (1, True, False)


def recorded(worker):
    """The names of all statements of the completer."""
    names = []
    open_store = worker.completer._open_store

    def opened():
        store = open_store()
        fetch = store.session.fetch
        store.session.fetch = lambda statement, parameters: (
            names.append(statement.name) or fetch(statement, parameters)
        )
        return store

    worker.completer._open_store = opened
    return names


class Finished(list):
    """What job_finished told, while it is connected."""

    def __call__(self, sender, job, outcome, error, **kwargs):
        self.append((job.id, outcome, job.state, job.result, job.finalized_at is not None, job.holds_key))


@pytest.fixture
def finished():
    told = Finished()
    job_finished.connect(told)
    yield told
    job_finished.disconnect(told)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ["plain", "atomic", "complete()"])
def test_the_signal_has_the_row_as_it_was_stored(rules, define, live, finished, how):
    rules(completed=0)

    def work():
        if how == "complete()":
            with transaction.atomic():
                current_job().complete("done")
        return "done"

    job = define(work, atomic=how == "atomic").enqueue()
    worker = live(size=1)
    worker.keeper.purge = lambda: False

    eventually(lambda: finished)
    assert finished == [(job.id, "completed", "completed", "done", True, False)]
    assert (left(), worker.statistics.completed, worker.statistics.dropped) == (set(), 1, 0)


@pytest.mark.django_db(transaction=True)
def test_an_atomic_job_that_is_not_kept_goes_with_its_effects_or_stays_without(rules, define, live, finished):
    rules(completed=0)
    gone = []

    def work(fails):
        Effect.objects.create(job_id=current_job().job.id, claims=1, pid=0)
        with contextlib.suppress(KeyError), transaction.atomic():
            current_job().complete("rolled back")
            raise KeyError
        current_job().complete("stays")
        gone.append(not Job.objects.filter(pk=current_job().job.id).exists())
        if fails:
            raise ValueError

    definition = define(work, atomic=True, max_attempts=1)
    done, dead = definition.enqueue(False), definition.enqueue(True)
    worker = live(size=1)

    eventually(lambda: worker.statistics.completed + worker.statistics.dead == 2)
    assert gone == [True, True], "the statement that completed it has deleted it"
    assert left() == {dead.id}
    assert [effect.job_id for effect in Effect.objects.all()] == [done.id]
    eventually(lambda: len(finished) == 2)
    assert finished[0] == (done.id, "completed", "completed", "stays", True, False)


@pytest.mark.django_db(transaction=True)
def test_an_atomic_job_that_has_lost_its_claim_deletes_nothing(rules, define, live):
    rules(completed=0)

    def work():
        Effect.objects.create(job_id=job.id, claims=1, pid=0)
        Job.objects.filter(pk=job.id).update(claims=7)  # as if claimed again; undone with the rest

    job = define(work, atomic=True, max_attempts=1).enqueue()
    worker = live(size=1)

    eventually(lambda: worker.statistics.dead == 1)
    assert (left(), Effect.objects.count()) == ({job.id}, 0)
    assert job.refresh().error_class == "django_jobs.exceptions.ClaimLost"


class Losing:
    """A store whose answer to the first finish that deletes is lost."""

    def __init__(self, store, before):
        self.store = store
        self.before = before
        self.lost = 0

    def __getattr__(self, name):
        return getattr(self.store, name)

    def finish_and_delete(self, *args, **options):
        if self.lost:
            return self.store.finish_and_delete(*args, **options)
        self.lost += 1
        if not self.before:
            self.store.finish_and_delete(*args, **options)
        raise OperationalError("the answer is lost")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("before", [True, False], ids=["before it was stored", "after it was stored"])
@pytest.mark.parametrize("kind", ["completed", "failed", "retry", "cancelled", "snoozed"])
def test_an_answer_that_is_lost_is_found_out(rules, store, make, started, finished, kind, before):
    rules(completed=0, failed=0, cancelled=0)
    worker = store.register_worker("host", 1, "[]", 1, "1", 30.0).id
    store.insert(NewJob("tests.job", max_attempts=1))
    (job,) = store.claim(worker, "default", 1)
    if kind == "snoozed":
        store.cancel([job.id])
    losing = Losing(store, before)
    losing.close = lambda: None
    statistics = Statistics()
    completer = started(Completer(lambda: losing, Recorder(statistics)))

    completer.put(
        Attempted(Outcome(job.id, job.claims, kind, error_class="E", errors='[{"class":"E"}]'), job, 0.1)
    )

    eventually(lambda: completer.idle)
    state = {"retry": "failed", "snoozed": "cancelled"}.get(kind, kind)
    assert losing.lost == 1
    assert left() == set()
    assert (getattr(statistics, "dead" if state == "failed" else state), statistics.dropped) == (1, 0)
    assert finished == [(job.id, state, state, None, True, False)]


@pytest.mark.django_db(transaction=True)
def test_what_may_have_been_another_s_by_then_is_not_told_as_its_own(rules, store, started, finished, caplog):
    rules(completed=0)
    worker = store.register_worker("host", 1, "[]", 1, "1", 30.0).id
    store.insert(NewJob("tests.job"))
    (job,) = store.claim(worker, "default", 1)
    losing = Losing(store, before=False)
    losing.close = lambda: None
    statistics = Statistics()
    completer = started(Completer(lambda: losing, Recorder(statistics), is_lost=lambda job: True))

    completer.put(Attempted(Outcome(job.id, job.claims, "completed"), job, 0.1))

    eventually(lambda: completer.idle)
    assert (statistics.completed, statistics.dropped, finished) == (0, 1, [])
    assert "its outcome (completed) is dropped, since the job was deleted" in caplog.text
