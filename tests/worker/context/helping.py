"""What the tests of a running job's context share."""

from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_jobs.models import Job


def stored(context):
    return Job.objects.get(pk=context.job.id)


def lose(context):
    Job.objects.filter(pk=context.job.id).update(claims=context.job.claims + 1)


def queries(function):
    with CaptureQueriesContext(connection) as captured:
        function()
    return len(captured)
