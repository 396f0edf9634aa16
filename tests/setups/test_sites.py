"""Sites with a set-up of their own, as processes: other databases, no time zones, requests in transactions, forks."""

import os
import subprocess
import sys
import urllib.request

import pytest

from django_jobs.models import Job
from tests.servers import free_port
from tests.setups.conftest import ROOT
from tests.waiting import eventually
from tests.workload import jobs
from tests.workload.models import Effect


class TestQueueInAnotherDatabase:
    @pytest.fixture(autouse=True)
    def _elsewhere(self, site, another_database):
        site.setup = {"DATABASES": {"jobs": {"URL": another_database}}}

    def test_a_router_says_where(self, site):
        site.setup["DATABASE_ROUTERS"] = ["tests.setups.routers.JobsElsewhere"]
        site.manage("migrate", "--database", "jobs", "--verbosity", "0")
        told = site.python(
            "from django_jobs.models import Job\n"
            "from tests.workload import jobs, tasks\n"
            "row, result = jobs.leave_effect.enqueue(), tasks.echo.enqueue(5)\n"
            "print(Job.objects.db, Job.objects.count(), row.refresh().state, tasks.echo.get_result(result.id).args)"
        )
        assert told == "jobs 2 available [5]"
        assert not Job.objects.exists()

        output = site.manage("runjobs", "--drain")

        assert "in database 'jobs'" in output
        assert "2 completed" in output
        assert Effect.objects.count() == 1, "its own data is where it was"

    def test_a_call_and_the_command_say_where(self, site):
        site.manage("migrate", "--database", "jobs", "--verbosity", "0")
        here = jobs.nothing.enqueue()
        site.python(
            "from tests.workload import jobs\n"
            "jobs.nothing.using(using='jobs').enqueue()\n"
            "assert jobs.nothing.using(using='jobs').enqueue().refresh().state == 'available'"
        )

        output = site.manage("runjobs", "--database", "jobs", "--drain")

        assert "2 completed" in output
        assert here.refresh().state == "available"

    def test_an_alias_of_tasks_says_where(self, site):
        site.manage("migrate", "--database", "jobs", "--verbosity", "0")
        backend = {"BACKEND": "django_jobs.backend.JobsBackend", "QUEUES": []}
        site.setup["TASKS"] = {
            "default": backend,
            "dummy": backend,
            "elsewhere": {**backend, "OPTIONS": {"database": "jobs"}},
        }
        code = (
            "from django_jobs.backend.framework import task_backends\n"
            "from tests.workload import tasks\n"
            "result = tasks.echo.using(backend='elsewhere').enqueue(5)\n"
            "print(result.id)"
        )
        number = site.python(code)
        assert not Job.objects.exists()

        site.manage("runjobs", "--database", "jobs", "--drain")

        told = site.python(
            "from django_jobs.backend.framework import task_backends\n"
            f"result = task_backends['elsewhere'].get_result('{number}')\n"
            "print(result.status, result.return_value, result.backend)"
        )
        assert told == "SUCCESSFUL 5 elsewhere"

    def test_the_admin_looks_there(self, site):
        site.setup["DJANGO_JOBS"] = {"DATABASE": "jobs"}
        site.manage("migrate", "--database", "jobs", "--verbosity", "0")
        told = site.python(
            "from django.contrib.auth.models import User\n"
            "from django.test import Client\n"
            "from tests.workload import jobs\n"
            "row = jobs.nothing.enqueue()\n"
            "client = Client(headers={'host': 'localhost'})\n"
            "client.force_login(User.objects.create_superuser('admin'))\n"
            "pages = ['overview/', '', f'{row.id}/change/', f'{row.id}/history/']\n"
            "print([client.get(f'/admin/django_jobs/job/{page}').status_code for page in pages])"
        )
        assert told == "[200, 200, 200, 200]"

    def test_the_check_tells_that_it_is_another_transaction(self, site):
        site.setup["DATABASE_ROUTERS"] = ["tests.setups.routers.JobsElsewhere"]
        output = site.manage("check")

        assert "django_jobs.W014" in output
        assert (
            "The jobs are in database 'jobs', and no model of the site is: those are in 'default'" in output
        )


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_without_time_zones(site, zone):
    site.setup = {"USE_TZ": False, "TIME_ZONE": zone}
    told = site.python(
        "import datetime as dt\n"
        "from django.contrib.auth.models import User\n"
        "from django.test import Client\n"
        "from django.utils import timezone\n"
        "from django_jobs import operations\n"
        "from django_jobs.models import Job\n"
        "from tests.workload import jobs, tasks\n"
        "now = timezone.now()\n"
        "assert now.tzinfo is None\n"
        "due = jobs.nothing.using(run_after=now - dt.timedelta(minutes=1)).enqueue()\n"
        "later = jobs.nothing.using(run_after=now + dt.timedelta(minutes=1)).enqueue()\n"
        "result = tasks.noop.using(run_after=now + dt.timedelta(minutes=1)).enqueue()\n"
        "assert (due.state, later.state) == ('available', 'scheduled'), (due.state, later.state)\n"
        "assert tasks.noop.get_result(result.id).task.run_after == now + dt.timedelta(minutes=1)\n"
        "assert Job.objects.filter(run_after__lte=now).count() == 1\n"
        "client = Client(headers={'host': 'localhost'})\n"
        "client.force_login(User.objects.create_superuser('admin'))\n"
        "for path in ('job/', f'job/{due.id}/change/', 'worker/', 'queue/'):\n"
        "    response = client.get(f'/admin/django_jobs/{path}', follow=True)\n"
        "    assert response.status_code == 200, (path, response.status_code)\n"
        "print(operations.run_now([later.id]).done)"
    )
    assert told == "1"

    assert "2 completed" in site.manage("runjobs", "--drain")
    assert Job.objects.get(state="scheduled").name == "tests.workload.tasks.noop"


def test_requests_in_transactions(site):
    site.setup = {
        "DATABASES": {"default": {"ATOMIC_REQUESTS": True}},
        "ROOT_URLCONF": "tests.setups.urls",
        "ALLOWED_HOSTS": ["*"],
    }
    told = site.python(
        "from django.test import Client\n"
        "client = Client(raise_request_exception=False)\n"
        "print(client.get('/enqueue').status_code, client.get('/enqueue?fail').status_code)"
    )
    assert told == "200 500"
    assert Job.objects.count() == 2, "of the request that failed nothing is left"

    assert "2 completed" in site.manage("runjobs", "--drain")


def test_a_server_that_loads_the_site_before_it_forks(site):
    """gunicorn --preload."""
    port = free_port()
    site.setup = {"ROOT_URLCONF": "tests.setups.urls", "ALLOWED_HOSTS": ["*"]}
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "gunicorn",
            "--preload",
            "--workers",
            "2",
            "--bind",
            f"127.0.0.1:{port}",
            "tests.setups.wsgi",
        ],
        cwd=ROOT,
        env={**os.environ, **site.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    pids = set()

    def served():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/enqueue", timeout=30) as response:
                pids.add(response.read())
        except OSError:
            assert server.poll() is None, server.stdout.read()
            return False
        return len(pids) == 2

    try:
        eventually(served)
    finally:
        server.terminate()
        output, _ = server.communicate(timeout=30)
    assert "Traceback" not in output, output
    names = list(Job.objects.values_list("name", flat=True))
    assert names.count(jobs.nothing.name) == len(names) // 2 + 1, (
        "one before the fork, and one for each request"
    )

    assert f"{len(names)} completed" in site.manage("runjobs", "--drain")
