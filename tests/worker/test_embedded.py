"""A worker in the process of ``runserver``, by setting."""

import signal

import pytest

from django_jobs.models import Job, Worker
from django_jobs.worker import embedded
from tests.servers import free_port
from tests.waiting import eventually
from tests.workload import jobs

SERVE = ["manage.py", "runserver", "8000"]


@pytest.mark.parametrize(
    ("arguments", "environment", "wanted"),
    [
        (SERVE, {"RUN_MAIN": "true"}, True),
        (SERVE, {}, False),  # the autoreloader's own process
        ([*SERVE, "--noreload"], {}, True),
        (["manage.py", "runjobs"], {"RUN_MAIN": "true"}, False),
        (["manage.py"], {}, False),
        (["/usr/bin/gunicorn", "site.wsgi"], {}, False),
    ],
)
def test_where_it_runs(settings, arguments, environment, wanted):
    settings.DJANGO_JOBS = {"RUNSERVER_WORKER": True}
    assert embedded.is_wanted(arguments, environment) == wanted


def test_not_unless_the_setting_says_so(settings):
    assert not embedded.is_wanted(SERVE, {"RUN_MAIN": "true"})
    settings.DJANGO_JOBS = {"RUNSERVER_WORKER": "yes"}
    assert not embedded.is_wanted(SERVE, {"RUN_MAIN": "true"}), "the checks tell of it"


def test_it_waits_until_all_apps_are_loaded(monkeypatch):
    seen = []

    class Event:
        def wait(self):
            seen.append("waited")

    def make(options):
        seen.append("made")
        raise ValueError("that is all")

    monkeypatch.setattr(embedded.apps, "ready_event", Event())
    monkeypatch.setattr(embedded, "Worker", make)
    thread = embedded._Embedded()
    thread.run()
    thread.stop()

    assert seen == ["waited", "made"]


WANTED = {"DJANGO_JOBS": '{"RUNSERVER_WORKER": true}'}


def test_one_process_serves_and_runs_jobs_and_hands_back_what_runs_when_it_ends(run_manage, tmp_path):
    server = run_manage("runserver", str(free_port()), "--noreload", env=WANTED)
    server.wait_for_output("Quit the server")
    jobs.nothing.enqueue()
    eventually(lambda: Job.objects.filter(state="completed").exists())

    begun = tmp_path / "begun"
    row = jobs.wait_until_told.enqueue(heed=False, begun=str(begun))
    eventually(begun.exists)
    server.send_signal(signal.SIGINT)
    server.wait()

    assert row.refresh().state == "available"
    assert row.errors[0]["message"] == "The worker stopped before the job had ended."
    assert not Worker.objects.filter(stopped_at=None).exists()
    assert "Traceback" not in server.output


def test_with_the_autoreloader_there_is_one(run_manage):
    server = run_manage("runserver", str(free_port()), env=WANTED)
    jobs.nothing.enqueue()
    eventually(lambda: Job.objects.filter(state="completed").exists(), timeout=60)

    assert Worker.objects.count() == 1
    assert Worker.objects.get().pid != server.pid
