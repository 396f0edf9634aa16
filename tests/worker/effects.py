"""What the tests of exactly-once effects share: a job's effect, and a claim that is lost."""

from django_jobs import current_job
from django_jobs.models import Job
from tests.workload.models import Effect


def leave_effect():
    context = current_job()
    Effect.objects.create(job_id=context.job.id, claims=context.job.claims, pid=0)


def take_away(job_id):
    """The claim is lost, as after a rescue: somebody else may run the job."""
    Job.objects.filter(pk=job_id).update(state="available", attempt=0, worker=None)
    Job.objects.filter(pk=job_id).update(run_after="2090-01-01T00:00:00Z", state="scheduled")
