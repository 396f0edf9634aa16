"""The backends of Django's Tasks framework: django-tasks-db, django-ox, dj-queue."""

import os
import sys

import shared

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "django_site")
PEER = os.environ["PEER"]
WORKERS = {
    "django-tasks-db": ["db_worker", "--no-startup-delay"],
    "django-ox": ["ox_worker", "--concurrency", "4", "--verbosity", "0"],
    "dj-queue": ["dj_queue"],
}


class DjangoTasks(shared.Peer):
    """enqueue() in a transaction of 1,000, or what the backend has for many."""

    def setup(self):
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)

    def open(self):
        import django

        django.setup()
        import site_tasks

        self.tasks = site_tasks

    def one(self, n):
        self.tasks.noop.enqueue(n)

    def many(self, numbers):
        from django.db import transaction

        noop = self.tasks.noop
        for chunk in shared.chunks(numbers):
            if PEER == "django-ox":
                from django_ox.bulk import enqueue_many

                enqueue_many(noop, [((n,), {}) for n in chunk])
            elif PEER == "dj-queue":
                noop.get_backend().enqueue_all([(noop, (n,), {}) for n in chunk])
            else:
                with transaction.atomic():
                    for n in chunk:
                        noop.enqueue(n)

    def tell(self, address):
        self.tasks.tell.enqueue(address)

    def worker(self):
        return [sys.executable, "-m", "django", *WORKERS[PEER]]


if __name__ == "__main__":
    DjangoTasks().run()
