"""The README as the package's page on an index shows it, where neither the repository's files nor its folders are.

Used by the build alone (``tool.hatch.metadata.hooks.custom``). Left out is what stands between ``<!-- repository -->``
and ``<!-- /repository -->``, and all other comments; of images nothing stays, and of a link to a file its text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_ONLY_THERE = re.compile(r"<!-- repository -->.*?<!-- /repository -->\n*", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)
_IMAGE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n*", re.MULTILINE)
_LINK_TO_A_FILE = re.compile(r"\[([^\]]+)\]\((?!\w+:)[^)]*\)")


def published(text: str) -> str:
    """The README without what an index can't show."""
    for pattern in (_ONLY_THERE, _COMMENT, _IMAGE):
        text = pattern.sub("", text)
    return _LINK_TO_A_FILE.sub(r"\1", text)


class ReadmeHook(MetadataHookInterface):
    """Sets ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add it to the project's metadata."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": published(text)}
