"""What operators do to many jobs: by filter, in bounded batches, and told why some were not done."""

import datetime as dt
import functools
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from django_jobs import InvalidJob, job, operations, registry
from django_jobs.models import Job, Worker
from django_jobs.operations import Filter, InvalidFilter, acting, finding
from django_jobs.store import django_store
from django_jobs.store.selecting import Criteria

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)
FAR_EAST, FAR_WEST = dt.timezone(14 * HOUR), dt.timezone(-12 * HOUR)


@pytest.fixture
def nothing():
    definition = job(name="tests.operations.nothing")(lambda *args: None)
    yield definition
    registry.remove(definition)


@pytest.fixture
def worker():
    now = timezone.now()
    return Worker.objects.create(host="h", pid=1, started_at=now, heartbeat_at=now, expires_at=now + HOUR)


@pytest.fixture
def make(nothing, worker):
    """Jobs in a state."""

    def make(state, count=1, **columns):
        ids = [row.id for row in nothing.enqueue_many([()] * count)]
        ended = timezone.now() if state in ("completed", "failed", "cancelled") else None
        columns.setdefault("worker", worker if state == "running" else None)
        Job.objects.filter(pk__in=ids).update(**{"finalized_at": ended, **columns}, state=state)
        return ids

    return make


@pytest.fixture
def one_of_each(make):
    states = ("pending", "scheduled", "available", "running", "completed", "failed", "cancelled")
    return SimpleNamespace(**{state: make(state)[0] for state in states})


@pytest.fixture
def small(monkeypatch):
    """Batches of three."""
    monkeypatch.setattr(acting, "MOST", 3)
    select = type(django_store("default")).select

    def select_few(self, *args, **options):
        return select(self, *args, **{"look": 3, "most": 3, **options})

    monkeypatch.setattr(type(django_store("default")), "select", select_few)


def states(*ids):
    found = dict(Job.objects.filter(pk__in=ids).values_list("pk", "state"))
    return [found.get(id_) for id_ in ids]


class TestFilter:
    @pytest.mark.parametrize(
        ("field", "value", "message"),
        [
            ("state", "done", "state is 'done'; the states are pending, scheduled, available, running, "),
            ("state", ["failed", 5], "state is 5; the states are "),
            ("state", 5, "state is 5; it must be one of "),
            ("queue_name", "", "queue_name is ''; it must be a string that is not empty"),
            ("queue_name", "a\0", "queue_name has a NUL character"),
            ("name", "n" * 201, "name is 'nnn"),
            ("error_class", ValueError, "error_class is <class 'ValueError'>"),
            ("ids", "12", "ids is '12'; it must be the ids of jobs, in a list"),
            ("ids", 5, "ids is 5; it must be the ids of jobs, in a list"),
            ("ids", ["5"], "ids has '5'; an id is a whole number of 64 bits"),
            ("ids", [True], "ids has True"),
            ("ids", [2**63], "ids has 9223372036854775808"),
            ("worker_id", "w", "worker_id has 'w'"),
            ("tag", "", "The tag '' has 0 characters"),
            ("tag", 5, "The tag 5 must be a string or a model instance"),
            ("created_before", "yesterday", "created_before is 'yesterday'; it must be a datetime"),
            ("created_after", dt.datetime(2031, 1, 1), "which has no time zone"),
            ("created_after", dt.datetime(9999, 1, 1, tzinfo=dt.UTC), "between the years 1970 and 9000"),
            ("created_after", dt.datetime.min.replace(tzinfo=FAR_EAST), "between the years 1970 and 9000"),
            ("created_before", dt.datetime.max.replace(tzinfo=FAR_WEST), "between the years 1970 and 9000"),
        ],
    )
    def test_what_no_job_can_have_is_refused_before_any_sql(
        self, django_assert_num_queries, field, value, message
    ):
        with django_assert_num_queries(0), pytest.raises(InvalidFilter) as refusal:
            Filter(**{field: value})
        assert message in str(refusal.value)

    @pytest.mark.parametrize("given", ["5", None, 5.0, object()])
    def test_what_names_no_jobs(self, given):
        with pytest.raises(InvalidFilter):
            operations.cancel(given)

    def test_states_come_in_the_order_of_a_jobs_life_each_once(self):
        assert Filter(state=["failed", "pending", "failed"]).states == ("pending", "failed")
        assert Filter(state="failed").states == ("failed",)
        assert Filter().states == ()

    @pytest.mark.parametrize(
        ("operation", "state"),
        [
            (operations.cancel, "failed"),
            (operations.retry, "available"),
            (operations.release, "failed"),
            (operations.run_now, "failed"),
            (operations.delete, "running"),
            (operations.purge, "available"),
            (functools.partial(operations.update, priority=5), "failed"),
        ],
    )
    def test_states_of_no_use_to_an_operation_are_never_any_state(self, one_of_each, operation, state):
        with pytest.raises(InvalidFilter, match="can't be done to such a job"):
            operation(Filter(state=state))
        assert operation(Filter(state=[])).done == 0

    def test_in_words(self):
        assert Filter(state="failed", queue_name="mail").describe() == "state failed and queue name mail"
        assert Filter(ids=range(1, 8)).describe() == "ids 1, 2, 3, 4, 5 and 2 more"
        assert Filter().describe() == "any jobs at all"

    def test_an_empty_one_holds_for_all(self):
        assert Filter().is_empty
        assert not Filter(ids=[]).is_empty
        assert Filter(ids=[1]).names_ids_alone
        assert not Filter(ids=[1], queue_name="a").names_ids_alone


class TestCancel:
    def test_all_that_have_not_ended(self, one_of_each):
        result = operations.cancel(Filter())

        assert (result.done, result.skipped) == (4, {})
        each = one_of_each
        assert states(each.pending, each.scheduled, each.available, each.completed, each.failed) == [
            "cancelled", "cancelled", "cancelled", "completed", "failed",
        ]  # fmt: skip
        running = Job.objects.get(pk=each.running)
        assert (running.state, running.cancel_requested_at is not None) == ("running", True)

    def test_of_ids_it_is_told_why_some_were_not(self, one_of_each):
        result = operations.cancel([one_of_each.available, one_of_each.failed, 987_654_321])

        assert result.done == 1
        assert result.skipped == {"it has ended: failed": 1, "there is no such job": 1}
        assert result.skipped_ids["there is no such job"] == [987_654_321]

    def test_one_id(self, one_of_each):
        assert operations.cancel(one_of_each.available).done_ids == [one_of_each.available]

    def test_ids_and_more(self, make):
        first, second = make("available"), make("available", queue_name="other")

        result = operations.cancel(Filter(ids=[*first, *second], queue_name="other"))

        assert (result.done_ids, result.skipped) == (second, {"it does not match, or is not there": 1})

    def test_a_job_and_jobs(self, nothing):
        first, second, third = nothing.enqueue_many([(), (), ()])
        assert operations.cancel(first).done_ids == [first.id]
        assert operations.cancel([second, third.id]).done == 2

    def test_no_ids_is_no_job(self, one_of_each):
        assert operations.cancel([]).done == 0
        assert operations.cancel(Filter(ids=[])).done == 0
        assert states(one_of_each.available) == ["available"]

    def test_available_jobs_of_every_queue(self, make):
        ids = (
            make("available", 2) + make("available", 2, queue_name="a") + make("available", 1, queue_name="b")
        )

        assert operations.cancel(Filter(state="available")).done == 5
        assert set(states(*ids)) == {"cancelled"}

    @pytest.mark.parametrize("state", ["pending", "scheduled", "available"])
    def test_batch_by_batch(self, small, make, state):
        ids = make(state, 10)

        assert operations.cancel(Filter(state=state)).done == 10
        assert operations.cancel(ids).skipped == {}

    def test_statements_are_few(self, make, django_assert_num_queries):
        make("scheduled", 2500)

        # Three searches of up to 5,000 that find a thousand at most, and three changes.
        with django_assert_num_queries(6):
            assert operations.cancel(Filter(state="scheduled")).done == 2500


class TestStatesThatAnOperationIsNotFor:
    """An operation that could never do anything says so, rather than that it did nothing."""

    WRONG = (
        ("cancel", ["completed", "failed", "cancelled"]),
        ("retry", ["pending", "scheduled", "available", "running"]),
        ("release", ["scheduled", "available", "running", "completed", "failed", "cancelled"]),
        ("run_now", ["pending", "available", "running", "completed", "failed", "cancelled"]),
        ("delete", ["running"]),
        ("purge", ["pending", "scheduled", "available", "running"]),
    )

    @pytest.mark.parametrize(("name", "wrong"), WRONG)
    def test_each_of_them_and_all_together_are_refused_before_any_sql(
        self, name, wrong, django_assert_num_queries
    ):
        operation = getattr(operations, name)

        with django_assert_num_queries(0):
            for state in [*([each] for each in wrong), wrong]:
                with pytest.raises(InvalidFilter, match=rf"state is {', '.join(state)}; {name}\(\) can't"):
                    operation(Filter(state=state))
                with pytest.raises(InvalidFilter, match="can't be done"):
                    operation(Filter(state=state, ids=[1]))

    @pytest.mark.parametrize(("name", "wrong"), WRONG)
    def test_every_other_state_is_done(self, name, wrong, one_of_each):
        operation = getattr(operations, name)

        for state in set(vars(one_of_each)) - set(wrong):
            assert operation(Filter(state=state)).done == 1, state

    def test_an_update_of_what_does_not_wait(self, django_assert_num_queries):
        with django_assert_num_queries(0), pytest.raises(InvalidFilter, match=r"running; update\(\) can't"):
            operations.update(Filter(state="running"), priority=5)

    def test_a_purge_by_the_name_of_a_state(self, one_of_each, django_assert_num_queries):
        with django_assert_num_queries(0), pytest.raises(InvalidFilter, match="state is available; purge"):
            operations.purge("available", HOUR)

    @pytest.mark.parametrize("name", [name for name, _ in WRONG])
    def test_no_states_at_all_are_no_job_rather_than_any(self, name, one_of_each):
        assert getattr(operations, name)(Filter(state=[])).done == 0
        assert states(*vars(one_of_each).values()) == list(vars(one_of_each))


class TestRetry:
    def test_dead_letters_where_no_state_is_given(self, one_of_each):
        result = operations.retry(Filter(queue_name="default"))

        assert result.done_ids == [one_of_each.failed]
        assert states(one_of_each.failed, one_of_each.cancelled) == ["available", "cancelled"]

    def test_states_that_are_given(self, one_of_each):
        assert operations.retry(Filter(state=["cancelled", "completed", "running"])).done == 2

    def test_by_error_class(self, make):
        mine = make("failed", 2, error_class="ValueError")
        make("failed", error_class="KeyError")

        assert operations.retry(Filter(error_class="ValueError")).done_ids == mine

    def test_why_not(self, make):
        (twin,) = make("failed", unique_key="k")
        make("available", unique_key="k", holds_key=True)
        (live,) = make("scheduled")

        result = operations.retry([twin, live])

        assert (result.done, result.skipped) == (
            0,
            {"another job holds its unique key": 1, "it has not ended: scheduled": 1},
        )

    def test_what_fails_again_meanwhile_is_not_retried_twice(self, small, make, monkeypatch):
        make("failed", 7)
        store = type(django_store("default"))
        retry = store.retry

        def retry_and_fail(self, ids, now=None):
            answers = retry(self, ids, now)
            Job.objects.filter(pk__in=ids).update(state="failed", finalized_at=timezone.now())
            return answers

        monkeypatch.setattr(store, "retry", retry_and_fail)

        assert operations.retry(Filter(state="failed")).done == 7


class TestRelease:
    def test_all_that_are_pending(self, one_of_each):
        assert operations.release(Filter()).done_ids == [one_of_each.pending]

    def test_why_not(self, one_of_each):
        assert operations.release([one_of_each.failed, 987_654_321]).skipped == {
            "it is not pending: failed": 1,
            "there is no such job": 1,
        }


class TestUpdate:
    def test_what_waits(self, one_of_each):
        result = operations.update(Filter(), priority=7, queue_name="other")

        assert sorted(result.done_ids) == sorted(
            [one_of_each.pending, one_of_each.scheduled, one_of_each.available]
        )
        assert Job.objects.filter(priority=7, queue_name="other").count() == 3

    def test_why_not(self, make, one_of_each):
        (spent,) = make("scheduled", attempt=3)

        result = operations.update([spent, one_of_each.running], max_attempts=3)

        assert result.skipped == {"it has spent 3 attempts already": 1, "it does not wait: running": 1}

    def test_to_run_now(self, nothing):
        later = nothing.using(run_after=HOUR).enqueue()

        assert operations.run_now(later.id).done == 1
        assert states(later.id) == ["available"]

    def test_to_a_moment(self, make):
        moment = timezone.now() + HOUR
        (id_,) = make("available")

        operations.update(id_, run_after=moment)

        again = Job.objects.get(pk=id_)
        assert (again.state, again.run_after) == ("scheduled", moment)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({}, "was given nothing to change"),
            (
                {"priority": 101},
                "priority of operations.update() is 101; it must be a whole number from -100 to 100",
            ),
            ({"max_attempts": 0}, "max_attempts of operations.update() is 0"),
            ({"queue_name": "a,b"}, "can't be written in runjobs --queues"),
            ({"run_after": dt.datetime(2031, 1, 1)}, "has no time zone"),
            ({"run_after": 5}, "it must be an aware datetime or a timedelta"),
        ],
    )
    def test_what_is_not_allowed_is_refused_before_any_sql(self, django_assert_num_queries, changes, message):
        with django_assert_num_queries(0), pytest.raises(InvalidJob) as refusal:
            operations.update([1], **changes)
        assert message in str(refusal.value)


class TestDelete:
    def test_all_but_running_ones(self, one_of_each):
        assert operations.delete(Filter()).done == 6
        assert list(Job.objects.values_list("pk", flat=True)) == [one_of_each.running]

    def test_why_not(self, one_of_each):
        assert operations.delete([one_of_each.running, 987_654_321]).skipped == {
            "it is running": 1,
            "there is no such job": 1,
        }


class TestPurge:
    def test_all_that_have_ended(self, one_of_each):
        assert operations.purge().done == 3
        assert Job.objects.count() == 4

    def test_of_a_state_that_is_no_end_is_refused(self, django_assert_num_queries):
        with django_assert_num_queries(0), pytest.raises(InvalidFilter, match="completed, failed, cancelled"):
            operations.purge("available")

    def test_by_age(self, make):
        make("failed", 2)
        old = make("failed", 2, finalized_at=timezone.now() - 2 * HOUR)

        assert operations.purge_failed(HOUR).done_ids == old
        assert operations.purge("failed", 3600.0).done == 0

    def test_ids_of_an_age(self, make):
        (new,), (old,) = make("failed"), make("failed", finalized_at=timezone.now() - 2 * HOUR)

        result = operations.purge([new, old], HOUR)

        assert (result.done_ids, result.skipped_ids) == (
            [old],
            {"it does not match, or is not there": [new]},
        )

    def test_ids_in_several_states_are_each_told_once(self, one_of_each):
        result = operations.purge([one_of_each.failed, one_of_each.completed, one_of_each.running])

        assert (result.done, result.skipped) == (2, {"it has not ended: running": 1})

    def test_a_job_that_holds_its_key_is_kept_and_told(self, make):
        make("completed", unique_key="k", holds_key=True, key_until=timezone.now() + HOUR)

        assert operations.purge("completed").skipped == {"it holds its unique key": 1}

    def test_of_one_queue(self, make):
        mine = make("completed", queue_name="mail")
        make("completed")

        assert operations.purge(Filter(queue_name="mail")).done_ids == mine

    def test_batch_by_batch(self, small, make):
        make("completed", 10)

        assert operations.purge("completed").done == 10

    @pytest.mark.parametrize("age", [-1, "7d", True, None, dt.timedelta(seconds=-1), 1e300, float("nan")])
    def test_an_age_that_is_none(self, age):
        with pytest.raises(InvalidFilter, match="older_than is "):
            operations.purge("failed", age)


class TestListing:
    def test_page_by_page(self, make, monkeypatch):
        make("failed", 3)
        make("scheduled", 3)
        make("available", 2, queue_name="b")
        make("available", 2, queue_name="a")
        wanted = Filter(state=["failed", "scheduled", "available"])
        whole = [each.id for each in operations.list_jobs(wanted).jobs]
        assert len(whole) == 10

        for limit in (1, 3, 4):
            seen, after = [], None
            while True:
                page = operations.list_jobs(wanted, limit=limit, after=after)
                assert len(page.jobs) <= limit
                seen += [each.id for each in page.jobs]
                after = page.next
                if after is None:
                    break
            assert seen == whole

    def test_ids_page_by_page(self, make):
        ids = make("available", 5)

        first = operations.list_jobs([*ids, 987_654_321], limit=3)
        second = operations.list_jobs([*ids, 987_654_321], limit=3, after=first.next)

        assert [each.id for each in [*first.jobs, *second.jobs]] == ids
        assert second.next is None

    def test_a_page_looks_at_a_bounded_number_of_jobs(self, make, monkeypatch):
        monkeypatch.setattr(finding, "PAGE_LOOKS", 300)
        make("completed", 450)
        (wanted,) = make("completed", name="tests.rare", finalized_at=timezone.now() - HOUR)

        page = operations.list_jobs(Filter(state="completed", name="tests.rare"))
        assert page.jobs == []
        assert page.next is not None
        page = operations.list_jobs(Filter(state="completed", name="tests.rare"), after=page.next)
        assert [each.id for each in page.jobs] == [wanted]

    def test_two_statements_a_page(self, make, django_assert_num_queries):
        make("failed", 30)

        with django_assert_num_queries(2):
            page = operations.list_jobs(Filter(state="failed"), limit=20)
        with django_assert_num_queries(2):
            operations.list_jobs(Filter(state="failed"), limit=20, after=page.next)

    @pytest.mark.parametrize(
        "after",
        [
            "", "x", "1_2", "0_0_x_", "0_0_5_yesterday", 5, "0_0_5_2031-01-01_1", "0_0_5_", "0_0_5_2031-W01-1_",
            "0_0_-1__", f"0_0_{2**63}__", f"0_{2**63}_5__", "0_5000_5__", "0_0_5__a\0", "²_0_5__",
            "0_0_5__" + "q" * 101, "0_0_5__\udfff", "0_0_5_2031-13-01T00:00:00_", "9" * 5000,
            "0_" + "9" * 5000 + "_5__",
        ],
    )  # fmt: skip
    @pytest.mark.usefixtures("nothing")
    def test_what_is_no_place(self, after):
        with pytest.raises(InvalidFilter, match="after is "):
            operations.list_jobs(after=after)

    @pytest.mark.parametrize("job_id", ["5", 5.0, True, None])
    def test_what_is_no_id_is_refused_before_any_sql(self, job_id, django_assert_num_queries):
        with django_assert_num_queries(0), pytest.raises(InvalidFilter, match="job_id is "):
            operations.get(job_id)

    @pytest.mark.parametrize("job_id", [0, -1, 2**63, 2**70])
    def test_a_number_that_no_id_can_be_is_of_no_job(self, job_id, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert operations.get(job_id) is None

    @pytest.mark.parametrize("given", [{"limit": "3"}, {"limit": -1}, {"window": "3"}, {"window": 2.5}])
    def test_a_limit_of_tagged_that_is_none(self, given, django_assert_num_queries):
        with django_assert_num_queries(0), pytest.raises(InvalidFilter, match="must be a whole number"):
            operations.tagged("red", **given)

    @pytest.mark.parametrize("limit", [0, 1001, -1, "3", True])
    def test_the_limit(self, limit):
        with pytest.raises(InvalidFilter, match="limit is "):
            operations.list_jobs(limit=limit)

    def test_failed(self, one_of_each):
        assert [each.id for each in operations.failed()] == [one_of_each.failed]

    def test_get(self, one_of_each):
        assert operations.get(one_of_each.failed).state == "failed"
        assert operations.get(987_654_321) is None


class TestTagged:
    def test_jobs_of_a_model_instance_the_newest_first(self, nothing):
        user, other = (User.objects.create(username=name) for name in ("a", "b"))
        jobs = [nothing.using(tags=[who]).enqueue() for who in (user, other, user)]
        nothing.using(tags=["red"]).enqueue()

        assert [each.id for each in operations.tagged(user)] == [jobs[2].id, jobs[0].id]
        assert [each.tags for each in operations.tagged("red")] == [["red"]]
        assert operations.tagged("blue") == []
        assert len(operations.tagged(user, limit=1)) == 1

    def test_is_a_filter_of_operations_too(self, nothing):
        nothing.using(tags=["red"]).enqueue()
        nothing.enqueue()

        assert operations.cancel(Filter(tag="red")).done == 1

    def test_only_the_newest_jobs_are_looked_at(self, nothing):
        nothing.using(tags=["red"]).enqueue()
        nothing.enqueue_many([()] * 3)

        assert operations.tagged("red", window=3) == []
        assert len(operations.tagged("red", window=4)) == 1

    def test_nothing_is_no_tag_and_does_not_find_all_jobs(self, nothing):
        nothing.enqueue()

        with pytest.raises(InvalidFilter, match="The tag None must be a string or a model instance"):
            operations.tagged(None)

    def test_an_instance_that_was_not_saved(self):
        with pytest.raises(InvalidFilter, match="without a primary key"):
            operations.tagged(User())


class TestQueues:
    def test_pause_and_resume(self):
        assert operations.pause("mail").paused_at is not None
        assert operations.resume("mail").paused_at is None

    def test_metadata(self):
        row = operations.queue("mail", metadata={"owner": "ops", "limit": 1e22})

        assert row == operations.queue("mail") == operations.queues()[0]
        assert row.metadata == {"owner": "ops", "limit": 1e22}

    @pytest.mark.parametrize("metadata", [5, ["a"], {"a": float("nan")}, {5: 1}, {"a": "\0"}])
    def test_metadata_that_can_not_be_stored(self, metadata):
        with pytest.raises(InvalidJob, match="metadata of the queue 'mail'"):
            operations.queue("mail", metadata=metadata)

    @pytest.mark.parametrize(
        "function", [operations.pause, operations.resume, operations.queue, operations.stats_for]
    )
    @pytest.mark.parametrize("name", ["", "a,b", None, "q" * 101])
    def test_a_name_that_no_queue_can_have(self, function, name):
        with pytest.raises(InvalidJob, match="queue_name"):
            function(name)

    def test_stats(self, make):
        make("failed", 2)
        make("available", 3, queue_name="mail")

        assert operations.stats() == {"failed": 2, "available": 3}
        assert operations.stats_for("mail") == {"available": 3}
        assert operations.stats_for("empty") == {}
        assert operations.stats_by_queue() == [("default", "failed", 2), ("mail", "available", 3)]


def test_a_result_in_a_sentence(one_of_each):
    result = operations.cancel([one_of_each.available, one_of_each.failed])

    assert result.describe("cancelled") == (
        f"1 job cancelled; not 1: it has ended: failed ({one_of_each.failed})."
    )


def test_a_result_keeps_a_bounded_number_of_ids():
    result = operations.Result()
    for id_ in range(1000):
        result.did(id_)
        result.skip(id_, "no")

    assert (result.done, result.skipped["no"]) == (1000, 1000)
    assert len(result.done_ids) == len(result.skipped_ids["no"]) == 100


def test_criteria_have_a_way_for_each_state(one_of_each):
    store = django_store("default")

    for state in ("pending", "scheduled", "running", "completed", "failed", "cancelled"):
        assert store.select(Criteria(state)).ids == [getattr(one_of_each, state)]


@pytest.mark.parametrize("ask", [operations.quiet_worker, operations.unquiet_worker, operations.stop_worker])
@pytest.mark.parametrize("worker_id", ["5", None, True, 2**64])
def test_what_is_no_id_of_a_worker_is_refused_before_any_sql(ask, worker_id, django_assert_num_queries):
    with django_assert_num_queries(0), pytest.raises(InvalidFilter, match="worker_id has"):
        ask(worker_id)


@pytest.mark.parametrize("given", ["failed", 5, None])
def test_arguments_are_searched_by_a_filter(given, django_assert_num_queries):
    with django_assert_num_queries(0), pytest.raises(InvalidFilter, match="give a Filter"):
        operations.search_arguments(given, "ann")
