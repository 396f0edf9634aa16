"""Pages of the reference that are written from the code: settings, commands, statements with their plans."""

from __future__ import annotations

import argparse
import datetime as dt
import pprint
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import postgresql_plans

SQL = Path(__file__).resolve().parent.parent / "django_jobs" / "sql"
DATABASES = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}


def write_all(folder: Path) -> None:
    """Write each page of the reference into the folder."""
    for name, page in PAGES.items():
        _write(folder / f"{name}.md", page())


def write_others(folder: Path) -> None:
    """Write what the folder's index includes at its end: the pages that it does not list itself."""
    listed = (folder / "index.md").read_text("utf-8").split()
    pages = sorted(page.stem for page in folder.glob("*.md"))
    others = [page for page in pages if page != "index" and page not in listed]
    names = "\n".join(others)
    _write(
        folder / "_generated" / "others.md",
        f"```{{toctree}}\n:caption: More\n:maxdepth: 1\n\n{names}\n```\n" if others else "",
    )


def _write(path: Path, text: str) -> None:
    """A file that is as it was keeps its time, so that Sphinx does not read it again."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


# -- settings ----------------------------------------------------------------------------------------------------------


def settings() -> str:
    """A section for each key of ``DJANGO_JOBS``, in the order of the code."""
    from django_jobs.conf import SETTINGS

    return "\n".join(
        f"## {setting.name}\n\n{_sentence(setting.purpose)}\n\n"
        f"- Default: {_value(setting.name, setting.default)}\n- Accepts: {_escaped(setting.accepts)}.\n"
        for setting in SETTINGS.values()
    )


def _value(name: str, default: Any) -> str:
    if name == "RETENTION":
        ages = {state: dt.timedelta(seconds=age) for state, age in default.items()}
        return ", ".join(f"`{state}` {_days(age)}" for state, age in ages.items())
    return f"`{pprint.pformat(default, compact=True, width=1000)}`"


def _days(age: dt.timedelta) -> str:
    return f"{age.days} days" if age == dt.timedelta(days=age.days) else str(age)


# -- commands ----------------------------------------------------------------------------------------------------------

# Every command of Django has them; its documentation tells of them.
_DJANGOS = {
    "help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color", "skip_checks",
}  # fmt: skip


def commands() -> str:
    """The options of ``runjobs`` and of each subcommand of ``jobs``, as their ``--help`` has them."""
    from django.core.management import load_command_class

    parts = []
    for name in ("runjobs", "jobs"):
        command = load_command_class("django_jobs", name)
        parser = command.create_parser("manage.py", name)
        parts.append(f"## manage.py {name}\n\n{_sentence(parser.description)}\n\n{_options(parser)}")
        for below, subparser in _subparsers(parser):
            parts.append(
                f"### manage.py {name} {below}\n\n{_sentence(subparser.description)}\n\n{_options(subparser)}"
            )
    return "\n".join(parts)


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _options(parser: argparse.ArgumentParser) -> str:
    lines = []
    for action in parser._actions:
        if action.dest in _DJANGOS or action.help in (None, argparse.SUPPRESS):
            continue
        lines.append(f"- {_names(action)}: {_sentence(action.help or '', capital=False)}\n")
    return "".join(lines)


def _names(action: argparse.Action) -> str:
    value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
    if isinstance(value, tuple):
        value = " ".join(value)
    if not action.option_strings:
        return f"`{value} ...`" if action.nargs in ("*", "+") else f"`{value}`"
    takes = "" if action.nargs == 0 else f" {'STATE' if action.dest == 'state' else value}"
    return ", ".join(f"`{option}{takes}`" for option in action.option_strings)


def _sentence(text: str | None, capital: bool = True) -> str:
    text = _escaped((text or "").replace("%%", "%").strip())
    return (text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")) if capital else text


# -- the public names of modules that grow -----------------------------------------------------------------------------


def operations() -> str:
    """A section for each module of operations, with all that is public of it."""
    import inspect
    import sys

    from django_jobs import operations as package

    modules: dict[str, list[str]] = {}
    for name in package.__all__:
        modules.setdefault(getattr(package, name).__module__, []).append(name)
    parts = []
    for module, names in sorted(modules.items()):
        title = module.rpartition(".")[2].replace("_", " ").capitalize()
        says = _escaped((inspect.getdoc(sys.modules[module]) or "").partition("\n\n")[0])
        parts.append(f"## {title}\n\n{says}\n\n{_autodoc(package, names)}")
    return "\n".join(parts)


def exceptions() -> str:
    """Those that a handler says its outcome by, and those that it or a caller meets."""
    import django_jobs
    from django_jobs.exceptions import Control

    groups: dict[str, list[str]] = {"words": [], "raised": [], "recorded": []}
    for name in django_jobs.__all__:
        each = getattr(django_jobs, name)
        if not isinstance(each, type) or not issubclass(each, BaseException):
            continue
        recorded = (each.__doc__ or "").startswith("Recorded")
        kind = "words" if issubclass(each, Control) else "recorded" if recorded else "raised"
        groups[kind].append(name)
    return "\n".join(
        f"{title}:\n\n{_autodoc(django_jobs, names)}"
        for title, names in (
            ("Raise them, or return them, from a job to say how it ends", groups["words"]),
            ("Raised by django_jobs", groups["raised"]),
            ("Recorded as the class of a job's error; nothing raises these", groups["recorded"]),
        )
    )


def testing() -> str:
    """All that ``django_jobs.testing`` has."""
    from django_jobs import testing as package

    return _autodoc(package, package.__all__)


def tasks() -> str:
    """All that ``django_jobs.backend`` has."""
    from django_jobs import backend as package

    return _autodoc(package, package.__all__)


def _autodoc(module: Any, names: list[str]) -> str:
    lines = [f".. currentmodule:: {module.__name__}", ""]
    for name in names:
        member = getattr(module, name)
        if not isinstance(member, type):
            lines += [f".. autofunction:: {name}", ""]
        elif issubclass(member, BaseException):
            lines += [f".. autoexception:: {name}", ""]
        else:
            # What a named tuple consists of, its docstring says.
            lines += [
                f".. autoclass:: {name}",
                *(["   :no-members:"] if issubclass(member, tuple) else []),
                "",
            ]
    return "```{eval-rst}\n" + "\n".join(lines) + "```\n"


# -- models ------------------------------------------------------------------------------------------------------------


def models() -> str:
    """A section for each table, with its columns."""
    from django.apps import apps

    parts = []
    for model in sorted(
        apps.get_app_config("django_jobs").get_models(), key=lambda each: each.__name__ != "Job"
    ):
        says = _escaped(" ".join((model.__doc__ or "").split()))
        parts.append(f"## {model.__name__}\n\n{says}\n\nTable: `{model._meta.db_table}`\n\n")
        parts.append("| column | kind | what it is |\n| --- | --- | --- |\n")
        for field in model._meta.concrete_fields:
            kind = field.get_internal_type().removesuffix("Field")
            null = ", or NULL" if field.null else ""
            parts.append(f"| `{field.column}` | {kind}{null} | {_escaped(str(field.verbose_name))} |\n")
        parts.append("\n")
    return "".join(parts)


# -- statements --------------------------------------------------------------------------------------------------------


def statements() -> str:
    """A section for each statement: what its files say, and for each database its text and its plan."""
    names = {vendor: {path.stem for path in (SQL / vendor).glob("*.sql")} for vendor in DATABASES}
    found = {"sqlite": plans(sorted(names["sqlite"])), "postgresql": postgresql_plans.read()[1]}
    return "\n".join(
        _statement(name, {vendor: each.get(name, []) for vendor, each in found.items()})
        for name in sorted(set().union(*names.values()))
    )


def _statement(name: str, plan: Mapping[str, list[str]]) -> str:
    files = {vendor: SQL / vendor / f"{name}.sql" for vendor in DATABASES}
    texts = {vendor: path.read_text("utf-8").rstrip() for vendor, path in files.items() if path.exists()}
    parts = [f"## {name}\n\n{_comment(next(iter(texts.values())))}\n"]
    for vendor, text in texts.items():
        label = DATABASES[vendor] if len(texts) > 1 else f"{DATABASES[vendor]} only"
        parts.append(f"{label}:\n\n```{{code-block}} sql\n:force:\n\n{text}\n```\n")
        if lines := plan[vendor]:
            parts.append("Its plan:\n\n```text\n" + "\n".join(lines) + "\n```\n")
        else:
            parts.append("It inserts, and has no plan.\n")
    return "\n".join(parts)


def _comment(text: str) -> str:
    """The comment at the head of a file, up to the first line that is indented or starts the statement."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("-- ") or line.startswith("--   "):
            break
        lines.append(line.removeprefix("-- "))
    whole = " ".join(lines)
    # What follows the first sentence is in the file, right above the line that it explains.
    first = re.split(r"(?<=[.])\s", whole, maxsplit=1)[0]
    return _escaped(first)


def _escaped(text: str) -> str:
    """Plain text as Markdown."""
    return re.sub(r"([*_\[\]`<|\\])", r"\\\1", text)


def plans(names: list[str]) -> dict[str, list[str]]:
    """What ``EXPLAIN QUERY PLAN`` says of each statement, on tables as the migrations make them, in memory."""
    from django.db.utils import ConnectionHandler

    from django_jobs.store.sqlite_functions import add_functions
    from django_jobs.store.statements import statement

    connection = ConnectionHandler({"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})[
        "default"
    ]
    make_tables(connection)
    database: sqlite3.Connection = connection.connection
    add_functions(database)
    found = {}
    for name in names:
        rows = database.execute("EXPLAIN QUERY PLAN " + statement("sqlite", name).named, _Anything())
        depth = {0: -1}
        found[name] = lines = list[str]()
        for id_, parent, _, detail in rows:
            depth[id_] = depth.get(parent, -1) + 1
            lines.append("  " * depth[id_] + detail)
    database.close()
    return found


def make_tables(connection: Any) -> None:
    """Apply the migrations, without a record of what was applied: that would go to the database of the process."""
    from django.db.migrations.loader import MigrationLoader
    from django.db.migrations.state import ProjectState

    graph = MigrationLoader(None).graph
    state = ProjectState()
    for leaf in [key for key in graph.leaf_nodes() if key[0] == "django_jobs"]:
        for key in graph.forwards_plan(leaf):
            with connection.schema_editor() as editor:
                state = graph.nodes[key].apply(state, editor)


class _Anything(dict[str, Any]):
    """Parameters of any name, all NULL: a plan does not depend on them."""

    def __missing__(self, name: str) -> None:
        return None


PAGES: Mapping[str, Callable[[], str]] = {
    "settings": settings,
    "commands": commands,
    "exceptions": exceptions,
    "models": models,
    "operations": operations,
    "tasks": tasks,
    "testing": testing,
    "statements": statements,
}
