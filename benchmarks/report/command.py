"""``python -m benchmarks report``: tables and plots from the results, into the page."""

from __future__ import annotations

import argparse
import importlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.core.output import Column, describe, table
from benchmarks.report.targets import targets

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
BLOCK = "<!-- {name}: made by python -m benchmarks report -->\n{text}\n<!-- end of {name} -->"

TARGETS = (
    Column("target", "target"),
    Column("wanted", "wanted"),
    Column("reached", "reached"),
    Column("verdict", "verdict"),
)


class Report:
    """Write the results of `python -m benchmarks all` into docs/benchmarks.md: the tables, and plots beside the page.

    What stands between the marks of a section is made anew; all else on the page is left as it is.
    """

    name: ClassVar = "report"

    def run(self, arguments: Sequence[str]) -> int:
        """The command."""
        parser = argparse.ArgumentParser(
            prog="python -m benchmarks report",
            description=self.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--results", type=Path, default=RESULTS, help="default: benchmarks/results")
        parser.add_argument("--page", type=Path, default=PAGE, help="default: docs/benchmarks.md")
        options = parser.parse_args(arguments)
        results = {file.stem: json.loads(file.read_text()) for file in sorted(options.results.glob("*.json"))}
        if not results:
            parser.error(f"there are no results in {options.results}; run: python -m benchmarks all")
        page = options.page.read_text() if options.page.exists() else "# Benchmarks\n"
        for name, text in sections(results, options.page.parent).items():
            page = placed(page, name, text)
        options.page.write_text(page)
        print(f"{options.page}: {', '.join(results)}")
        return 0


def sections(results: Mapping[str, dict[str, Any]], folder: Path) -> dict[str, str]:
    """The text of each section, its plot drawn."""
    from benchmarks.report.plots import PLOTS

    found = {"targets": table(TARGETS, targets(results))}
    for name, result in results.items():
        parts = []
        if draw := PLOTS.get(name):
            file = folder / "images" / f"benchmarks-{name}.png"
            file.parent.mkdir(exist_ok=True)
            title = draw(result["rows"], file)
            parts.append(f"![{title}](images/{file.name})\n")
        parts.append(table(command_of(result).columns, result["rows"]))
        parts += [
            f"\nSkipped: {each['peer']}: {first_line(each['reason'])}" for each in result.get("skipped", ())
        ]
        parts.append(f"\n`python -m benchmarks {shown(result)}`; {describe(result)}")
        found[name] = "\n".join(parts)
    return found


def command_of(result: Mapping[str, Any]) -> Any:
    """The benchmark that a result is of."""
    return importlib.import_module(f"benchmarks.{result['benchmark']}").BENCHMARK


def shown(result: Mapping[str, Any]) -> str:
    """The command that gave a result, without what is so by default."""
    parser = command_of(result).parser()
    words = [result["benchmark"]]
    for name, value in result["options"].items():
        if value is not None and value is not False and value != parser.get_default(name):
            listed = ",".join(f"{each:g}" for each in value) if isinstance(value, list) else value
            words.append(f"--{name}" if value is True else f"--{name} {listed}")
    return " ".join(map(str, words))


def first_line(text: str) -> str:
    """Of what a program said."""
    return text.strip().splitlines()[0] if text.strip() else ""


def placed(page: str, name: str, text: str) -> str:
    """The page with a section made anew; at the end, if it has none."""
    block = BLOCK.format(name=name, text=text)
    expression = re.compile(rf"<!-- {re.escape(name)}: .*?<!-- end of {re.escape(name)} -->", re.DOTALL)
    if expression.search(page):
        return expression.sub(lambda _: block, page)
    return f"{page.rstrip()}\n\n## {name.capitalize()}\n\n{block}\n"


BENCHMARK = Report()
