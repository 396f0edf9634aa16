"""The settings of a Django site that has one of the peers; the variable PEER says which."""

import os
from urllib.parse import unquote, urlsplit

_URL = urlsplit(os.environ["DATABASE_URL"])
_PEER = os.environ["PEER"]

SECRET_KEY = "a benchmark's"
DEBUG = False
USE_TZ = True
# No line for each job, of nobody.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {"django_jobs": {"level": "WARNING"}},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _URL.path[1:],
        "USER": unquote(_URL.username or ""),
        "PASSWORD": unquote(_URL.password or ""),
        "HOST": _URL.hostname or "",
        "PORT": str(_URL.port or ""),
        # Workers keep their connection where the peer leaves that to the site.
        "CONN_MAX_AGE": None,
    }
}
INSTALLED_APPS = {
    "django_jobs": ["django_jobs", "django_jobs_site"],
    "django-tasks-db": ["django_tasks_db"],
    "django-ox": ["django_ox"],
    "dj-queue": ["dj_queue"],
}[_PEER]
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", *INSTALLED_APPS]
TASKS = {
    "default": {
        "BACKEND": {
            "django-tasks-db": "django_tasks_db.DatabaseBackend",
            "django-ox": "django_ox.backend.OxBackend",
            "dj-queue": "dj_queue.backend.DjQueueBackend",
        }.get(_PEER, "django.tasks.backends.dummy.DummyBackend"),
        "QUEUES": [] if _PEER == "dj-queue" else ["default"],
        "OPTIONS": {},
    }
}
if _PEER == "dj-queue":
    DATABASE_ROUTERS = ["dj_queue.routers.DjQueueRouter"]
