"""The pytest plugin in projects of its own: it harms none that has no Django, no settings, no pytest-django."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def run_pytest(tmp_path):
    """Run pytest in a project of one test file, in a process of its own."""

    def run(text, *arguments, **more):
        (tmp_path / "test_it.py").write_text(text)
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST", "DJANGO", "COV"))
        }
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "django_jobs_pytest",
                "-p",
                "no:cacheprovider",
                *arguments,
            ],
            cwd=tmp_path,
            env={**environment, "PYTHONPATH": str(ROOT), **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_without_pytest_django_and_without_settings(run_pytest):
    result = run_pytest(
        """
import sys

def test_nothing_was_imported_before():
    assert "django_jobs_pytest" in sys.modules
    assert "django_jobs" not in sys.modules
    assert "django" not in sys.modules
""",
        "-p",
        "no:django",
    )
    assert "1 passed" in result.stdout, result.stdout + result.stderr


def test_a_fixture_of_the_projects_own_comes_first(run_pytest):
    result = run_pytest(
        """
import pytest

@pytest.fixture
def run_jobs():
    return "mine"

def test_it(run_jobs):
    assert run_jobs == "mine"
""",
        "-p",
        "no:django",
    )
    assert "1 passed" in result.stdout, result.stdout + result.stderr


def test_all_are_described(run_pytest):
    result = run_pytest("", "--fixtures", "-p", "no:django")
    for name in (
        "run_jobs",
        "drain_jobs",
        "assert_enqueued",
        "jobs_clock",
        "immediate_jobs",
        "captured_jobs",
    ):
        assert f"\n{name} -- " in result.stdout


def test_with_pytest_django_the_database_is_asked_for(run_pytest, tmp_path):
    result = run_pytest(
        """
def test_it(run_jobs, drain_jobs, captured_jobs):
    from django.contrib.auth.models import User
    from django.db import connection
    from tests.testing import jobs

    assert connection.settings_dict["NAME"].endswith("/test_plugin.sqlite3"), "never the real one"

    jobs.note.enqueue(1)
    assert len(captured_jobs) == 1
    assert [row.result for row in run_jobs()] == [1]
    assert drain_jobs() == []
    assert not User.objects.exists()
""",
        "--ds=tests.settings",
        DATABASE_URL=f"sqlite:///{tmp_path}/plugin.sqlite3",
    )
    assert "1 passed" in result.stdout, result.stdout + result.stderr


def test_a_fixture_of_that_name_of_the_projects_own_asks_for_none(run_pytest, tmp_path):
    result = run_pytest(
        """
import pytest

@pytest.fixture
def run_jobs():
    return "mine"

def test_it(run_jobs):
    from django.contrib.auth.models import User

    with pytest.raises(RuntimeError, match="Database access not allowed"):
        User.objects.exists()
""",
        "--ds=tests.settings",
        DATABASE_URL=f"sqlite:///{tmp_path}/plugin.sqlite3",
    )
    assert "1 passed" in result.stdout, result.stdout + result.stderr


def test_fixtures_are_the_functions(run_jobs, drain_jobs, assert_enqueued):
    from django_jobs import testing

    assert (run_jobs, drain_jobs, assert_enqueued) == (
        testing.run_jobs,
        testing.drain,
        testing.assert_enqueued,
    )
