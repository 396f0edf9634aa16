"""The documentation's pages, and the samples in them.

A sample is a fenced block. What kind it is, its language says:

``python``
    is run, in the order of the page, all in one namespace. A line ``# name.py`` begins what would stand in that file.
    What stands in ``settings.py`` holds for the rest of the page.
``pycon``
    is run, and what it prints is compared (``...`` stands for anything).
``console``
    has ``$ `` before each command; ``manage.py`` commands are run, and what they print is compared if any output
    stands below. Those that would not end by themselves (``runjobs`` without ``--drain``) have their options checked.
``sql``
    is run on PostgreSQL, and undone.
other languages
    have the options of each ``manage.py runjobs`` and ``manage.py jobs`` in them checked.

An HTML comment that begins with ``run`` holds Python that is run and not shown: what the page takes for granted, and
what checks its claims. A sample that can't be run has the line ``*Not run by the tests: why.*`` above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
HIDDEN = "hidden"

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w-]*)[^\n]*$")
_NOT_RUN = re.compile(r"^\*Not run by the tests: (?P<why>.+)\*$")


@dataclass(frozen=True)
class Sample:
    """A block of a page: its language, its text, the line of its text in the page, and why it is not run, if so."""

    language: str
    text: str
    line: int
    not_run: str = ""


@dataclass(frozen=True)
class Page:
    """A page of the documentation."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def samples(self) -> Iterator[Sample]:
        """In the order of the page."""
        lines = self.path.read_text("utf-8").splitlines()
        index = 0
        not_run = ""
        while index < len(lines):
            line = lines[index]
            if match := _NOT_RUN.match(line):
                not_run = match["why"]
            elif line == "<!-- run":
                end = lines.index("-->", index)
                yield Sample(HIDDEN, "\n".join(lines[index + 1 : end]), index + 2)
                index = end
            elif (match := _FENCE.match(line)) and not match["language"]:
                index = _end(lines, index, match)
            elif match:
                end = _end(lines, index, match)
                indent = len(match["indent"])
                text = "\n".join(each[indent:] for each in lines[index + 1 : end])
                yield Sample(match["language"], text, index + 2, not_run)
                index = end
                not_run = ""
            elif line.strip():
                assert not not_run, f"{self.name}:{index}: what is not run must follow at once"
            index += 1


def _end(lines: list[str], index: int, match: re.Match[str]) -> int:
    """The line that ends a block."""
    return lines.index(match["indent"] + match["ticks"], index + 1)


def pages() -> list[Page]:
    """All pages but those of the tutorial, which are a site being built, and what a build has written."""
    found = [path for path in sorted(DOCS.rglob("*.md")) if not {"_build", "_generated"} & {*path.parts}]
    return [Page(ROOT / "README.md"), *map(Page, found)]
