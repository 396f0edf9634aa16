"""How the children of a supervisor hand it their measures: each in a file of its own, written with its heartbeat.

A file outlives its child, so that counts never go back. Of a child that is killed they are as of its last heartbeat.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from django_jobs.worker.measures import Snapshot, add_up
from django_jobs.worker.parts import one_line

logger = logging.getLogger("django_jobs.worker")

# The environment variable that tells a child where its file goes.
VARIABLE = "DJANGO_JOBS_MEASURES"


class SnapshotFile:
    """The child's end.

    :param folder: where its supervisor looks.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / f"{os.getpid()}.json"
        self._part = folder / f"{os.getpid()}.part"

    @classmethod
    def inherited(cls) -> SnapshotFile | None:
        """Where the supervisor has told this process to write; None where it has not."""
        folder = os.environ.pop(VARIABLE, "")
        return cls(Path(folder)) if folder and Path(folder).is_dir() else None

    def write(self, snapshot: Snapshot) -> None:
        """Write the file, whole or not at all."""
        try:
            self._part.write_text(json.dumps(snapshot), "utf-8")
            self._part.replace(self._file)
        except OSError as error:
            logger.warning("The measures can't be handed to the supervisor: %s", one_line(error))


class SnapshotFolder:
    """The supervisor's end: a folder of its own, until :meth:`close`."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="django_jobs-"))
        self._gone: Snapshot = add_up([])
        self._lock = threading.Lock()

    def environment(self) -> dict[str, str]:
        """What children need in theirs."""
        return {VARIABLE: str(self._folder)}

    def collect(self, living: Callable[[], Iterable[int]]) -> Snapshot:
        """The measures of all children, those that have ended included.

        :param living: the process ids of those that have not.
        """
        with self._lock:
            # Asked first: who ends after that may still be read as living, and is added for good the next time.
            pids = {str(pid) for pid in living()}
            present = []
            for file in sorted(self._folder.glob("*.json")):
                if file.stem not in pids:
                    self._take_in(file)
                elif (snapshot := _read(file)) is not None:
                    present.append(snapshot)
            return add_up([self._gone, *present])

    def take_in(self, pid: int) -> None:
        """The child with that process id has ended: keep what it has measured, and no file of its.

        Nobody may ever ask for the measures, and with ``--max-jobs`` there may be ever more children that have ended.
        """
        with self._lock:
            self._take_in(self._folder / f"{pid}.json")
            (self._folder / f"{pid}.part").unlink(missing_ok=True)

    def _take_in(self, file: Path) -> None:
        if not file.exists():
            return
        if (snapshot := _read(file)) is not None:
            self._gone = add_up([self._gone, snapshot], without_gauges=True)
        file.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _read(file: Path) -> Snapshot | None:
    try:
        snapshot = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        logger.warning("The measures of process %s can't be read: %s", file.stem, one_line(error))
        return None
    return snapshot if isinstance(snapshot, Mapping) else None  # type: ignore[return-value]
