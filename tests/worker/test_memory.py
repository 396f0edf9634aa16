"""What a worker holds in memory, beside what Django and the site hold anyway."""

import gc
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.core.processes import peak_memory
from django_jobs.management.commands.runjobs import NEW_OBJECTS, settled_memory
from django_jobs.models import Job
from tests.conftest import ManageProcess
from tests.waiting import eventually
from tests.workload import jobs

RunManage = Callable[..., ManageProcess]

OWN_MB = 60
JOBS = 5000
# The site without its jobs, with a connection: what a process of Django's has peaked at when it is ready to work.
DJANGO = """
import django
from django.conf import settings
from benchmarks.core.processes import peak_memory
from tests import settings as site
named = {name: getattr(site, name) for name in dir(site) if name.isupper()}
named["INSTALLED_APPS"] = [app for app in site.INSTALLED_APPS if app.startswith("django.")]
settings.configure(**named)
django.setup()
from django.db import connection
connection.ensure_connection()
import os
print(peak_memory(os.getpid()))
"""


@pytest.fixture
def collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize(
    ("before", "while_it_works"),
    [(700, NEW_OBJECTS), (2000, NEW_OBJECTS), (123, 123), (50_000, 50_000), (0, 0)],
)
def test_the_garbage_collector_looks_less_often_unless_the_site_has_said_how_often(
    before: int, while_it_works: int
) -> None:
    gc.set_threshold(before, 11, 12)

    with settled_memory():
        assert gc.get_threshold()[:2] == (while_it_works, 11)

    assert gc.get_threshold()[:2] == (before, 11)


def test_a_worker_with_a_backlog_takes_less_than_60_mb_beside_django(
    run_manage: RunManage, database_url: str
) -> None:
    django = subprocess.run(
        [sys.executable, "-c", DJANGO],
        cwd=Path(__file__).resolve().parents[2],
        env={"DATABASE_URL": database_url},
        check=True,
        capture_output=True,
        text=True,
    )
    jobs.nothing.enqueue_many([(number,) for number in range(JOBS)])

    worker = run_manage("runjobs", env={"LOG_LEVEL": "WARNING"})
    eventually(lambda: Job.objects.filter(state="completed").count() == JOBS)
    peak = peak_memory(worker.pid)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0

    own = peak - float(django.stdout)
    assert 0 < own < OWN_MB, f"{own:.1f} MB of {peak:.1f} MB"
