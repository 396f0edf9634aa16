"""How a worker, or the supervisor of several, shows that it lives: a file that is touched, a port, a watchdog's socket.

What lives is the process: its parts go round. That does not depend on the database, since a restart mends no outage.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path

from django_jobs.worker.notifying import Notifier
from django_jobs.worker.parts import Part
from django_jobs.worker.ports import Answer, Port

logger = logging.getLogger("django_jobs.worker")

HEALTH_PAGES = ("/", "/live", "/healthz")
_PLAIN = "text/plain; charset=utf-8"


class Probes(Part):
    """Asks the worker how it is, again and again, and shows that it lives for as long as nothing is wrong.

    :param interval: seconds between two looks.
    :param file: touched at each look; removed at the end.
    :param port: gets pages that tell it.
    :param notifier: systemd's socket.
    :param on_well: called at each look that finds nothing wrong.
    """

    name = "probe"

    def __init__(
        self,
        interval: float,
        file: Path | None = None,
        port: Port | None = None,
        notifier: Notifier | None = None,
        on_well: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self.interval = interval
        if notifier is not None and notifier.watchdog is not None:
            self.interval = min(interval, notifier.watchdog / 2)
        self._file = file
        self._notifier = notifier
        self._on_well = on_well
        self._ask: Callable[[], str | None] = lambda: None
        self._told = False
        if port is not None:
            for page in HEALTH_PAGES:
                port.pages.setdefault(page, self._answer)

    def watch(self, ask: Callable[[], str | None], status: str) -> None:
        """From now on ``ask`` says what is wrong, or None; systemd is told that the service has started."""
        self._ask = ask
        if self._notifier is not None:
            self._notifier.ready(status)
        self.start()

    def tell(self, status: str) -> None:
        """Say what the process does, in a line."""
        if self._notifier is not None:
            self._notifier.status(status)

    def stopping(self) -> None:
        """Say that the process stops."""
        if self._notifier is not None:
            self._notifier.stopping()

    def step(self) -> None:
        """Look, and show it."""
        problem = self._ask()
        if problem is None:
            self._told = False
            if self._file is not None:
                self._file.touch()
            if self._on_well is not None:
                self._on_well()
            if self._notifier is not None and self._notifier.watchdog is not None:
                self._notifier.alive()
        elif not self._told:
            self._told = True
            logger.error("This process is not well: %s", problem)
        self._rest(self.interval)

    def pause(self) -> float:
        """As usual: a full disk is no reason to look less often."""
        return self.interval

    def close(self) -> None:
        """A file that is there would say that the process lives."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink()

    def _answer(self, _accept: str) -> Answer:
        problem = self._ask()
        if problem is None:
            return Answer(200, _PLAIN, b"ok\n")
        return Answer(503, _PLAIN, f"{problem}\n".encode())


class Pulse:
    """When something that goes round has come by last.

    :param longest: seconds that a round may take.
    """

    def __init__(self, name: str, longest: float) -> None:
        self.name = name
        self.longest = longest
        self.at = time.monotonic()

    def beat(self) -> None:
        """It has come by."""
        self.at = time.monotonic()

    def problem(self) -> str | None:
        """What is wrong, or None."""
        silent = time.monotonic() - self.at
        return f"the {self.name} has stood still for {silent:.0f} s" if silent > self.longest else None


def check_health_file(path: str) -> Path:
    """The file to touch; made now, so that a path that can't be written is told at once. Raises OSError."""
    file = Path(path).absolute()
    file.touch()
    return file
