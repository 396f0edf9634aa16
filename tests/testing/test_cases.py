"""The mixin, in Django's test cases: plain ones, with and without a transaction, and async tests in them."""

import datetime as dt

from django.contrib.auth.models import User
from django.test import TestCase, TransactionTestCase

from django_jobs.testing import JobsTestMixin, aassert_enqueued, adrain
from tests.testing import jobs


class Both:
    """What holds in both."""

    def test_run_and_assert(self):
        jobs.note.enqueue(5)
        self.assertJobEnqueued(jobs.note, args=[5])
        assert [row.result for row in self.run_jobs()] == [5]
        self.assertJobNotEnqueued(jobs.note)

    def test_travel(self):
        clock = self.travel_in_time(dt.datetime(2030, 1, 1, tzinfo=dt.UTC))
        jobs.note.using(run_after=dt.timedelta(days=1)).enqueue(6)
        assert self.drain_jobs() == []
        clock.advance(dt.timedelta(days=1))
        assert len(self.drain_jobs()) == 1

    def test_the_travel_has_ended(self):
        assert jobs.note.enqueue().created_at.year > 2024
        assert jobs.note.enqueue().created_at != dt.datetime(2030, 1, 2, tzinfo=dt.UTC)

    def test_capture(self):
        with self.capture_jobs() as captured:
            jobs.note.enqueue(7)
        assert [row.args for row in captured] == [[7]]

    async def test_async(self):
        await jobs.note_async.aenqueue("x")
        await aassert_enqueued(jobs.note_async)
        (row,) = await adrain(raise_errors=True)
        assert row.result == (await User.objects.aget(username="x")).pk


class InTransaction(Both, JobsTestMixin, TestCase):
    pass


class WithoutTransaction(Both, JobsTestMixin, TransactionTestCase):
    available_apps = ["django_jobs", "django.contrib.auth", "django.contrib.contenttypes"]


class Immediate(JobsTestMixin, TestCase):
    jobs_immediate = True

    def test_jobs_run_as_they_are_enqueued(self):
        assert jobs.note.enqueue(8).result == 8

    async def test_in_async_tests(self):
        assert (await jobs.note.aenqueue(9)).result == 9


class NotImmediate(JobsTestMixin, TestCase):
    def test_the_mode_has_ended(self):
        assert jobs.note.enqueue(8).state == "available"
