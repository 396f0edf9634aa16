"""Take one guard out in a copy of the tree, and run its tests there."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.guards.guard import ROOT, Guard

# What the tests need of the tree. The documentation is read by some; what is built or left over is not copied.
PARTS = ("benchmarks", "django_jobs", "docs", "testproject", "tests")
FILES = ("CHANGELOG.md", "README.md", "django_jobs_pytest.py", "manage.py", "pyproject.toml")


@dataclass(frozen=True)
class Trial:
    """How it went: what passed though the guard was out, and what pytest said."""

    passed: tuple[str, ...]
    code: int | None
    output: str

    @property
    def is_good(self) -> bool:
        """Whether each of its tests failed, and nothing but a test."""
        return self.code == 1 and not self.passed


@contextmanager
def copied_tree() -> Iterator[Path]:
    """A copy of the tree in a temporary folder, which every user may read: a server can be another user's."""
    with tempfile.TemporaryDirectory(prefix="guards-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        for part in PARTS:
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__", "_build"))
        for file in FILES:
            shutil.copy(ROOT / file, root / file)
        yield root


def try_without(guard: Guard, database: str, root: Path, seconds: float) -> Trial:
    """Run the guard's tests in the copy at ``root`` with the guard out, and put it back.

    A test has failed when pytest says so of one of its cases at least; an error while it is set up, or a run that does
    not end in ``seconds``, is none.
    """
    try:
        for edit in guard.edits:
            edit.apply(root)
        ended = run_tests(guard, database, root, seconds)
    except ValueError as error:
        ended = str(error)
    finally:
        for file in {edit.file for edit in guard.edits}:
            shutil.copy(ROOT / "django_jobs" / file, root / "django_jobs" / file)
    if isinstance(ended, str):
        return Trial(tuple(guard.tests), None, ended)
    failed = set(re.findall(r"^FAILED tests/(\S+\.py(?:::\w+)+)", ended.stdout, re.MULTILINE))
    return Trial(tuple(test for test in guard.tests if test not in failed), ended.returncode, ended.stdout)


def run_tests(
    guard: Guard, database: str, root: Path, seconds: float
) -> "subprocess.CompletedProcess[str] | str":
    """Pytest in the copy; its output only, where it did not end in time."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--database",
        database,
        "-q",
        "-rf",
        "--tb=line",
        "-p",
        "no:cacheprovider",
        "--hypothesis-profile",
        "unshrunk",
        # One case that fails is enough, and each may wait for long for what does not come.
        *(["-x"] if len(guard.tests) == 1 else []),
    ]
    # The copy comes before an installed package. Modules are compiled anew: an edit can keep a file's size and second.
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
    process = subprocess.Popen(
        [*command, *(f"tests/{test}" for test in guard.tests)],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        return f"did not end in {seconds:g} s\n{process.communicate()[0]}"
    return subprocess.CompletedProcess(command, process.returncode, output)
