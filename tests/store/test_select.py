"""Finding jobs, in bounded statements that go on where the one before ended."""

import random

import pytest

from django_jobs.store.rows import JOB_COLUMNS
from django_jobs.store.selecting import Criteria, Searched
from tests.store.builders import update, write


def ids(jobs):
    return [job.id for job in jobs]


def walk(store, criteria, look, most=1000, **more):
    """All that is found by statement after statement, and how many those were."""
    found, position, statements = [], None, 0
    while True:
        page = store.select(criteria, position, look=look, most=most, **more)
        statements += 1
        found += page.ids
        position = page.end
        if position is None:
            return found, statements


@pytest.fixture
def spread(make, clock):
    """Five jobs in each state, at different times and priorities, a few alike. The expected order, by state."""
    worker, other = make.worker(), make.worker()
    running = make.claimed(worker, 2) + make.claimed(other, 3)
    available = make.insert(2, priority=1) + make.insert(1, priority=5) + make.insert(2, priority=-100)
    first, *rest = make.insert(5, delay=60.0)
    update([first.id], run_after=clock.after(90))
    pending = make.insert(5, pending=True)
    finished = {}
    for state in ("completed", "failed", "cancelled"):
        jobs = make.finished(state, count=5)
        update([jobs[1].id], finalized_at=clock.after(-5))
        finished[state] = [jobs[4].id, jobs[3].id, jobs[2].id, jobs[0].id, jobs[1].id]
    return {
        "running": ids(running),
        "available": [available[2].id, *ids(available[:2]), *ids(available[3:])],
        "scheduled": [*ids(rest), first.id],
        "pending": ids(pending)[::-1],
        **finished,
    }


@pytest.mark.parametrize("look", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize(
    "state", ["pending", "scheduled", "available", "running", "completed", "failed", "cancelled"]
)
def test_each_state_in_its_order_whatever_the_size_of_a_step(store, spread, state, look):
    found, _ = walk(store, Criteria(state, "default" if state == "available" else None), look)

    assert found == spread[state]


@pytest.mark.parametrize("look", [1, 7, 1000])
def test_without_a_state_the_newest_first(store, spread, look):
    found, _ = walk(store, Criteria(), look)

    assert found == sorted((id_ for state in spread.values() for id_ in state), reverse=True)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_is_found_than_asked_for_and_nothing_is_left_out(store, spread, most):
    page = store.select(Criteria("failed"), most=most)

    assert page.ids == spread["failed"][:most]
    assert walk(store, Criteria("failed"), 1000, most)[0] == spread["failed"]


def test_what_is_looked_at_is_bounded_though_nothing_is_found(store, make):
    make.finished("completed", count=20)

    assert walk(store, Criteria("completed", name="another"), look=5) == ([], 5)


def test_by_each_criterion(store, make, clock):
    mine = make.finished("failed")[0]
    make.finished("failed", queue_name="other", name="tests.other")
    old = make.finished("failed")[0]
    worker = make.worker()
    update([mine.id], error_class="ValueError", worker=worker)
    update([old.id], created_at=clock.after(-60), finalized_at=clock.after(-60))
    write(mine, "tags", '["order:1","a,"]')

    def found(**criteria):
        return store.select(Criteria("failed", **criteria), now=clock.now).ids

    assert found(error_class="ValueError") == [mine.id]
    assert found(worker_id=worker) == [mine.id]
    assert found(tag="order:1") == [mine.id]
    assert found(created_before=clock.now) == [old.id]
    assert old.id not in found(created_after=clock.now)
    assert found(finished_for=60.0) == [old.id]
    assert found(finished_for=60.000001) == []
    assert old.id not in found(finished_after=clock.after(-59.9))
    assert old.id in found(finished_after=clock.after(-60))
    update([old.id], priority=-7, unique_key="tests:7")
    assert found(priority=-7) == found(unique_key="tests:7") == [old.id]
    assert len(found(queue_name="default", name="tests.job")) == 2
    assert len(found(queue_name="other")) == 1


@pytest.mark.parametrize("look", [1, 2, 3, 5, 1000])
def test_available_jobs_of_all_queues_queue_by_queue(store, make, look):
    second = make.insert(2, queue_name="b") + make.insert(1, queue_name="b", priority=5)
    first = make.insert(2, queue_name="a_b", priority=-3) + make.insert(2, queue_name="a_b", priority=-2)
    third = make.insert(1, queue_name="ö")
    make.finished("failed", queue_name="c")

    found, _ = walk(store, Criteria("available"), look)

    assert found == ids([*first[2:], *first[:2], second[2], *second[:2], *third])


@pytest.mark.parametrize(
    ("word", "columns", "matches"),
    [
        ("tests.jo", {}, True),
        ("jobs", {}, False),
        ("TESTS", {}, False),
        ("%", {}, False),
        ("key:1", {"unique_key": "key:1"}, True),
        ("key", {"unique_key": "key:1"}, False),
        ("order:1", {"tags": ["other", "order:1"]}, True),
        ("order", {"tags": ["order:1"]}, False),
        (",", {"tags": ["a", "b"]}, False),
        ('say "a"', {"tags": ['say "a"']}, True),
        ("order:1", {"tags": {"order:1": 1}}, False),
        ("order:1", {"tags": "order:1"}, False),
    ],
)
def test_a_word_is_part_of_the_name_or_the_key_or_a_tag(store, make, word, columns, matches):
    job = make.one()
    update([job.id], priority=1, **columns)

    assert bool(store.select(Criteria(word=word)).ids) is matches


@pytest.mark.sqlite
def test_tags_that_are_no_json_harm_no_search(store, make):
    bad, good = make.insert(2)
    write(bad, "tags", "[1,")
    write(good, "tags", '["x"]')

    assert store.select(Criteria(word="x")).ids == [good.id]


def test_a_glance_leaves_out_what_is_large(store, make):
    small = make.one(args="[1]", kwargs='{"a":2}', tags='["x"]')
    large = make.one(
        args=f'["{random.Random(7).randbytes(200_000).hex()}"]'
    )  # it can't be compressed to nothing
    update([small.id, large.id], metadata={"progress": 1}, errors=[{"number": 1}], result={"r": 1})
    (whole, _), (seen, cut) = store.get([small.id, large.id]), store.glance([large.id, small.id])

    left_out = {"errors": None, "result": None}
    expected = {name: left_out.get(name, getattr(whole, name)) for name in JOB_COLUMNS}
    assert {name: getattr(seen, name) for name in JOB_COLUMNS} == {**expected, "errors": []}
    assert cut.args == "…"
    assert cut.metadata == {"progress": 1}
    assert len(repr(cut.values)) < 2000
    assert store.glance([]) == []


def test_a_text_in_the_arguments(store, make):
    positional, named, neither = (
        make.one(args='["the needle"]'),
        make.one(kwargs='{"a":{"b":"needles"}}'),
        make.one(),
    )

    assert store.search(Criteria(), "needle") == Searched(ids([named, positional]), 3, None)
    assert store.search(Criteria(), "Needle") == Searched([], 3, None)
    assert store.search(Criteria(state="failed"), "needle") == Searched([], 0, None)
    assert store.search(Criteria(), "[").ids == ids([neither, named, positional])


@pytest.mark.parametrize("state", [None, "available", "scheduled", "pending", "failed"])
def test_a_search_in_arguments_goes_on_where_it_ended(store, make, state):
    options = {"scheduled": {"delay": 60.0}, "pending": {"pending": True}}.get(state, {})
    insert = make.finished if state == "failed" else make.insert
    first = ("failed",) if state == "failed" else ()
    having = insert(*first, count=7, kwargs='{"a":"the needle"}', **options)
    insert(*first, count=3, name="app.jobs.other", kwargs='{"a":"the needle"}', **options)
    insert(*first, count=4, **options)
    criteria = Criteria(state, name=having[0].name)

    for look, most in ((4, 100), (100, 2), (3, 2), (100, 100)):
        found, number, position = [], 0, None
        while True:
            step = store.search(criteria, "needle", position, look=look, most=most)
            assert step.number <= min(look, most)
            found, number, position = found + step.ids, number + step.number, step.end
            if position is None:
                break
        wanted = [id_ for id_ in walk(store, criteria, 100)[0] if id_ in ids(having)]
        assert (found, number) == (wanted, 11), (look, most)


@pytest.mark.parametrize(
    ("tags", "tag", "matches"),
    [
        ('["a","b"]', "a", True),
        ('["a","b"]', ",", False),
        ('["a,",",b"]', ",", False),
        ('["ab"]', "a", False),
        ('["say \\\\"a\\\\""]', "a", False),
        ('["say \\\\"a\\\\""]', 'say "a"', True),
        ('["Ärger"]', "Ärger", True),
        ('"a"', "a", False),
        ('{"a":1}', "a", False),
    ],
)
def test_a_tag_is_compared_exactly(store, make, tags, tag, matches):
    job = make.one()
    write(job, "tags", tags.replace("\\\\", "\\"))
    make.one()

    assert store.select(Criteria(tag=tag)).ids == ([job.id] if matches else [])


def test_a_tag_column_that_is_no_json_hides_no_other(store, make, database_name):
    broken, good = make.insert(2)
    if database_name == "sqlite":
        write(broken, "tags", "{nonsense")
    write(good, "tags", '["a"]')

    assert store.select(Criteria(tag="a")).ids == [good.id]


def test_of_ids_those_that_match(store, make):
    jobs = make.insert(3)
    dead = make.finished("failed")[0]

    page = store.select(Criteria("available"), ids=[dead.id, jobs[2].id, 987_654_321, jobs[0].id])

    assert (sorted(page.ids), page.end) == ([jobs[0].id, jobs[2].id], None)
    assert store.select(Criteria(), ids=[]).ids == []


# What retention lets go


def test_expired_jobs_of_one_queue_or_of_all_but_some(store, make, clock):
    mine = [make.finished("completed", queue_name=name)[0].id for name in ("a", "b", "c", "a")]

    assert store.select_expired("completed", 0.0, "a", now=clock.now).ids == [mine[0], mine[3]]
    assert store.select_expired("completed", 0.0, other_than=["a"], now=clock.now).ids == mine[1:3]
    assert store.select_expired("completed", 1.0, now=clock.now).ids == []
    assert store.select_expired("failed", 0.0, now=clock.now) == ([], None)


def test_expired_jobs_are_looked_for_from_where_the_last_search_ended(store, make, clock):
    for age in (50, 40, 30, 20):
        update([make.finished("completed")[0].id], finalized_at=clock.after(-age))

    seen, position = [], None
    while True:
        page = store.select_expired("completed", 25.0, after=position, look=2, now=clock.now)
        if page.end is None:
            break
        seen.append(len(page.ids))
        position = page.end

    assert seen == [2, 1]
    later = store.select_expired("completed", 25.0, after=position, now=clock.advance(10))
    assert len(later.ids) == 1


def test_an_expired_job_that_holds_its_key_is_not_found(store, make, clock):
    holds, held, plain = make.finished("completed", count=3)
    update([holds.id], unique_key="a", holds_key=True, key_until=clock.after(1))
    update([held.id], unique_key="b", holds_key=True, key_until=clock.now)

    assert store.select_expired("completed", 0.0, now=clock.now).ids == [held.id, plain.id]
