"""What processes use: CPU time and memory, of a process and its descendants."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil


def cpu_of(pid: int, descendants: bool = False) -> float:
    """CPU seconds of a process, user and system, since it began; with its descendants, those that ended too.

    Zero for one that is gone.
    """
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if not descendants:
            times = process.cpu_times()
            return float(times.user + times.system)
        return sum(_with_reaped(each) for each in [process, *process.children(recursive=True)])
    return 0.0


def _with_reaped(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0


def peak_memory(pid: int) -> float:
    """The most memory that a process has held so far, in MB."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    with contextlib.suppress(psutil.NoSuchProcess):  # not Linux: what it holds now
        return float(psutil.Process(pid).memory_info().rss) / 2**20
    return 0.0


def bytes_written(pid: int) -> int | None:
    """Bytes that a process has written to files so far; None where the system does not tell."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            if line.startswith("wchar:"):
                return int(line.split()[1])
    return None


def server_of(backend_pid: int) -> int | None:
    """The process id of the PostgreSQL server on this host that a backend belongs to; None if it is elsewhere."""
    with contextlib.suppress(psutil.Error):
        backend = psutil.Process(backend_pid)
        parent = backend.parent()
        if "postgres" in backend.name() and parent is not None and "postgres" in parent.name():
            return int(parent.pid)
    return None
