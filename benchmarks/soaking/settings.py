"""The settings of the site that is under load: what ends is purged while the run goes on."""

from benchmarks.settings import *  # noqa: F403
from benchmarks.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.soaking.site.SoakingConfig"]
# The keeper purges once in a minute: then there are one to two minutes of history.
RETENTION_SECONDS = 60
DJANGO_JOBS = {
    "RETENTION": {
        "completed": RETENTION_SECONDS,
        "failed": RETENTION_SECONDS,
        "cancelled": RETENTION_SECONDS,
        "queues": {"unkept": {"completed": 0}},
    },
    "STATISTICS_RETENTION": 3 * RETENTION_SECONDS,
}
