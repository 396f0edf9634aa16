"""Changing what waiting jobs wait for and where."""

import datetime as dt

import pytest

from tests.store.builders import columns, update

CHANGES = {"queue_name": "other", "priority": 9, "max_attempts": 3, "delay": 60.0}


def told(answers):
    return {answer.job.id: answer.done for answer in answers}


@pytest.mark.parametrize("state", ["pending", "scheduled", "available"])
def test_a_waiting_job_is_changed(store, make, clock, state):
    job = make.one()
    update([job.id], state=state)

    (answer,) = store.update([job.id], **CHANGES, now=clock.now)

    assert answer.done
    assert answer.job == make.again(job)
    assert (answer.job.queue_name, answer.job.priority, answer.job.max_attempts) == ("other", 9, 3)
    assert answer.job.run_after == clock.after(60)
    assert answer.job.state == ("pending" if state == "pending" else "scheduled")


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_given_stays(store, make, clock, change):
    job = make.one(priority=2, queue_name="mail", max_attempts=7)

    (answer,) = store.update([job.id], **{change: CHANGES[change]}, now=clock.now)

    before, after = columns(job), columns(answer.job)
    differ = {name for name in before if before[name] != after[name]}
    assert differ == ({"run_after", "state"} if change == "delay" else {change})


@pytest.mark.parametrize(
    ("seconds", "state"), [(-1, "available"), (0, "available"), (1e-6, "scheduled"), (60, "scheduled")]
)
def test_a_time_that_has_come_is_available(store, make, clock, seconds, state):
    soon, later = make.one(), make.one(delay=3600.0)

    answers = store.update([soon.id, later.id], run_after=clock.after(seconds), now=clock.now)

    assert {answer.job.state for answer in answers} == {state}
    assert {answer.job.run_after for answer in answers} == {clock.after(seconds)}


@pytest.mark.parametrize("state", ["running", "completed", "failed", "cancelled"])
def test_others_stay_as_they_are(store, make, clock, state):
    job = make.running(make.worker()) if state == "running" else make.finished(state)[0]
    before = make.again(job)

    (answer,) = store.update([job.id], **CHANGES, now=clock.advance(5))

    assert (answer.done, answer.job, make.again(job)) == (False, before, before)


def test_a_job_without_an_attempt_left_by_the_new_number_stays_and_the_others_are_changed(store, make, clock):
    spent, fresh = make.insert(2)
    update([spent.id], state="scheduled", attempt=3)

    answers = store.update([fresh.id, spent.id], max_attempts=3, priority=1, now=clock.now)

    assert told(answers) == {spent.id: False, fresh.id: True}
    assert (make.again(spent).max_attempts, make.again(spent).priority) == (5, 0)


def test_all_that_exist_come_back_each_once_in_the_order_of_their_ids(store, make, clock):
    jobs = make.insert(3)
    gone = 987_654_321

    answers = store.update([jobs[2].id, gone, jobs[0].id, jobs[0].id], priority=1, now=clock.now)

    assert [answer.job.id for answer in answers] == [jobs[0].id, jobs[2].id]


def test_the_times_of_a_finished_twin_are_not_touched(store, make, clock):
    (done,) = make.finished("completed")

    store.update([done.id], run_after=clock.after(dt.timedelta(days=1).total_seconds()), now=clock.now)

    assert make.again(done).run_after == done.run_after
