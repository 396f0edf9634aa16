"""Schedules in the database: what is declared is there, and of each tick there is one job, whoever runs it."""

import datetime as dt
from functools import partial

import pytest
from django.db import DatabaseError, transaction

from django_jobs.models import Job, Schedule
from django_jobs.serialization import parse_timestamp
from django_jobs.store.rows import NewJob, NewSchedule
from django_jobs.store.schedules import Tick
from tests.store.builders import in_threads, update

NEW = NewJob("tests.job")
EVERY = dt.timedelta(minutes=5)


def again(schedule):
    return Schedule.objects.get(pk=schedule.id)


def tick(store, schedule, at, new=NEW, metadata="{}", now=None):
    return store.tick_schedule(Tick(schedule, at, at + EVERY, new, metadata), now=now or at)


class TestDeclaring:
    def test_a_new_one_owes_nothing_of_the_past(self, store, clock):
        new = NewSchedule(
            "nightly",
            "app.job",
            "0 2 * * *",
            "Europe/Berlin",
            "all",
            '[1e22,"ä\\"\\\\"]',
            '{"a":null}',
            '{"priority":5}',
        )

        (schedule,) = store.upsert_schedules([new], now=clock.now)

        assert (schedule.key, schedule.name, schedule.expression) == ("nightly", "app.job", "0 2 * * *")
        assert schedule[4:9] == ("Europe/Berlin", "all", new.args, new.kwargs, new.options)
        assert (schedule.next_tick, schedule.last_tick, schedule.last_error) == (None, None, "")
        assert parse_timestamp(schedule.owed_after) == clock.now
        assert again(schedule).args == [1e22, 'ä"\\']
        assert again(schedule).created_at == clock.now

    def test_one_that_is_there_is_not_written(self, store, clock, make):
        schedule = make.planned(clock.after(60))

        assert (
            store.upsert_schedules(
                [NewSchedule("tests.schedule", "tests.job", "every 300 s")], now=clock.after(5)
            )
            == []
        )
        assert store.schedules() == [schedule]

    @pytest.mark.parametrize(
        "changes",
        [
            {"args": "[1]"},
            {"kwargs": '{"a":1}'},
            {"options": '{"priority":1}'},
            {"missed": "all"},
            {"name": "b"},
        ],
    )
    def test_other_changes_leave_the_ledger(self, store, clock, make, changes):
        before = make.planned(clock.after(60))
        clock.advance(5)

        after = make.schedule(**changes)

        assert after == before._replace(**changes)

    @pytest.mark.parametrize("changes", [{"expression": "every 60 s"}, {"timezone": "Europe/Berlin"}])
    def test_other_times_start_anew_but_the_last_tick_stays(self, store, clock, make, changes):
        before = tick(store, make.planned(clock.now), clock.now).schedule
        clock.advance(5)

        after = make.schedule(**changes)

        assert after.next_tick is None
        assert parse_timestamp(after.owed_after) == clock.now
        assert after.last_tick == before.last_tick is not None

    def test_what_is_declared_no_more_is_marked_and_not_due(self, store, clock, make):
        gone, kept = make.planned(clock.now, "gone"), make.planned(clock.now, "kept")

        (removed,) = store.remove_schedules(["kept", "other"], now=clock.now)

        assert (removed.key, parse_timestamp(removed.removed_at), removed.next_tick) == (
            "gone",
            clock.now,
            None,
        )
        assert store.remove_schedules(["kept"], now=clock.now) == []
        assert store.due_schedules(now=clock.after(1000)).schedules == [kept]
        assert tick(store, gone, clock.now) is None

    def test_it_comes_back_unmarked_and_owes_nothing_of_the_time_between(self, store, clock, make):
        make.planned(clock.now)
        store.remove_schedules([], now=clock.now)
        clock.advance(10_000)

        back = make.schedule()

        assert (back.removed_at, back.next_tick, parse_timestamp(back.owed_after)) == (None, None, clock.now)

    def test_a_paused_one_stays_paused(self, store, clock, make):
        make.schedule()
        store.pause_schedule("tests.schedule", True, now=clock.now)
        store.remove_schedules([], now=clock.now)

        assert make.schedule(args="[1]").paused_at is not None

    def test_of_many_workers_that_start_at_once_all_see_the_same(self, open_store, clock):
        declared = [NewSchedule(f"{number}", "tests.job", "every 60 s") for number in range(30)]
        stores = [open_store() for _ in range(4)]

        for round_ in range(5):
            several = [
                [each._replace(args=f"[{round_}]") for each in declared][::step] for step in (1, -1, 1, -1)
            ]
            in_threads(
                *(
                    partial(store.upsert_schedules, schedules, now=clock.now)
                    for store, schedules in zip(stores, several, strict=True)
                ),
                partial(
                    open_store().remove_schedules, [str(number) for number in range(0, 30, 2)], now=clock.now
                ),
            )

        assert Schedule.objects.count() == 30


class TestWhatIsDue:
    def test_nothing(self, store):
        assert store.due_schedules() == (None, [])

    def test_what_is_due_what_is_not_worked_out_and_the_first_that_will_be(self, store, clock, make):
        make.planned(clock.after(20), "later")
        expected = {
            make.planned(clock.after(10), "first"),
            make.planned(clock.now, "due"),
            make.planned(clock.after(-1000), "long due"),
            make.schedule("not worked out"),
        }

        due = store.due_schedules(now=clock.now)

        assert due.now == clock.now
        assert set(due.schedules) == expected

    def test_a_moment_without_a_fraction(self, store, clock, make):
        clock.now = clock.now.replace(microsecond=0)
        due = make.planned(clock.now)

        assert store.due_schedules(now=clock.after(-1e-6)).schedules == [due]  # the first that will be
        assert store.due_schedules(now=clock.now).schedules == [due]
        assert tick(store, due, clock.now).schedule.last_tick is not None

    @pytest.mark.postgresql
    def test_the_time_is_the_databases(self, store, make):
        make.schedule()

        before = dt.datetime.now(dt.UTC)
        assert abs(store.due_schedules().now - before) < dt.timedelta(minutes=5)


class TestTicks:
    def test_a_tick_is_a_job_and_the_ledger_moves_on(self, store, clock, make):
        schedule = make.planned(clock.now)
        new = NewJob(
            "app.job", "mail", 5, 3, args="[1]", kwargs='{"a":1}', timeout=9.5, tags='["x"]', unique_key="k"
        )

        ticked = tick(store, schedule, clock.now, new, '{"schedule":"tests.schedule"}', now=clock.after(1))

        (job,) = store.get([ticked.job.id])
        assert ticked.job == job
        assert (job.name, job.queue_name, job.priority, job.max_attempts) == ("app.job", "mail", 5, 3)
        assert (job.args, job.kwargs, job.timeout, job.tags) == ([1], {"a": 1}, 9.5, ["x"])
        assert (job.state, job.attempt, job.unique_key, job.holds_key) == ("available", 0, "k", True)
        assert job.created_at == job.run_after == clock.after(1)
        assert job.metadata == {"schedule": "tests.schedule"}
        row = again(schedule)
        assert (row.last_tick, row.next_tick, row.last_job_id) == (clock.now, clock.now + EVERY, job.id)
        assert store.schedules() == [ticked.schedule]

    def test_whoever_read_the_same_row_is_too_late(self, store, open_store, clock, make):
        schedule = make.planned(clock.now)
        assert tick(store, schedule, clock.now) is not None

        assert tick(open_store(), schedule, clock.now) is None
        assert Job.objects.count() == 1

    @pytest.mark.parametrize("first_is_known", [True, False])
    def test_of_many_keepers_at_once_one_runs_each_tick(self, open_store, clock, make, first_is_known):
        stores = [open_store() for _ in range(4)]
        make.planned(clock.now) if first_is_known else make.schedule()
        for _ in range(15):
            (schedule,) = stores[0].schedules()

            answers = in_threads(*(partial(tick, store, schedule, clock.now) for store in stores))

            (ticked,) = [answer for answer in answers if answer is not None]
            assert Job.objects.get().pk == ticked.job.id
            Job.objects.all().delete()  # the ledger does not depend on it
            clock.advance(300)

    def test_a_finished_job_that_was_purged_is_not_run_again(self, store, clock, make):
        schedule = make.planned(clock.now)
        job = tick(store, schedule, clock.now).job
        update([job.id], state="completed", finalized_at=clock.now)
        assert store.purge("completed", 0.0, now=clock.now) == [job.id]

        assert tick(store, schedule, clock.now) is None
        assert Job.objects.count() == 0

    def test_no_tick_is_run_twice_whatever_was_written_meanwhile(self, store, clock, make):
        tick(store, make.planned(clock.now), clock.now)
        clock.advance(-60)  # the clock steps back, and the declaration changes and changes back
        make.schedule(expression="every 60 s")
        schedule = make.schedule()

        assert tick(store, schedule, clock.after(60)) is None
        assert tick(store, schedule, clock.after(-300)) is None
        assert tick(store, schedule, clock.after(360)) is not None

    @pytest.mark.parametrize(
        "meanwhile",
        [
            lambda store, make, now: store.pause_schedule("tests.schedule", True, now=now),
            lambda store, make, now: store.remove_schedules([], now=now),
            lambda store, make, now: make.schedule(expression="every 60 s"),
            lambda store, make, now: store.advance_schedule(
                store.schedules()[0], now + dt.timedelta(seconds=1), now=now
            ),
            lambda store, make, now: Schedule.objects.all().delete(),
        ],
        ids=["paused", "removed", "changed", "moved on", "deleted"],
    )
    def test_what_changed_meanwhile_is_not_run(self, store, clock, make, meanwhile):
        schedule = make.planned(clock.now)
        meanwhile(store, make, clock.after(1))

        assert tick(store, schedule, clock.now) is None
        assert store.advance_schedule(schedule, clock.after(300), now=clock.now) is None
        assert Job.objects.count() == 0

    @pytest.mark.parametrize("change", ["times", "paused", "paused and resumed", "removed"])
    def test_one_not_worked_out_is_not_run_by_what_was_read_before_a_change(self, store, clock, make, change):
        schedule = make.schedule()
        clock.advance(10)
        if change == "times":
            make.schedule(expression="every 60 s")
        elif change == "removed":
            store.remove_schedules([], now=clock.now)
        else:
            store.pause_schedule("tests.schedule", True, now=clock.now)
            if change == "paused and resumed":
                store.pause_schedule("tests.schedule", False, now=clock.now)

        assert tick(store, schedule, clock.now) is None
        assert store.advance_schedule(schedule, clock.after(300), now=clock.now) is None

    def test_an_insert_that_fails_leaves_the_tick_to_be_tried_again(self, store, clock, make):
        schedule = make.planned(clock.now)

        with pytest.raises(DatabaseError):
            tick(store, schedule, clock.now, NEW._replace(priority=1000))
        assert store.schedules() == [schedule]
        assert tick(store, schedule, clock.now) is not None
        assert Job.objects.count() == 1

    def test_a_live_job_that_holds_the_unique_key_stands_for_the_tick(self, store, clock, make):
        new = NEW._replace(unique_key="one")
        first = tick(store, make.planned(clock.now), clock.now, new)

        second = tick(store, first.schedule, clock.after(300), new)

        assert second.job is None
        row = again(second.schedule)
        assert (row.last_tick, row.last_job_id) == (clock.after(300), first.job.id)
        assert Job.objects.count() == 1

    def test_it_goes_into_the_callers_transaction(self, shared, clock, make):
        schedule = make.planned(clock.now)

        with pytest.raises(ZeroDivisionError), transaction.atomic():
            assert tick(shared, schedule, clock.now) is not None
            assert tick(shared, schedule, clock.now) is None
            1 / 0  # noqa: B018

        assert Job.objects.count() == 0
        assert tick(shared, schedule, clock.now) is not None

    def test_an_error_is_noted_until_a_tick_is_run(self, store, clock, make):
        schedule = make.planned(clock.now)

        store.fail_schedule(schedule.id, "no such job", now=clock.now)

        assert again(schedule).last_error == "no such job"
        assert tick(store, schedule, clock.now).schedule.last_error == ""


@pytest.mark.postgresql
class TestMeetings:
    """Who comes second waits for the first's lock, and then sees what was stored."""

    @pytest.mark.parametrize("first", ["tick", "pause", "remove", "change"])
    def test_a_tick_that_waited_for_a_change_is_not_run(self, shared, store, clock, make, first):
        from tests.store.test_races_postgresql import meet

        schedule = make.planned(clock.now)
        changes = {
            "tick": partial(tick, shared, schedule, clock.now),
            "pause": partial(shared.pause_schedule, "tests.schedule", True, now=clock.now),
            "remove": partial(shared.remove_schedules, [], now=clock.now),
            "change": partial(
                shared.upsert_schedules,
                [NewSchedule("tests.schedule", "tests.job", "every 60 s")],
                now=clock.now,
            ),
        }

        _, ticked = meet(changes[first], partial(tick, store, schedule, clock.now))

        assert ticked is None
        assert Job.objects.count() == (first == "tick")

    def test_a_tick_that_waited_for_a_note_is_run_once(self, shared, store, clock, make):
        from tests.store.test_races_postgresql import meet

        schedule = make.planned(clock.now)

        _, ticked = meet(
            lambda: shared.fail_schedule(schedule.id, "no", now=clock.now),
            partial(tick, store, schedule, clock.now),
        )

        assert store.schedules() == [ticked.schedule]
        assert (ticked.schedule.last_error, ticked.schedule.last_job_id) == ("", ticked.job.id)


class TestPausing:
    def test_a_paused_one_is_not_due(self, store, clock, make):
        make.planned(clock.now)

        paused = store.pause_schedule("tests.schedule", True, now=clock.now)

        assert (parse_timestamp(paused.paused_at), paused.next_tick) == (clock.now, None)
        assert store.due_schedules(now=clock.after(1000)).schedules == []

    def test_resumed_it_owes_nothing_of_the_time_between(self, store, clock, make):
        make.planned(clock.now)
        store.pause_schedule("tests.schedule", True, now=clock.now)

        resumed = store.pause_schedule("tests.schedule", False, now=clock.advance(10_000))

        assert (resumed.paused_at, resumed.next_tick) == (None, None)
        assert parse_timestamp(resumed.owed_after) == clock.now

    def test_what_is_so_already_stays_as_it_is(self, store, clock, make):
        schedule = make.planned(clock.now)
        assert store.pause_schedule("tests.schedule", False, now=clock.after(5)) == schedule
        paused = store.pause_schedule("tests.schedule", True, now=clock.after(5))

        assert store.pause_schedule("tests.schedule", True, now=clock.after(10)) == paused

    def test_an_unknown_one(self, store):
        assert store.pause_schedule("nothing", True) is None

    def test_run_now_leaves_the_ledger(self, store, clock, make):
        schedule = make.planned(clock.after(60))

        job = store.run_schedule(schedule.id, NEW, '{"schedule":"tests.schedule"}', now=clock.now)

        assert store.get([job.id]) == [job]
        assert (job.state, job.metadata) == ("available", {"schedule": "tests.schedule"})
        assert store.schedules() == [schedule]
        assert store.run_schedule(schedule.id + 1, NEW, "{}", now=clock.now) is None
