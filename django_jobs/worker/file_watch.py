"""Waiting for a file to be written, by any process: told by the kernel (Linux), or by looking again and again.

What a watch tells is only that it is time to look: whether anything was committed the database knows.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable

# From linux/inotify.h.
IN_MODIFY = 0x2
IN_DELETE_SELF = 0x400
IN_MOVE_SELF = 0x800
IN_IGNORED = 0x8000

# A commit's last write comes before the commit is to be seen, and the next one may come at once: after a write, look
# this often, and for this long. The first look is much sooner.
SETTLE_SECONDS = 0.1
SOON_SECONDS = 0.001
# With nothing told, look all the same: the watch may be deaf, as on a file system of another machine.
SAFETY_SECONDS = 1.0
# A watch that has told nothing for this long, while there was something, is.
DEAF_SECONDS = 10.0


class Watch(ABC):
    """Tells when to look at a file."""

    deaf = False  # it tells nothing
    ended = False  # the files are others by now

    @abstractmethod
    def wait(self) -> None:
        """Return when it is time to look."""

    def saw_change(self) -> None:  # noqa: B027 - who looks needs not to be told
        """A look has shown a change."""

    def interrupt(self) -> None:  # noqa: B027 - nothing to end where a wait is short
        """End a wait, from another thread, for good."""

    def close(self) -> None:  # noqa: B027
        """Give up what the watch holds."""


class Looking(Watch):
    """Looks again and again.

    :param interval: seconds between two looks.
    """

    def __init__(self, interval: float) -> None:
        self.interval = interval

    def wait(self) -> None:
        time.sleep(self.interval)  # an Event's wait costs twice as much, and there are a hundred in a second


class Inotify(Watch):
    """Linux tells of each write to one of some files.

    :param paths: the files; those that don't exist are left out, and none at all is an error.
    :param interval: seconds between two looks while there are writes.
    :raises OSError: it can't be had here, or no more of them.
    """

    def __init__(self, paths: Iterable[str], interval: float) -> None:
        self.interval = interval
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._guard = threading.Lock()
        self._watched: list[int] = []
        try:
            for path in paths:
                if os.path.exists(path):  # noqa: PTH110 - as the kernel takes it: a path in bytes
                    events = IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF
                    self._watched.append(
                        self._checked(self._libc.inotify_add_watch(self._file, os.fsencode(path), events))
                    )
            if not self._watched:
                raise FileNotFoundError("there is no file to be watched")
        except OSError:
            self.close()
            raise
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLIN)
        self._told_at = time.monotonic()
        self._pause = SOON_SECONDS

    def _checked(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result

    def wait(self) -> None:
        if time.monotonic() - self._told_at >= SETTLE_SECONDS:
            self._pause = SOON_SECONDS
            if self._poll.poll(SAFETY_SECONDS * 1000):
                time.sleep(SOON_SECONDS)  # who writes is not done yet, and should not be disturbed
                self._take_in()
            return
        # Writes don't end this wait: there may be thousands in a second.
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, self.interval)
        self._take_in()

    def _take_in(self) -> None:
        """Read what was told. A file that was removed or renamed is watched no more: then all is watched anew."""
        try:
            events = os.read(self._file, 65536)
        except BlockingIOError:
            return
        self._told_at = time.monotonic()
        while events:
            mask, length = (
                int.from_bytes(events[4:8], sys.byteorder),
                int.from_bytes(events[12:16], sys.byteorder),
            )
            if mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF):
                self.ended = True
            events = events[16 + length :]

    def saw_change(self) -> None:
        self.deaf = self.deaf or time.monotonic() - self._told_at >= DEAF_SECONDS

    def interrupt(self) -> None:
        with self._guard:
            for number in self._watched:  # each says that it has ended, and so ends the wait
                self._libc.inotify_rm_watch(self._file, number)
            self._watched = []

    def close(self) -> None:
        with self._guard:
            self._watched = []
            if self._file >= 0:
                os.close(self._file)
                self._file = -1


def watch_file(path: str | None, interval: float) -> Watch:
    """The best watch of a SQLite file and its write-ahead log that can be had here.

    :param path: the file; None where there is none.
    :param interval: seconds between two looks, where it has to be looked.
    """
    if path and sys.platform == "linux":
        try:
            return Inotify([path, f"{path}-wal"], interval)
        except (OSError, AttributeError):  # no more of them for this user; a C library without it
            pass
    return Looking(interval)
