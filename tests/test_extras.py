"""What needs a package that is not installed says which."""

import importlib
import os
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command


@pytest.fixture
def missing(monkeypatch):
    """Take packages for not installed, until the test ends."""

    def take(*names):
        for name in [*sys.modules]:
            if name.partition(".")[0] in names or name.startswith(
                ("django_jobs.prometheus", "django_jobs.opent")
            ):
                monkeypatch.delitem(sys.modules, name)
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return take


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("django_jobs.prometheus", "prometheus_client", "prometheus"),
        ("django_jobs.opentelemetry", "opentelemetry", "opentelemetry"),
    ],
)
def test_an_extra_that_is_missing_is_named(missing, module, package, extra):
    missing(package)
    with pytest.raises(ImproperlyConfigured, match=rf'pip install "django-runjobs\[{extra}\]"'):
        importlib.import_module(module)


@pytest.mark.django_db
def test_so_does_the_command(missing):
    missing("prometheus_client")
    with pytest.raises(CommandError, match=r'--metrics-port: .* pip install "django-runjobs\[prometheus\]"'):
        call_command("runjobs", "--drain", "--metrics-port", "9100")


def test_nothing_else_needs_them():
    """In a process of its own, where nothing has imported them before."""
    script = """
import sys
sys.modules.update(prometheus_client=None, opentelemetry=None)
import django
django.setup()
import django_jobs.health.urls, django_jobs.management.commands.runjobs, django_jobs.management.commands.jobs
"""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=60)
