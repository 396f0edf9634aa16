"""What an entry of the catalogue says."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Edit:
    """One place in the source, as it is and as it would be without the guard.

    ``file`` is below ``django_jobs/``; ``old`` occurs in it exactly once.
    """

    file: str
    old: str
    new: str = ""

    def apply(self, root: Path) -> None:
        """Edit the tree at ``root``. Raises ValueError where the text is not there once."""
        path = root / "django_jobs" / self.file
        text = path.read_text()
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"django_jobs/{self.file} has {count} times, not once: {self.old!r}")
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True)
class Guard:
    """A guard: how to take it out, and which tests (below ``tests/``) fail then, on which databases."""

    name: str
    edits: Sequence[Edit]
    tests: Sequence[str]
    databases: Sequence[str] = ("sqlite", "postgresql")

    def matches(self, word: str) -> bool:
        """Whether ``word`` is in its name, in a file that it edits or in a test that it names."""
        return any(word in text for text in (self.name, *(edit.file for edit in self.edits), *self.tests))
