"""The settings of the site that is measured: the test project's, as in production, with the jobs of the benchmarks."""

from testproject.settings import *  # noqa: F403
from testproject.settings import DATABASES, INSTALLED_APPS, LOGGING, env

DEBUG = False  # with DEBUG, Django keeps the text of every query
INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks"]
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "benchmarks.urls"
DJANGO_JOBS = env.json("DJANGO_JOBS", default={})
LOGGING = {**LOGGING, "loggers": {"django_jobs": {"handlers": ["console"], "level": "WARNING"}}}

if DATABASES["default"]["ENGINE"].endswith("postgresql"):
    # The same, as a site has it that lets its connections prepare what they run often.
    OPTIONS = {**DATABASES["default"].get("OPTIONS", {}), "server_side_binding": True, "prepare_threshold": 5}
    DATABASES = {**DATABASES, "prepared": {**DATABASES["default"], "OPTIONS": OPTIONS}}
