"""For the tests of a site: run what was enqueued in the test's own transaction, look at it, travel in time.

Functions and context managers for any test runner; :class:`JobsTestMixin` for ``TestCase`` classes; and, for pytest,
fixtures of the same names (``run_jobs``, ``drain_jobs``, ``assert_enqueued``, ``jobs_clock``, ``immediate_jobs``,
``captured_jobs``). All of it works in ``TestCase`` and in ``TransactionTestCase``, on both databases.
"""

from django_jobs.testing.asserting import (
    aassert_enqueued,
    assert_enqueued,
    assert_not_enqueued,
    enqueued_jobs,
)
from django_jobs.testing.cases import JobsTestMixin
from django_jobs.testing.following import capture_jobs, immediate
from django_jobs.testing.running import TooManyJobs, adrain, arun_jobs, drain, run_jobs, run_schedules
from django_jobs.testing.travelling import Clock, time_travel

__all__ = [
    "Clock",
    "JobsTestMixin",
    "TooManyJobs",
    "aassert_enqueued",
    "adrain",
    "arun_jobs",
    "assert_enqueued",
    "assert_not_enqueued",
    "capture_jobs",
    "drain",
    "enqueued_jobs",
    "immediate",
    "run_jobs",
    "run_schedules",
    "time_travel",
]
