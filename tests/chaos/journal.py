"""What processes have done, in files of theirs: what no fault of the database can take back."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = "CHAOS_FOLDER"

_files: dict[int, int] = {}


def note(what: str, **more: Any) -> None:
    """Add a line to the file of this process: one write, so that it is there whole or not at all."""
    pid = os.getpid()
    if pid not in _files:
        path = Path(os.environ[FOLDER]) / f"{pid}-{time.monotonic_ns()}.journal"
        _files[pid] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    line = json.dumps({"what": what, "at": time.time(), "pid": pid, **more})
    os.write(_files[pid], line.encode() + b"\n")


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """All lines of all processes; those of one process in their order."""
    for path in sorted(folder.glob("*.journal")):
        for line in path.read_text().splitlines():
            yield json.loads(line)


def at_work(folder: Path, pid: int) -> set[tuple[int, int]]:
    """The claims that a process runs, as far as it has noted."""
    running: set[tuple[int, int]] = set()
    for path in sorted(folder.glob(f"{pid}-*.journal")):
        for line in path.read_text().splitlines():
            told = json.loads(line) if line.endswith("}") else {"what": ""}  # it may be writing just now
            if told["what"] == "began":
                running.add((told["id"], told["claims"]))
            elif told["what"] in ("ended", "raised"):
                running.discard((told["id"], told["claims"]))
    return running
