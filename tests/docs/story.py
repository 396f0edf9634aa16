"""Runs the samples of one page, one after the other, as the reader would."""

from __future__ import annotations

import ast
import contextlib
import doctest
import inspect
import io
import json
import logging
import re
import shlex
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
from asgiref.sync import async_to_sync
from django.core.management import call_command, load_command_class
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.test import override_settings

import tests.shop.models
from django_jobs import checks, registry, signals
from django_jobs.schedules import schedules
from django_jobs.worker import Pool, Worker, WorkerOptions
from tests.docs.pages import HIDDEN, Page, Sample

SIGNALS = (signals.job_enqueued, signals.job_started, signals.job_finished)
OURS = ("runjobs", "jobs")
COMPARED = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_FILE = re.compile(r"^# (?:[\w-]+/)*(?P<name>\w+)\.py(?:\s.*)?$")
_COMMAND = re.compile(r"manage\.py (?P<name>runjobs|jobs)\b(?P<rest>[^\n\"`]*)")
_JSON_COMMAND = re.compile(r"\[[^\[\]]*\"manage\.py\"[^\[\]]*\]")


class Story:
    """What the samples of a page have in common: a module, settings, and the jobs that they define."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.module = types.ModuleType("shop.tasks")
        self.names: dict[str, Any] = self.module.__dict__
        self.names.update(drain=drain, working=working)
        self.resources = contextlib.ExitStack()

    def __enter__(self) -> Story:
        known = {*registry}
        keys = {*schedules._declared}
        receivers = {
            each: [*each.receivers]
            for each in (signals.job_enqueued, signals.job_started, signals.job_finished)
        }
        level = logging.getLogger("django_jobs").level
        modules = dict(sys.modules)
        sys.modules["shop"] = types.ModuleType("shop")
        sys.modules["shop.models"] = tests.shop.models
        sys.modules["shop.tasks"] = self.module

        if django.VERSION >= (6, 1):  # which warns of a site that has not configured its mailers
            mailers = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
            self.resources.enter_context(override_settings(MAILERS=mailers))

        @self.resources.callback
        def forget() -> None:
            for definition in {*registry} - known:
                registry.remove(definition)
            for key in {*schedules._declared} - keys:
                schedules.remove(key)
            for each, before in receivers.items():
                each.receivers = before
                each.sender_receivers_cache.clear()
            logging.getLogger("django_jobs").setLevel(level)
            for name in [name for name in sys.modules if name == "shop" or name.startswith("shop.")]:
                del sys.modules[name]
            sys.modules.update({name: module for name, module in modules.items() if name.startswith("shop")})

        return self

    def __exit__(self, *exception: object) -> None:
        self.resources.close()

    def run(self, sample: Sample) -> None:
        """Run one sample. What it raises names the page and the line."""
        if sample.not_run:
            compile_only(sample, self.page)
        elif sample.language in ("python", HIDDEN):
            self.run_python(sample)
        elif sample.language == "pycon":
            self.run_doctest(sample)
        elif sample.language == "console":
            self.run_console(sample)
        elif sample.language == "sql":
            self.run_sql(sample)
        else:
            self.check_commands(sample)

    # -- Python ------------------------------------------------------------------------------------------------------

    def run_python(self, sample: Sample) -> None:
        for name, line, text in sections(sample):
            if name == "settings":
                self.set(self.execute(text, line, {"BASE_DIR": Path("/srv/site"), "__name__": "settings"}))
                continue
            if name:
                sys.modules[f"shop.{name}"] = self.module
            self.execute(text, line, self.names)

    def execute(self, text: str, line: int, names: dict[str, Any]) -> dict[str, Any]:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile("\n" * (line - 1) + text, self.page.name, "exec", flags, dont_inherit=True)
        if code.co_flags & inspect.CO_COROUTINE:
            async_to_sync(types.FunctionType(code, names))()
        else:
            exec(code, names)
        return names

    def set(self, names: dict[str, Any]) -> None:
        """What stands in settings.py holds from here on; and it must be right."""
        chosen = {name: value for name, value in names.items() if name in ("DJANGO_JOBS", "TASKS", "USE_TZ")}
        self.resources.enter_context(override_settings(**chosen))
        found = [*checks.check_settings(), *checks.check_schedules()]
        for database in names.get("DATABASES", {}).values():
            if database["ENGINE"].endswith("sqlite3"):
                found += checks._check_sqlite("DATABASES", database)
        assert not found, f"{self.page.name}: {found}"

    def run_doctest(self, sample: Sample) -> None:
        test = doctest.DocTestParser().get_doctest(
            sample.text + "\n", self.names, self.page.name, self.page.name, sample.line - 1
        )
        self.names = test.globs = self.module.__dict__
        report = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=COMPARED)
        runner.run(test, out=report.write, clear_globs=False)
        assert not runner.failures, report.getvalue()

    # -- commands ----------------------------------------------------------------------------------------------------

    def run_console(self, sample: Sample) -> None:
        for line, command, expected in commands(sample):
            words = shlex.split(command, comments=True)
            if words[:1] == ["python"]:
                words = words[1:]
            if words[:1] != ["manage.py"] or words[1] not in OURS:
                continue
            check_options(words[1:])
            if words[1] == "runjobs" and ("--drain" not in words or "--processes" in words):
                continue
            output = run_command(words[1:])
            if expected.strip():
                assert doctest.OutputChecker().check_output(expected, output, COMPARED), (
                    f"{self.page.name}:{line}: {command}\nexpected:\n{expected}\ngot:\n{output}"
                )

    def check_commands(self, sample: Sample) -> None:
        for match in _COMMAND.finditer(sample.text):
            check_options([match["name"], *shlex.split(match["rest"], comments=True)])
        for match in _JSON_COMMAND.finditer(sample.text):
            words = json.loads(match[0])
            check_options(words[words.index("manage.py") + 1 :])

    # -- SQL ---------------------------------------------------------------------------------------------------------

    def run_sql(self, sample: Sample) -> None:
        if connection.vendor != "postgresql":
            return
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(sample.text)
            transaction.set_rollback(True)


def compile_only(sample: Sample, page: Page) -> None:
    """What is not run can be read at least."""
    if sample.language == "python":
        compile(
            "\n" * (sample.line - 1) + sample.text, page.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True
        )


def sections(sample: Sample) -> Iterator[tuple[str, int, str]]:
    """The files that a sample is of: the name of each without its ending, the line where it begins, and its text."""
    name, first, lines = "", sample.line, []
    for number, line in enumerate(sample.text.splitlines(), sample.line):
        if match := _FILE.match(line):
            if lines:
                yield name, first, "\n".join(lines)
            name, first, lines = match["name"], number, []
        lines.append(line)
    yield name, first, "\n".join(lines)


def commands(sample: Sample) -> Iterator[tuple[int, str, str]]:
    """The line, the command and its expected output, for each command."""
    line, command, output = 0, "", list[str]()
    for number, text in enumerate(sample.text.splitlines(), sample.line):
        if text.startswith("$ "):
            if command:
                yield line, command, "\n".join(output) + "\n"
            line, command, output = number, text.removeprefix("$ "), []
        else:
            output.append(text)
    if command:
        yield line, command, "\n".join(output) + "\n"


def check_options(words: list[str]) -> None:
    """That a command would take these options. Raises CommandError."""
    command = load_command_class("django_jobs", words[0])
    parser = command.create_parser("manage.py", words[0])
    parser.called_from_command_line = False
    options = vars(parser.parse_args(words[1:]))
    if words[0] == "runjobs":
        command.worker_options(options)


def run_command(words: list[str]) -> str:
    """What it prints, and says on stderr, one after the other."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command(*words, stdout=out, stderr=err, no_color=True)
    except SystemExit:
        pass
    except CommandError as error:
        err.write(f"CommandError: {error}\n")
    return out.getvalue() + err.getvalue()


# -- what a page's hidden code may call ------------------------------------------------------------------------------


def drain() -> None:
    """Run jobs until nothing is due."""
    Worker(WorkerOptions(using="default", pools=[Pool(("*",), 2)], drain=True)).run()


@contextlib.contextmanager
def working(size: int = 2, **options: Any) -> Iterator[Worker]:
    """A worker works meanwhile."""
    worker = Worker(WorkerOptions(using="default", pools=[Pool(("*",), size)], **options))
    thread = threading.Thread(target=worker.run, name="the documentation's worker", daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(30)
        assert not thread.is_alive()
