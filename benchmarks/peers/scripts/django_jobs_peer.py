"""django_jobs, as its README says."""

import os
import sys

import shared

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "django_site")


class DjangoJobs(shared.Peer):
    """enqueue_many; one worker with its defaults."""

    def setup(self):
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)

    def open(self):
        import django

        django.setup()
        from django_jobs_site import jobs

        self.jobs = jobs

    def one(self, n):
        self.jobs.noop.enqueue(n)

    def many(self, numbers):
        self.jobs.noop.enqueue_many([(n,) for n in numbers])

    def tell(self, address):
        self.jobs.tell.enqueue(address)

    def worker(self):
        return [sys.executable, "-m", "django", "runjobs"]


if __name__ == "__main__":
    DjangoJobs().run()
