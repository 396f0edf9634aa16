"""Fixtures for every test. Which database they run on is decided in ``tests.databases``."""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings

from tests import emptying
from tests.databases import DATABASE, with_database_name

# No time is asserted anywhere, so not by hypothesis either. Where CI is set, every run tries the same examples: a run
# tells of the change, not of luck; those on a developer's machine look further.
hypothesis.settings.register_profile("developer", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
# Where a failure is all that is asked for (tests.guards), it is not made small: that can take minutes.
hypothesis.settings.register_profile(
    "unshrunk", deadline=None, derandomize=True, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate]
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "developer")

# Those of the pages need a browser. Where there is none they are left out, and the head of the run says so.
HAS_BROWSER = bool(shutil.which("chromedriver") and importlib.util.find_spec("selenium"))
collect_ignore = [] if HAS_BROWSER else ["browser"]


def pytest_report_header() -> str:
    """Whether the pages are tried in a browser."""
    missing = "none here, tests/browser is left out (apt-get install chromium chromium-driver; pip install selenium)"
    return f"browser: {'Chromium' if HAS_BROWSER else missing}"


# A command that a script runs in the background (``pytest &``) ignores SIGINT by the rules of the shell; so would what
# the tests start and interrupt, unless it sets a handler of its own.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MANAGE = Path(__file__).resolve().parent.parent / "manage.py"


@pytest.fixture(scope="session")
def database_name(pytestconfig: pytest.Config) -> str:
    """``sqlite`` or ``postgresql``."""
    return pytestconfig.stash[DATABASE].name


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """The databases, emptied after each test in our own way."""
    with django_db_blocker.unblock():
        emptying.note_what_migrate_made()
    emptying.install()


@pytest.fixture(scope="session")
def database_url(pytestconfig: pytest.Config, django_db_setup: None) -> str:
    """The URL of the test database, for another process: it sees what is committed."""
    name = str(settings.DATABASES["default"]["NAME"])
    return with_database_name(pytestconfig.stash[DATABASE].url, name)


class ManageProcess:
    """``manage.py`` in a process of its own, with what it has printed so far."""

    def __init__(self, *args: str, env: dict[str, str], **popen: Any) -> None:
        self.args = args
        self.lines: list[str] = []
        self.changed = threading.Condition()
        self.ended = False
        self.process = subprocess.Popen(
            [sys.executable, str(MANAGE), *args],
            env={**os.environ, "PYTHONUNBUFFERED": "1", "DJANGO_SETTINGS_MODULE": "tests.settings", **env},
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.STDOUT,
                "text": True,
                "start_new_session": True,  # a group of its own: its children end with it
                **popen,
            },
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        for line in self.process.stdout or ():
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        with self.changed:
            return "".join(self.lines)

    def wait_for_output(self, pattern: str, timeout: float = 30) -> str:
        """Wait until a line matches, and return it."""
        expression = re.compile(pattern)
        seen = 0

        def match() -> str | None:
            nonlocal seen
            for line in self.lines[seen:]:
                seen += 1
                if expression.search(line):
                    return line
            return None

        with self.changed:
            found: str | None = None

            def settled() -> bool:
                nonlocal found
                found = match()
                return found is not None or self.ended

            self.changed.wait_for(settled, timeout)
        assert found is not None, f"no line matches {pattern!r} in:\n{self.output}"
        return found

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = 60) -> int:
        """The exit code, with all output read."""
        code = self.process.wait(timeout)
        self.reader.join(timeout)
        return code

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.reader.join(10)
        # A process in a session of its own that has outlived its parent may hold the pipe: closing would wait for it.
        if self.process.stdout and not self.reader.is_alive():
            self.process.stdout.close()


@pytest.fixture
def run_manage(transactional_db: None, database_url: str) -> Iterator[Callable[..., ManageProcess]]:
    """Start ``manage.py`` in a subprocess on the test database; it is dead when the test ends."""
    started: list[ManageProcess] = []

    def run(*args: str, env: dict[str, str] | None = None, **popen: Any) -> ManageProcess:
        process = ManageProcess(*args, env={"DATABASE_URL": database_url, **(env or {})}, **popen)
        started.append(process)
        return process

    yield run

    for process in started:
        process.end()
        sys.stdout.write(f"$ manage.py {' '.join(process.args)}\n{process.output}")
