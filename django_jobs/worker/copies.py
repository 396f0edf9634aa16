"""What becomes of the copy of a worker that a job makes by ``os.fork()``, when the job's function ends in it, too."""

from __future__ import annotations

import os
from typing import NoReturn

#: The process id of this copy, where this process is one. (A list, for to look at it costs a job next to nothing.)
copied: list[int] = []

_has_worked: list[bool] = []


def began() -> None:
    """Executors start in this process: it is no copy, and one that is forked from now on is."""
    copied.clear()
    _has_worked[:] = [True]


def leave(error: BaseException | None, job_id: int | None) -> NoReturn:
    """End this copy, with the exit code that ``sys.exit()`` has asked for, or 1 for what else was raised.

    It has none of the worker's other threads, so that nothing would ever be stored of what it did; and its connections
    are the worker's own, on which it must say nothing, not even goodbye: so Python does not take itself apart.
    """
    code, told = (0, "") if error is None else (1, type(error).__name__)
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code & 0xFF if isinstance(error.code, int) else 1
        told = f"SystemExit: {error.code}"
    if code:
        line = f"Process {os.getpid()}, which job {job_id} has forked, ends with {told}\n"
        os.write(2, line.encode("utf-8", "backslashreplace"))
    os._exit(code)


def _in_child() -> None:
    if _has_worked:
        copied.append(os.getpid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
