"""A worker in the process of ``runserver``: for development, and for whoever finds one process enough."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Mapping, Sequence

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

from django_jobs import conf
from django_jobs.databases import jobs_database
from django_jobs.worker.options import WorkerOptions
from django_jobs.worker.worker import Worker

logger = logging.getLogger("django_jobs.worker")

# How long the end of the process waits for running jobs to be handed back.
END_SECONDS = 5.0


def is_wanted(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether this is the process of ``runserver`` that serves, and the setting says so.

    :param arguments: the command line.
    """
    if list(arguments[1:2]) != ["runserver"]:
        return False
    # With the autoreloader there are two, and the first one only watches the second.
    if environment.get("RUN_MAIN") != "true" and "--noreload" not in arguments:
        return False
    try:
        return bool(conf.get("RUNSERVER_WORKER"))
    except ImproperlyConfigured:
        return False  # the check of the settings says so


def start() -> threading.Thread:
    """Start the worker in a thread; it stops, and hands back what it runs, when the process ends."""
    thread = _Embedded()
    thread.start()
    atexit.register(thread.stop)
    return thread


class _Embedded(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="django_jobs-embedded", daemon=True)
        self.worker: Worker | None = None

    def run(self) -> None:
        apps.ready_event.wait()  # the apps behind ours in INSTALLED_APPS are still to be loaded
        try:
            self.worker = Worker(WorkerOptions(using=jobs_database()))
            logger.info("This runserver runs jobs too, from database %r", self.worker.options.using)
            self.worker.run()
        except Exception:
            logger.exception("The worker in runserver has failed; run manage.py runjobs beside it")

    def stop(self) -> None:
        """End in order, without waiting for jobs that go on: what reloads should not take long."""
        if self.worker is not None:
            self.worker.stop_now()
            self.join(END_SECONDS)
