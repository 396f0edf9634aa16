"""Users, and jobs that look as if a worker had been at them, for tests of what people see."""

import datetime as dt

import factory
from django.contrib.auth.models import User
from django.utils import timezone

from django_jobs.models import Job


class AdminFactory(factory.django.DjangoModelFactory):
    """A user who may do everything."""

    class Meta:
        model = User

    username = factory.Sequence(lambda number: f"admin{number}")
    is_staff = True
    is_superuser = True


class JobFactory(factory.django.DjangoModelFactory):
    """A job that waits; with ``failed=True`` a dead letter with its error."""

    class Meta:
        model = Job

    class Params:
        failed = factory.Trait(
            state="failed",
            attempt=factory.SelfAttribute("max_attempts"),
            finalized_at=factory.LazyFunction(timezone.now),
            error_class="ValueError",
            errors=factory.LazyAttribute(
                lambda job: [
                    {
                        "number": 1,
                        "attempt": job.max_attempts,
                        "at": job.created_at.isoformat(),
                        "class": "ValueError",
                        "message": "<b>no</b>",
                        "traceback": "Traceback ...",
                    }
                ]
            ),
        )

    name = "tests.workload.jobs.fail"
    max_attempts = 5
    args = factory.LazyFunction(lambda: ["<script>alert(1)</script>"])
    created_at = factory.Sequence(lambda number: timezone.now() + dt.timedelta(milliseconds=number))
    run_after = factory.SelfAttribute("created_at")
