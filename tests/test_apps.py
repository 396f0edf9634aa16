"""The app: the functions of every installed app are found when Django starts."""

import sys

import pytest
from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from django_jobs import registry


@pytest.fixture
def market(tmp_path, monkeypatch):
    """A package for an app of the test's own; its files are written by the test."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_definitions", dict(registry._definitions))
    monkeypatch.setattr(registry, "_names", dict(registry._names))
    package = tmp_path / "market"
    package.mkdir()
    (package / "__init__.py").touch()
    yield package
    for name in [name for name in sys.modules if name.partition(".")[0] == "market"]:
        del sys.modules[name]


def ready():
    apps.get_app_config("django_jobs").ready()


@pytest.mark.parametrize("module", ["jobs", "tasks"])
def test_the_modules_of_each_app_are_imported(market, settings, module):
    (market / f"{module}.py").write_text("from django_jobs import job\n@job\ndef pack(): ...\n")

    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "market"]

    assert f"market.{module}.pack" in registry


def test_both_modules_of_one_app(market, settings):
    for module in ("jobs", "tasks"):
        (market / f"{module}.py").write_text("from django_jobs import job\n@job\ndef pack(): ...\n")

    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "market"]

    assert "market.jobs.pack" in registry
    assert "market.tasks.pack" in registry


def test_a_package_is_a_module(market, settings):
    (market / "tasks").mkdir()
    (market / "tasks" / "__init__.py").write_text("from django_jobs import job\n@job\ndef pack(): ...\n")

    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "market"]

    assert "market.tasks.pack" in registry


def test_other_modules_are_not(market, settings):
    (market / "views.py").write_text("from django_jobs import job\n@job\ndef pack(): ...\n")

    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "market"]

    assert "market.views.pack" not in registry


def test_an_error_in_a_module_is_not_hidden(market, settings):
    (market / "tasks.py").write_text("import nothing_of_this_name\n")

    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "market"]


def test_starting_twice_changes_nothing():
    before = {definition.name: definition for definition in registry}

    ready()
    autodiscover_modules("jobs", "tasks")

    assert {definition.name: definition for definition in registry} == before


def test_the_test_projects_own():
    assert "testproject.library.jobs.index_file" in registry
