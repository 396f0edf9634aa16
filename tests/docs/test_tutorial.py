"""The tutorial is followed, from an empty folder on: its files are written, its commands are run."""

import doctest
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.databases import with_database_name
from tests.docs.pages import DOCS, HIDDEN, Page, Sample
from tests.docs.story import COMPARED, check_options, commands

TUTORIAL = Page(DOCS / "tutorial" / "index.md")
NAME = "django_jobs_tutorial"

_FILE = re.compile(r"^# (?P<end>at the end of )?(?P<path>[\w/]+\.py)\n")

# Runs a block of a shell session in the site, as manage.py shell would, and compares.
SESSION = """
import doctest, django, sys
django.setup()
test = doctest.DocTestParser().get_doctest(sys.stdin.read(), {}, "tutorial", None, 0)
runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
sys.exit(runner.run(test).failed)
"""

ON_POSTGRESQL = """
import environ
DATABASES = {"default": environ.Env().db_url("TUTORIAL_DATABASE_URL")}
"""


class Site:
    """The folder in which the tutorial is followed."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("DJANGO", "DATABASE_URL"))
            },
            "DJANGO_SETTINGS_MODULE": "mysite.settings",
            "PYTHONPATH": str(DOCS.parent),
            "PYTHONUNBUFFERED": "1",
            "TUTORIAL_DATABASE_URL": url,
        }

    def follow(self, sample: Sample) -> None:
        if sample.language == "python":
            self.write(sample)
        elif sample.language == "pycon":
            self.session(sample)
        elif sample.language == "console":
            for line, command, expected in commands(sample):
                self.command(line, command, expected)
        elif sample.language == "ini":
            for words in re.findall(r"manage\.py (runjobs.*)", sample.text):
                check_options(shlex.split(words))
        else:
            assert sample.language == HIDDEN, sample

    def write(self, sample: Sample) -> None:
        match = _FILE.match(sample.text)
        assert match, f"line {sample.line}: which file is this of?"
        path = self.folder / match["path"]
        before = path.read_text("utf-8") if match["end"] else ""
        after = ON_POSTGRESQL if self.url.startswith("postgres") and path.name == "settings.py" else ""
        path.write_text(f"{before}\n{sample.text}\n{after}", "utf-8")

    def session(self, sample: Sample) -> None:
        ended = self.run([sys.executable, "-c", SESSION], input=sample.text + "\n")
        assert ended.returncode == 0, f"line {sample.line}:\n{ended.stdout}"

    def command(self, line: int, command: str, expected: str) -> None:
        words = shlex.split(command)
        if words[0] == "django-admin":
            words = [sys.executable, "-m", "django", *words[1:]]
        elif words[:2] == ["python", "manage.py"]:
            words = [sys.executable, *words[1:]]
        else:
            return  # what makes the environment that the tests run in already, and what an administrator does
        if "\n^C\n" in expected:
            output = self.interrupted(words, *expected.split("^C\n"))
            expected = expected.replace("^C\n", "")
        else:
            output = self.run(words).stdout
        if expected.strip():
            assert doctest.OutputChecker().check_output(expected, output, COMPARED), (
                f"line {line}: {command}\nexpected:\n{expected}\ngot:\n{output}"
            )

    def run(self, words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
            **{"stdin": subprocess.DEVNULL, **options} if "input" not in options else options,
        )

    def interrupted(self, words: list[str], before: str, _after: str) -> str:
        """What a command prints that is stopped by Ctrl-C once it has printed the last line before that."""
        last = before.splitlines()[-1].split("...")
        wanted = re.compile(".*".join(re.escape(part) for part in last))
        process = subprocess.Popen(
            words,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        stop = threading.Timer(60, process.kill)
        stop.start()
        lines = []
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                lines.append(line)
                if wanted.search(line):
                    process.send_signal(signal.SIGINT)
        code = process.wait(60)
        stop.cancel()
        output = "".join(lines)
        assert code == 0, f"{words} ended with {code}:\n{output}"
        return output


@pytest.fixture
def url(database_url: str, transactional_db: None) -> Iterator[str]:
    """An empty database. On SQLite the tutorial's own settings name one."""
    if connection.vendor == "sqlite":
        yield "sqlite"
        return
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {NAME}")
        cursor.execute(f"CREATE DATABASE {NAME}")
    yield with_database_name(database_url, NAME)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@pytest.mark.timeout(300)  # a dozen processes, one after the other
def test_the_tutorial_can_be_followed(tmp_path: Path, url: str) -> None:
    site = Site(tmp_path, url)

    for sample in TUTORIAL.samples():
        site.follow(sample)
