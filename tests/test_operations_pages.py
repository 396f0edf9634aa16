"""What pages need of the operations: steps that end, edits with checks, searches in arguments."""

import datetime as dt

import pytest
from django.utils import timezone

from django_jobs import InvalidJob, job, operations, registry
from django_jobs.models import Job
from django_jobs.operations import Filter, InvalidFilter, searching
from django_jobs.store import django_store
from tests.store.builders import write

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


@pytest.fixture
def define():
    """Define job functions that are forgotten when the test ends."""
    made = []

    def define(function, **options):
        made.append(job(name=f"tests.pages.{len(made)}", **options)(function))
        return made[-1]

    yield define
    for definition in made:
        registry.remove(definition)


@pytest.fixture
def greet(define):
    return define(lambda user, password=None, *, note="": None)


class TestSteps:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        """Steps that look at three jobs."""
        store = type(django_store("default"))
        select = store.select

        def select_few(self, *args, **options):
            return select(self, *args, **{"look": 3, "most": 3, **options})

        monkeypatch.setattr(store, "select", select_few)

    def test_stops_after_so_many_and_goes_on_from_there(self, greet):
        first = greet.enqueue_many([("a",)] * 5)
        second = greet.using(queue_name="second").enqueue_many([("b",)] * 3)
        ids = [each.id for each in [*first, *second]]
        wanted = Filter(state=["scheduled", "available"])

        result = operations.update(wanted, priority=5, steps=2)
        assert (result.done, result.done_ids) == (3, ids[:3])
        done = result.done
        while result.next is not None:
            result = operations.update(wanted, priority=5, steps=1, after=result.next)
            assert result.done <= 3
            done += result.done

        assert done == 8
        assert set(Job.objects.values_list("priority", flat=True)) == {5}

    def test_what_still_matches_is_not_done_twice(self, greet):
        ids = [row.id for row in greet.enqueue_many([("a",)] * 7)]
        seen = []
        result = operations.update(Filter(), queue_name="default", priority=1, steps=1)
        seen += result.done_ids
        while result.next is not None:
            result = operations.update(Filter(), queue_name="default", priority=1, steps=1, after=result.next)
            seen += result.done_ids
        assert sorted(seen) == ids

    @pytest.mark.parametrize("act", [operations.retry, operations.purge, operations.delete])
    def test_of_finished_jobs(self, greet, act):
        ids = [row.id for row in greet.enqueue_many([("a",)] * 8)]
        Job.objects.filter(pk__in=ids).update(state="failed", finalized_at=timezone.now())
        done, after = 0, None
        for _ in range(10):
            result = act(Filter(state="failed"), steps=1, after=after)
            done += result.done
            after = result.next
            if after is None:
                break
        assert done == 8

    def test_a_place_that_is_none(self):
        with pytest.raises(InvalidFilter, match="after is"):
            operations.cancel(Filter(state="available"), after="0_99999999_5__")


class TestEdit:
    def test_all_of_it(self, greet):
        row = greet.enqueue("ann")
        moment = timezone.now() + HOUR

        edited = operations.edit(
            row,
            args=["bob"],
            kwargs={"note": "☃", "password": 2**70},
            queue_name="other",
            priority=-7,
            run_after=moment,
            max_attempts=9,
        )

        assert edited == operations.get(row.id)
        assert (edited.args, edited.kwargs) == (["bob"], {"note": "☃", "password": 2**70})
        assert (edited.queue_name, edited.priority, edited.max_attempts) == ("other", -7, 9)
        assert (edited.state, edited.run_after) == ("scheduled", moment)
        assert operations.edit(edited, run_after=timezone.now()).state == "available"

    def test_what_is_not_given_stays(self, greet):
        row = greet.enqueue("ann", note="x")
        edited = operations.edit(row, priority=3)
        assert (edited.name, edited.queue_name, edited.args, edited.kwargs, edited.max_attempts) == (
            row.name,
            row.queue_name,
            row.args,
            row.kwargs,
            row.max_attempts,
        )
        assert operations.edit(row, kwargs={"note": "y"}).args == ["ann"]

    def test_a_pending_job_goes_on_waiting(self, greet):
        row = greet.using(pending=True).enqueue("ann")
        assert operations.edit(row, run_after=timezone.now() + HOUR).state == "pending"

    @pytest.mark.parametrize("state", ["running", "completed", "failed", "cancelled"])
    def test_only_what_waits(self, greet, state):
        row = greet.enqueue("ann")
        ended = None if state == "running" else timezone.now()
        Job.objects.filter(pk=row.id).update(state=state, worker=1, finalized_at=ended)
        assert operations.edit(row, priority=3) is None
        assert operations.get(row.id).priority == 0

    def test_nothing_of_what_somebody_else_wrote_meanwhile(self, greet):
        row = greet.enqueue("ann")
        assert operations.edit(row, args=["bob"]) is not None
        assert operations.edit(row, args=["eve"]) is None
        assert operations.get(row.id).args == ["bob"]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"args": []}, "missing a required argument: 'user'"),
            ({"args": ["a", "b", "c"]}, "too many positional arguments"),
            ({"kwargs": {"nobody": 1}}, "got an unexpected keyword argument 'nobody'"),
            ({"args": "ann"}, "must be a list"),
            ({"kwargs": ["ann"]}, "must be a dict"),
            ({"args": ["a\0"]}, "NUL"),
            ({"args": [float("nan")]}, "nan"),
            ({"args": [{1: 2}]}, "JSON keys are strings"),
            ({"args": ["x" * 1_000_001]}, "over the limit"),
            ({"priority": 101}, "priority"),
            ({"max_attempts": 0}, "max_attempts"),
            ({"queue_name": "a,b"}, "can't be written"),
            ({"run_after": dt.datetime(2031, 1, 1)}, "no time zone"),
        ],
    )
    def test_values_that_are_refused_before_any_sql(self, greet, changes, message, django_assert_num_queries):
        row = greet.enqueue("ann")
        with django_assert_num_queries(0), pytest.raises(InvalidJob, match=message):
            operations.edit(row, **changes)

    def test_arguments_of_a_function_that_is_not_registered_here(self, greet):
        row = greet.enqueue("ann")
        Job.objects.filter(pk=row.id).update(name="tests.gone")
        gone = operations.get(row.id)
        with pytest.raises(InvalidJob, match=r"tests.gone is not registered"):
            operations.edit(gone, args=["bob"])
        assert operations.edit(gone, priority=1).priority == 1

    @pytest.mark.parametrize("more", [{}, {"unique_for": HOUR}])
    @pytest.mark.parametrize("unique", [True, "user:{user}"])
    def test_arguments_that_made_the_key(self, define, unique, more):
        definition = define(lambda user, note=None: None, unique=unique, **more)
        row = definition.enqueue("ann", "x")
        with pytest.raises(InvalidJob, match="unique key is made of its arguments"):
            operations.edit(row, args=["bob", "x"])
        assert operations.edit(row, args=["ann", "x"], priority=1).priority == 1
        given = definition.using(unique_key="mine", unique_for=None).enqueue("ann")
        assert operations.edit(given, args=["bob"]).args == ["bob"]

    def test_arguments_that_are_no_json(self, greet, database_name):
        if database_name == "postgresql":
            return  # its type json holds none
        row = greet.enqueue("ann")
        write(row, "args", "[1,")
        row = operations.get(row.id)
        assert operations.edit(row, args=["bob"]).args == ["bob"]


class TestSearch:
    def found(self, text, wanted=Filter(), **options):  # noqa: B008
        return [row.id for row in operations.search_arguments(wanted, text, **options).jobs]

    def test_values_anywhere_in_the_arguments(self, greet):
        ann = greet.enqueue("ann@example.com", note='a "quoted" ☃').id
        deep = greet.enqueue({"x": [{"y": "say ann"}]}).id
        number = greet.enqueue(2**70, note=None).id

        assert self.found("ann") == [deep, ann]
        assert self.found("ann@example") == [ann]
        assert self.found('"quoted" ☃') == [ann]
        assert self.found(str(2**70)) == [number]
        assert self.found("null") == [number]
        assert self.found("ANN") == []
        assert self.found("x") == [ann], "keys are not values, but example has an x"

    def test_numbers_are_whole(self, greet):
        one, other = greet.enqueue(42).id, greet.enqueue(4242).id
        text = greet.enqueue("room 42b").id
        assert self.found("42") == [text, one]
        assert self.found("4242") == [other]
        assert self.found("user=4242") == [other]

    def test_a_named_argument_or_key(self, greet):
        named = greet.enqueue("bob", note="ann").id
        deep = greet.enqueue({"note": ["ann"]}).id
        positional = greet.enqueue("ann").id
        assert self.found("note=ann") == [deep, named]
        assert self.found("user = ann") == self.found("user=ann") == [positional, deep]
        literal = greet.enqueue("note=ann").id
        assert self.found("note=ann") == [literal, deep, named]

    def test_what_is_hidden_is_not_found(self, greet):
        row = greet.enqueue("ann", "hunter22", note="x")
        assert (
            self.found("hunter22") == self.found("password=hunter22") == self.found("password=hunter") == []
        )
        assert self.found("hidden") == []
        assert self.found("ann") == [row.id]

    def test_a_tag_is_one_of_theirs_and_no_part_of_their_json(self, greet):
        row = greet.using(tags=["a", "b"]).enqueue("ann")

        for tag, ids in (("a", [row.id]), (",", []), ('","', [])):
            wanted = Filter(tag=tag)
            assert [job.id for job in operations.search_arguments(wanted, "ann").jobs] == ids
            assert searching.count_matching(wanted) == len(ids)

    def test_within_a_filter_and_its_order(self, greet):
        ids = [row.id for row in greet.enqueue_many([("ann",)] * 3)]
        moments = [timezone.now() - HOUR * n for n in (2, 1, 3)]
        for id_, moment in zip(ids, moments, strict=True):
            Job.objects.filter(pk=id_).update(state="failed", finalized_at=moment)
        greet.enqueue("ann")
        failed = Filter(state="failed")
        assert self.found("ann", failed) == [ids[1], ids[0], ids[2]]
        assert self.found("ann", Filter(state="failed", priority=1)) == []
        assert self.found("ann", failed, limit=2) == [ids[1], ids[0]]
        assert operations.search_arguments(failed, "ann", limit=2).cut
        assert not operations.search_arguments(failed, "ann", limit=3).cut

    def test_says_among_how_many(self, greet, monkeypatch):
        monkeypatch.setattr(searching, "WINDOW", 4)
        greet.enqueue_many([("ann",)] * 6)
        result = operations.search_arguments(Filter(), "ann")
        assert (len(result.jobs), result.searched, result.more) == (4, 4, True)
        monkeypatch.setattr(searching, "WINDOW", 10)
        result = operations.search_arguments(Filter(), "ann")
        assert (len(result.jobs), result.searched, result.more) == (6, 6, False)

    def test_looks_at_a_bounded_number(self, greet, monkeypatch):
        monkeypatch.setattr(searching, "LOOKS", 4)
        monkeypatch.setattr(searching, "STEP", 2)
        old = greet.using(queue_name="rare").enqueue("ann")
        greet.enqueue_many([("ann",)] * 4)
        result = operations.search_arguments(Filter(queue_name="rare"), "ann")
        assert (result.jobs, result.searched, result.more) == ([], 0, True)
        monkeypatch.setattr(searching, "LOOKS", 6)
        assert operations.search_arguments(Filter(queue_name="rare"), "ann").jobs == [old]

    def test_statements(self, greet, django_assert_num_queries):
        greet.enqueue_many([("ann",)] * 30)
        with django_assert_num_queries(2):
            operations.search_arguments(Filter(), "ann")
        with django_assert_num_queries(1):
            operations.search_arguments(Filter(), "nobody")

    @pytest.mark.parametrize("text", ["", "  ", "a\0", "\ud800", "x" * 1001])
    def test_texts_that_no_argument_has(self, text):
        with pytest.raises(InvalidFilter, match="argument"):
            operations.search_arguments(Filter(), text)
