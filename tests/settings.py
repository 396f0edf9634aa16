"""The test project's settings, with an app of jobs for the tests, and DJANGO_JOBS from the environment for workers."""

import os

from testproject.settings import *  # noqa: F403
from testproject.settings import INSTALLED_APPS, env

INSTALLED_APPS = [*INSTALLED_APPS, "tests.workload", "tests.shop"]

DJANGO_JOBS = env.json("DJANGO_JOBS", default={})

if env.bool("TESTS_BREAK_CHILDREN", default=False) and "DJANGO_JOBS_NOTES" in os.environ:
    raise RuntimeError("a supervisor's child that can't begin")
