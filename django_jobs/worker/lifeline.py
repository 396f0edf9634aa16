"""A child's watch on its parent: a pipe that closes when the parent ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable

# The environment variable that tells a child which of its file descriptors is the pipe.
VARIABLE = "DJANGO_JOBS_LIFELINE"


class Lifeline:
    """The parent's end. It holds the pipe open for as long as it lives."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    @property
    def child_end(self) -> int:
        """The descriptor to pass on (``pass_fds``)."""
        return self._read

    def environment(self) -> dict[str, str]:
        """What the child needs in its environment."""
        return {VARIABLE: str(self._read)}

    def close(self) -> None:
        """Let go: the child notices."""
        for descriptor in (self._read, self._write):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def watch_parent(on_gone: Callable[[], None]) -> None:
    """Call ``on_gone``, in a thread of its own, when the parent that passed a lifeline is gone; else do nothing."""
    descriptor = os.environ.pop(VARIABLE, "")
    if not descriptor.isdigit():
        return

    def wait() -> None:
        # Nothing is ever written: the read ends when the last writing end, the parent's, is closed.
        with contextlib.suppress(OSError):
            os.read(int(descriptor), 1)
        on_gone()

    threading.Thread(target=wait, name="django_jobs-lifeline", daemon=True).start()
