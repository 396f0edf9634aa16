"""What operators ask of numbers: history, failures, counts, the queues; read from statistics and indexes, not jobs."""

import datetime as dt

import pytest
from django.utils import timezone

from django_jobs import operations
from django_jobs.models import Job, Queue, Stat, Worker
from django_jobs.operations import Count, InvalidFilter, counting, status

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2031, 5, 6, 12, 30, 30, tzinfo=dt.UTC)


def ago(**time):
    return NOW - dt.timedelta(**time)


def counted(moment, outcome="completed", count=1, queue_name="default", name="tests.job", **more):
    minute = moment.replace(second=0, microsecond=0)
    return Stat.objects.create(
        minute=minute, queue_name=queue_name, name=name, outcome=outcome, count=count, **more
    )


def jobs(state, count=1, **columns):
    ended = timezone.now() if state in ("completed", "failed", "cancelled") else None
    columns = {
        "name": "tests.job", "run_after": NOW, "created_at": NOW, "finalized_at": ended,
        "worker_id": 7 if state == "running" else None, "attempt": 1, **columns,
    }  # fmt: skip
    return Job.objects.bulk_create([Job(state=state, **columns) for _ in range(count)])


class TestHistory:
    def test_a_point_for_each_step_with_counts_and_times(self):
        counted(ago(minutes=2), count=4, run_total=8.0, run_max=5.0, wait_total=2.0, wait_max=1.5)
        counted(ago(minutes=2), "retried", 1, error_class="ValueError", run_total=2.0, run_max=2.0)
        counted(ago(minutes=2), "failed", 5, error_class="ValueError", run_total=10.0, run_max=9.0)
        counted(ago(minutes=2), "snoozed", 2, run_total=100.0, run_max=100.0)
        counted(ago(minutes=1), "cancelled", 3)
        counted(ago(minutes=30))

        points = operations.history(dt.timedelta(minutes=3), NOW)

        assert [(point.start, *point[1:6]) for point in points] == [
            (NOW.replace(minute=27, second=0), 0, 0, 0, 0, 0),
            (NOW.replace(minute=28, second=0), 4, 5, 1, 2, 0),
            (NOW.replace(minute=29, second=0), 0, 0, 0, 0, 3),
            (NOW.replace(minute=30, second=0), 0, 0, 0, 0, 0),
        ]
        assert points[0][6:] == points[2][6:] == (None, None, None, None)
        assert points[1][6:] == (2.0, 9.0, 0.2, 1.5)

    def test_of_a_queue_or_a_name(self):
        counted(ago(minutes=1), queue_name="mail", name="a")
        counted(ago(minutes=1), count=2, queue_name="mail", name="b")
        counted(ago(minutes=1), count=4, name="b")

        def total(**of):
            return sum(point.completed for point in operations.history(ago(minutes=5), NOW, **of))

        assert (total(), total(queue_name="mail"), total(name="b"), total(queue_name="mail", name="b")) == (
            7, 3, 6, 2,
        )  # fmt: skip

    def test_steps_begin_at_multiples_of_their_length(self):
        counted(NOW.replace(hour=10, minute=59))
        counted(NOW.replace(hour=11, minute=0), count=2)
        counted(NOW.replace(hour=11, minute=59), count=4)

        points = operations.history(NOW.replace(hour=10, minute=30), NOW, dt.timedelta(hours=1))

        assert [(point.start.hour, point.completed) for point in points] == [(10, 1), (11, 6), (12, 0)]

    def test_steps_shorter_than_what_older_statistics_are_kept_by(self):
        for hours, step in ((4, 60), (4, 300), (49, 120), (49, 1800)):
            with pytest.raises(InvalidFilter, match="statistics are kept by"):
                operations.history(dt.timedelta(hours=hours), step=step)
        assert len(operations.history(dt.timedelta(hours=3))) in (180, 181)
        assert len(operations.history(dt.timedelta(hours=48), step=600)) in (288, 289)
        assert len(operations.history(dt.timedelta(days=7), step=3600)) in (168, 169)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"step": 59}, "step is 59; it must be whole minutes"),
            ({"step": 90}, "whole minutes"),
            ({"step": "x"}, "whole minutes"),
            ({"step": float("nan")}, "whole minutes"),
            ({"step": float("inf")}, "whole minutes"),
            ({"since": None}, "since is None"),
            ({"since": "yesterday"}, "since is 'yesterday'; it must be a datetime"),
            ({"since": dt.datetime(2031, 1, 1)}, "no time zone"),
            ({"since": NOW + dt.timedelta(minutes=5)}, "before until"),
            ({"since": ago(hours=40)}, "there are 2401 steps of 60 s; at most 2000"),
            ({"queue_name": ""}, "queue_name"),
            ({"name": 5}, "name is 5"),
        ],
    )
    def test_what_can_not_be_meant(self, arguments, message):
        with pytest.raises(InvalidFilter, match=message):
            operations.history(**{"since": ago(minutes=5), "until": NOW, **arguments})


class TestFailures:
    def test_by_name_and_error_from_the_statistics_and_the_jobs_that_are_there(self):
        for time in ({"minutes": 5}, {"minutes": 30}, {"hours": 5}, {"days": 3}, {"days": 20}):
            counted(ago(**time), "failed", 2, name="a", error_class="ValueError")
        counted(ago(minutes=1), "failed", 1, name="b", error_class="KeyError")
        counted(ago(minutes=1), "retried", 1, name="c", error_class="KeyError")
        jobs("failed", 3, name="a", error_class="ValueError", finalized_at=ago(minutes=4))
        jobs("failed", 1, name="old", error_class=None, finalized_at=ago(days=40))

        groups = operations.failures(now=NOW)

        assert [group[:5] for group in groups] == [
            ("b", "KeyError", 1, 1, 1),
            ("a", "ValueError", 4, 6, 8),
            ("old", "", 0, 0, 0),
        ]
        assert [group.there for group in groups] == [0, 3, 1]
        assert (groups[1].first_seen, groups[1].last_seen) == (
            ago(days=20).replace(second=0), ago(minutes=4),
        )  # fmt: skip
        assert groups[2].first_seen == groups[2].last_seen == ago(days=40)

    def test_the_jobs_that_are_there_are_counted_up_to_a_bound(self, monkeypatch):
        monkeypatch.setattr("django_jobs.operations.over_time.MOST", 3)
        jobs("failed", 4, name="a", error_class="E", finalized_at=ago(minutes=4))

        (group,) = operations.failures(now=NOW)

        assert (group.there.number, group.there.capped) == (3, True)

    def test_limit(self):
        for name in "abc":
            counted(ago(minutes=1), "failed", name=name, error_class="E")

        assert len(operations.failures(limit=2, now=NOW)) == 2
        with pytest.raises(InvalidFilter, match="limit is 0"):
            operations.failures(limit=0)


class TestCounts:
    def test_a_count_is_a_number_and_says_whether_there_are_more(self):
        assert Count(5) == 5
        assert Count(5) + 1 == 6
        assert str(Count(1234)) == "1,234"
        assert str(Count(10_000, True)) == "10,000+"
        assert repr(Count(10_000, True)) == "Count(10000, capped=True)"

    def test_every_state(self):
        for number, state in enumerate(operations.filters.STATES):
            jobs(state, number)

        assert operations.counts() == {
            "pending": 0, "scheduled": 1, "available": 2, "running": 3, "completed": 4, "failed": 5, "cancelled": 6,
        }  # fmt: skip
        assert "pending" not in operations.stats()

    def test_capped(self, monkeypatch):
        monkeypatch.setattr(counting, "MOST", 3)
        jobs("available", 3)
        jobs("failed", 4)

        counts = operations.counts()

        assert (counts["available"].number, counts["available"].capped) == (3, False)
        assert (counts["failed"].number, counts["failed"].capped) == (3, True)

    def test_by_queue(self, monkeypatch):
        jobs("available", 5, queue_name="mail")
        jobs("failed", 2, queue_name="mail")
        jobs("failed", 2, queue_name="other")
        assert operations.stats_for("mail") == {"available": 5, "failed": 2}
        assert operations.stats_by_queue() == [
            ("mail", "available", 5), ("mail", "failed", 2), ("other", "failed", 2),
        ]  # fmt: skip

        monkeypatch.setattr(counting, "MOST", 3)
        assert [(row.queue_name, row.jobs.capped) for row in operations.stats_by_queue()] == [
            ("mail", True), ("mail", True), ("other", True),
        ]  # fmt: skip


def worker(queues=("*",), **columns):
    columns = {
        "host": "web1", "pid": 12, "started_at": ago(hours=1), "heartbeat_at": ago(seconds=2),
        "expires_at": NOW + dt.timedelta(seconds=28), **columns,
    }  # fmt: skip
    return Worker.objects.create(queues=list(queues), **columns)


class TestQueueStatus:
    def test_what_waits_since_when_and_who_works_on_it(self):
        jobs("available", 3, queue_name="mail", run_after=ago(seconds=50))
        jobs("available", 1, queue_name="mail", priority=5, run_after=ago(seconds=90))
        jobs("available", 1, queue_name="mail", priority=-5, run_after=ago(seconds=20))
        jobs("available", 1, queue_name="other", run_after=ago(seconds=7))
        jobs("scheduled", 2, queue_name="later")
        jobs("pending", 1, queue_name="later")
        jobs("running", 2, queue_name="mail")
        jobs("failed", 1, queue_name="dead")
        jobs("completed", 1, queue_name="past")
        Queue.objects.create(name="shut", paused_at=ago(hours=1), created_at=NOW, updated_at=NOW)
        counted(ago(minutes=2), count=10, queue_name="busy")
        counted(ago(minutes=2), "retried", 2, queue_name="busy")
        counted(ago(minutes=2), "failed", 1, queue_name="busy")
        counted(ago(minutes=9), count=100, queue_name="busy")
        everything, mail = worker(), worker(["mail,named", "busy"])
        worker(["late"], expires_at=ago(seconds=1))
        worker(["quiet"], quiet_requested_at=NOW)
        worker(["stopped"], stopped_at=NOW)

        status = {queue.name: queue for queue in operations.queue_status(now=NOW)}

        assert list(status) == ["busy", "dead", "later", "mail", "named", "other", "shut"]
        assert status["mail"] == operations.QueueStatus(
            "mail", available=Count(5), running=Count(2), oldest=90.0, workers=(everything.pk, mail.pk)
        )
        assert (status["later"].scheduled, status["later"].pending, status["dead"].failed) == (2, 1, 1)
        assert (status["other"].oldest, status["other"].workers) == (7.0, (everything.pk,))
        assert status["busy"][7:10] == (10, 1, 2)
        assert status["busy"].per_minute == 2.0
        assert status["shut"].paused_at == ago(hours=1)

    def test_their_totals_are_the_counts_of_the_states(self, monkeypatch):
        monkeypatch.setattr(counting, "MOST", 4)
        monkeypatch.setattr(status, "MOST", 4)
        for name in "ab":
            jobs("available", 4, queue_name=name)
            jobs("failed", 2, queue_name=name)
            jobs("scheduled", 3, queue_name=name)
        jobs("pending", 1, queue_name="c")
        jobs("completed", 9, queue_name="c")

        totals, counts = status.totals(operations.queue_status(now=NOW)), operations.counts()

        assert repr(totals) == repr({state: counts[state] for state in totals})
        assert [str(totals[state]) for state in status.COUNTED] == ["1", "4+", "4+", "0", "4"]

    def test_many_queues_share_the_bound(self, monkeypatch):
        monkeypatch.setattr(counting, "MOST_TOGETHER", 6)
        monkeypatch.setattr(counting, "LEAST", 1)
        for name in "abc":
            jobs("available", 3, queue_name=name)

        assert [queue.available.number for queue in operations.queue_status(now=NOW)] == [2, 2, 2]
        assert all(queue.available.capped for queue in operations.queue_status(now=NOW))

    def test_the_number_of_statements_is_fixed(self, django_assert_num_queries):
        for name in "abcdefgh":
            jobs("available", 2, queue_name=name)
            worker([name])

        with django_assert_num_queries(6):
            operations.queue_status()
