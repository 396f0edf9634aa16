"""Tracebacks for people: first the frames of the site's own code, with those of libraries folded away."""

from __future__ import annotations

import re
import sysconfig
from typing import NamedTuple

from django.utils.translation import ngettext

from django_jobs.texts import number_text

_FRAME = re.compile(r'  File "(?P<file>[^"\n]*)", line \d+')
# Where code lies that is not the site's.
_LIBRARIES = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]django_jobs[/\\]|^<frozen |^<string>")
_STANDARD = tuple(path for name in ("stdlib", "platstdlib") if (path := sysconfig.get_paths().get(name)))


class Part(NamedTuple):
    """Lines of a traceback. ``is_library``: frames of libraries, to be folded."""

    text: str
    is_library: bool


def folded(traceback: str) -> str:
    """A traceback with the frames of libraries counted rather than shown; empty where none would be left out.

    A frame where the traceback ends is kept, wherever it lies: there it happened.
    """
    parts = list(_parts(traceback))
    if not any(part.is_library for part in parts) or not any(not part.is_library for part in parts):
        return ""
    lines: list[str] = []
    hidden = 0
    for part in parts:
        if part.is_library:
            hidden += 1
            continue
        lines += _mark(hidden)
        hidden = 0
        lines.append(part.text)
    lines += _mark(hidden)
    text = "".join(lines)
    return text if text.rstrip() != traceback.rstrip() else ""


def _mark(hidden: int) -> list[str]:
    if not hidden:
        return []
    text = ngettext("%(count)s frame of a library", "%(count)s frames of libraries", hidden) % {
        "count": number_text(hidden)
    }
    return [f"  … {text}\n"]


def _parts(traceback: str) -> list[Part]:
    """The frames and what stands between them, each with its lines."""
    parts: list[list[str]] = [[]]
    kinds = [False]
    for line in traceback.splitlines(keepends=True):
        if _FRAME.match(line):
            parts.append([line])
            kinds.append(True)
        elif kinds[-1] and not line.startswith("    "):
            # An exception's own line, a cause, a mark of what was cut.
            parts.append([line])
            kinds.append(False)
        else:
            parts[-1].append(line)
    found = [
        Part("".join(lines), kind and _is_library(lines[0]))
        for lines, kind in zip(parts, kinds, strict=True)
        if lines
    ]
    return [
        part._replace(is_library=False) if part.is_library and _is_innermost(found, place) else part
        for place, part in enumerate(found)
    ]


def _is_innermost(parts: list[Part], place: int) -> bool:
    following = parts[place + 1] if place + 1 < len(parts) else None
    return following is None or not _FRAME.match(following.text)


def _is_library(line: str) -> bool:
    match = _FRAME.match(line)
    assert match is not None
    file = match["file"]
    return bool(_LIBRARIES.search(file)) or file.startswith(_STANDARD)
