"""A child's watch on its parent: a pipe that closes when the parent ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable

# The environment variable that tells a child which of its file descriptors is the pipe.
VARIABLE = "DJANGO_JOBS_LIFELINE"

_HURRY = b"!"


class Lifeline:
    """The parent's end. It holds the pipe open for as long as it lives."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._open: tuple[int, ...] = (self._read, self._write)

    @property
    def child_end(self) -> int:
        """The descriptor to pass on (``pass_fds``)."""
        return self._read

    def environment(self) -> dict[str, str]:
        """What the child needs in its environment."""
        return {VARIABLE: str(self._read)}

    def hurry(self) -> None:
        """Tell the child not to wait for running jobs as it stops.

        Not by a second signal: a terminal and many a process manager signal the whole group, so the child gets the
        first one twice.
        """
        if self._open:
            os.write(self._write, _HURRY)

    def close(self) -> None:
        """Let go: the child notices."""
        descriptors, self._open = self._open, ()
        for descriptor in descriptors:
            os.close(descriptor)


def watch_parent(on_gone: Callable[[], None], on_hurry: Callable[[], None] = lambda: None) -> None:
    """Call ``on_gone``, in a thread of its own, when the parent that passed a lifeline is gone, and ``on_hurry`` when
    it says so; without a lifeline do nothing."""
    text = os.environ.pop(VARIABLE, "")
    if not text.isdigit():
        return
    descriptor = int(text)
    with contextlib.suppress(OSError):
        os.set_inheritable(descriptor, False)

    def wait() -> None:
        # The read ends without data when the last writing end, the parent's, is closed.
        with contextlib.suppress(OSError):
            while os.read(descriptor, 1) == _HURRY:
                on_hurry()
        on_gone()

    threading.Thread(target=wait, name="django_jobs-lifeline", daemon=True).start()
