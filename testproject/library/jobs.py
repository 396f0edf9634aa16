"""The library's job: read a file, measure it, and keep the result."""

import ast
import threading
from dataclasses import dataclass, field
from pathlib import Path

from django.db import transaction
from django.utils import timezone

from django_jobs import Fail, job
from testproject.library.models import Document

# CPython counts the parser's depth for the whole interpreter: two threads that parse at once can get a SystemError
# ("AST constructor recursion depth mismatch", seen with 3.11). Threads parse one at a time anyway.
parsing = threading.Lock()
DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Definitions:
    """The functions and classes of a Python file, or why they could not be read."""

    names: list[str] = field(default_factory=list)
    error: str = ""


@job(queue_name="files", max_attempts=3)
def index_file(path: str) -> None:
    """Save a file's measures as a ``Document``. Run again, it saves the same row again."""
    file = Path(path)
    content = read(file)
    text = decode(file, content)
    found = definitions(text) if file.suffix == ".py" else Definitions()
    # All the slow work is done: the transaction is as short as it can be.
    with transaction.atomic():
        Document.objects.update_or_create(
            path=path,
            defaults={
                "kind": file.suffix.removeprefix("."),
                "bytes": len(content),
                "lines": len(text.splitlines()),
                "words": len(text.split()),
                "definitions": len(found.names),
                "definition_names": found.names,
                "syntax_error": found.error,
                "indexed_at": timezone.now(),
            },
        )


def read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError as exc:
        # It was there when the job was enqueued; trying again will not bring it back.
        raise Fail(f"{file} is gone") from exc
    except IsADirectoryError as exc:
        raise Fail(f"{file} is a folder, not a file") from exc


def decode(file: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise Fail(f"{file} is not UTF-8 text: byte {content[exc.start]:#04x} at offset {exc.start}") from exc


def definitions(source: str) -> Definitions:
    """The names of all functions and classes in Python source, in the order they stand there.

    Source that this Python can't parse (of another version, a template, a test's broken example) is no reason
    to lose the file's other measures: the error is part of the result.
    """
    try:
        with parsing:
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:  # ValueError: a NUL in the source
        return Definitions(error=f"{type(exc).__name__}: {exc}"[:255])
    nodes = [node for node in ast.walk(tree) if isinstance(node, DEFINITION)]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    return Definitions(names=[node.name for node in nodes])
