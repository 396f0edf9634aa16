"""The same for ``TestCase`` and ``TransactionTestCase``, in the words of unittest."""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar
from unittest import TestCase

from django_jobs.store.rows import JobRow
from django_jobs.testing import asserting, following, running, travelling


class JobsTestMixin(TestCase):
    """Mix it in before Django's class: ``class SignUpTest(JobsTestMixin, TestCase)``.

    ``jobs_immediate = True`` in a class runs each job as it is enqueued, in all of its tests.
    """

    jobs_immediate: ClassVar[bool] = False

    def setUp(self) -> None:
        """Begin the immediate mode, if the class wants that."""
        super().setUp()
        if self.jobs_immediate:
            self.enterContext(following.immediate())

    def run_jobs(self, **options: Any) -> list[JobRow]:
        """See :func:`django_jobs.testing.run_jobs`."""
        return running.run_jobs(**options)

    def drain_jobs(self, **options: Any) -> list[JobRow]:
        """See :func:`django_jobs.testing.drain`."""
        return running.drain(**options)

    def travel_in_time(self, to: dt.datetime | None = None) -> travelling.Clock:
        """The clock that the queue goes by until the test ends. See :func:`django_jobs.testing.time_travel`."""
        return self.enterContext(travelling.time_travel(to))

    def capture_jobs(self, **options: Any) -> following.capture_jobs:
        """See :class:`django_jobs.testing.capture_jobs`."""
        return following.capture_jobs(**options)

    def assertJobEnqueued(self, job: Any, **options: Any) -> JobRow:  # noqa: N802 - as unittest writes it
        """See :func:`django_jobs.testing.assert_enqueued`."""
        return asserting.assert_enqueued(job, **options)

    def assertJobNotEnqueued(self, job: Any, **options: Any) -> None:  # noqa: N802
        """See :func:`django_jobs.testing.assert_not_enqueued`."""
        asserting.assert_not_enqueued(job, **options)
