"""The listener: notices that there is work, and says so to who waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django_jobs.store.base import Store
from django_jobs.worker.file_watch import Looking, Watch, watch_file
from django_jobs.worker.parts import Part

logger = logging.getLogger("django_jobs.worker")

# How long a LISTEN connection is waited on before the server is asked whether it is still there.
CHECK_SECONDS = 10.0


class Listener(Part):
    """Common to both: ``healthy`` says whether wake-ups can be relied on now; while not, the worker polls more often.

    :param open_store: opens a store on a connection of the listener's own.
    :param on_hint: takes ``"+queue"`` (an available job), ``"@"`` (a scheduled one), ``"!worker"`` (a cancel request),
        or ``""`` (anything may have happened).
    """

    name = "listener"

    def __init__(self, open_store: Callable[[], Store], on_hint: Callable[[str], None]) -> None:
        super().__init__()
        self.healthy = False
        self._on_hint = on_hint
        self._open_store = open_store
        self._store: Store | None = None

    @property
    def session(self) -> Any:
        """The listener's own session."""
        if self._store is None:
            self._store = self._open_store()
        return self._store.session

    def failed(self, error: Exception) -> None:
        """Wake-ups may be missed from now on."""
        self.healthy = False
        super().failed(error)

    def close(self) -> None:
        """Close the connection."""
        self.healthy = False
        if self._store is not None:
            self._store.close()


class NotifyListener(Listener):
    """PostgreSQL: one LISTEN connection."""

    def step(self) -> None:
        """Listen for a while; the first time, and after a break, anything may have happened meanwhile."""
        connects = self.session.connects
        hints = self.session.listen(CHECK_SECONDS, on_listening=lambda: self._listening(connects))
        for hint in hints:
            self._on_hint(hint)

    def stop(self) -> None:
        """Ask the part to end; the connection is cut, since nothing else ends the wait for a notification."""
        super().stop()
        self._cut()

    def _cut(self) -> None:
        try:
            if self._store is not None:
                self._store.session.cut()  # type: ignore[attr-defined]
        except Exception as error:  # it is broken already, or being closed
            logger.debug("The listener's connection could not be cut: %s", error)

    def failed(self, error: Exception) -> None:
        """A connection that was cut to stop is no error."""
        if not self._stopping.is_set():
            super().failed(error)

    def _listening(self, connects: int) -> None:
        if not self.healthy or self.session.connects != connects:
            self.healthy = True
            self._on_hint("")
        if self._stopping.is_set():
            self._cut()  # the stop came before there was a connection to cut


class FileListener(Listener):
    """SQLite: ``PRAGMA data_version`` moves with every commit of another connection, of any process. When to look is
    told by a watch of the file.

    :param interval: seconds between two looks while the file is being written, and always where it can't be watched.
    """

    def __init__(
        self, open_store: Callable[[], Store], on_hint: Callable[[str], None], interval: float
    ) -> None:
        super().__init__(open_store, on_hint)
        self.interval = interval
        self.watch: Watch | None = None
        self._version: int | None = None
        self._connects: int | None = None

    def step(self) -> None:
        """Look once, and wait."""
        version = self.session.data_version()
        connects = getattr(self.session, "connects", None)
        if connects != self._connects:
            # Another connection counts anew. It may be to another file, which was put in the place of the first: while
            # anybody in this process has that open, the system does not say that it is gone.
            self._connects, self._version = connects, None
            self._unwatch()
        if version != self._version:
            if self._version is not None and self.watch is not None:
                self.watch.saw_change()
            self._version = version
            self._on_hint("")
        self.healthy = True
        self._kept_watch().wait()

    def _kept_watch(self) -> Watch:
        """The watch; another one where it is none any more. By now the write-ahead log is there, if there is one."""
        watch = self.watch
        if watch is not None and watch.deaf:
            logger.info("Nothing tells when the file is written; it is looked at every %g s", self.interval)
            watch.close()
            watch = self.watch = Looking(self.interval)
        elif watch is None or watch.ended:
            if watch is not None:
                watch.close()
            path = getattr(self.session, "file", None)
            watch = self.watch = watch_file(path() if path is not None else None, self.interval)
        return watch

    def stop(self) -> None:
        """Ask the part to end, and end its wait."""
        super().stop()
        if self.watch is not None:
            self.watch.interrupt()

    def failed(self, error: Exception) -> None:
        """The number is one of the connection's, and the next one may count anew."""
        self._version = None
        super().failed(error)

    def close(self) -> None:
        """Close the connection, and with it forget its number."""
        self._version = None
        self._unwatch()
        super().close()

    def _unwatch(self) -> None:
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.close()
