"""The test project's settings, with an app of jobs for the tests, and DJANGO_JOBS from the environment for workers."""

import os

import django

from testproject.settings import *  # noqa: F403
from testproject.settings import INSTALLED_APPS, MIDDLEWARE, env

INSTALLED_APPS = [*INSTALLED_APPS, "tests.workload", "tests.shop"]
if django.VERSION < (6, 0):
    INSTALLED_APPS += ["django_tasks"]

# Two aliases on one table, told apart by their queues, one that takes any, and a backend of another kind.
TASKS = {
    "default": {
        "BACKEND": "django_jobs.backend.JobsBackend",
        "QUEUES": ["default", "tasks"],
        "OPTIONS": {"max_attempts": 1},
    },
    "reports": {"BACKEND": "django_jobs.backend.JobsBackend", "QUEUES": ["reports"]},
    "any": {"BACKEND": "django_jobs.backend.JobsBackend", "QUEUES": []},
    "dummy": {
        "BACKEND": f"{'django.tasks' if django.VERSION >= (6, 0) else 'django_tasks'}.backends.dummy.DummyBackend",
        "QUEUES": [],
    },
}
MIDDLEWARE = ["tests.browser.csp.ContentSecurityPolicy", *MIDDLEWARE]

DJANGO_JOBS = env.json("DJANGO_JOBS", default={})

if env.bool("TESTS_BREAK_CHILDREN", default=False) and "DJANGO_JOBS_NOTES" in os.environ:
    raise RuntimeError("a supervisor's child that can't begin")
