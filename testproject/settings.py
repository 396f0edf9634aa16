"""Settings of the test project: a small real site, used by the demo and by the test suite.

Everything that differs between machines comes from the environment. ``DATABASE_URL`` chooses the database:
by default one SQLite file below ``var/``; ``postgres://user:password@host/name`` for PostgreSQL.
"""

from pathlib import Path
from typing import Any

import environ

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
# The shop of ``make serve``, with its jobs and schedules, in a database of its own.
DEMO = env.bool("DEMO", default=False)


def database() -> dict[str, Any]:
    config: dict[str, Any] = env.db_url(
        "DATABASE_URL", default=f"sqlite:///{BASE_DIR}/var/{'serve' if DEMO else 'demo'}.sqlite3"
    )
    if config["ENGINE"] == "django.db.backends.sqlite3":
        path = Path(config["NAME"])
        path.parent.mkdir(parents=True, exist_ok=True)
        config["OPTIONS"] = {
            # A transaction takes the write lock when it begins: waiting for it is bounded by the timeout,
            # while a reader that turns writer halfway would fail at once.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        }
        # A file for the tests too: workers are other threads and other processes.
        config["TEST"] = {"NAME": str(path.with_name(f"test_{path.name}"))}
    return config


SECRET_KEY = env.str("SECRET_KEY", default="insecure-but-fine-for-a-demo-on-this-machine-only")
DEBUG = env.bool("DEBUG", default=True)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_jobs",
    "testproject.library",
]
if DEMO:
    from testproject.demo.settings import DJANGO_JOBS  # noqa: F401

    INSTALLED_APPS += ["testproject.demo"]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "testproject.urls"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)-7s [%(process)d] %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {
        "django_jobs": {"handlers": ["console"], "level": env.str("LOG_LEVEL", default="INFO")},
    },
}
