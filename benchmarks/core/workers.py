"""Workers as users run them: ``manage.py runjobs`` in a process of its own, with its public options."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.core.meters import Meter
from benchmarks.core.processes import bytes_written, cpu_of, peak_memory

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = "benchmarks.settings"
START_SECONDS = 60
STOP_SECONDS = 60


class WorkerError(RuntimeError):
    """The worker ended when it should not have, or did not start."""


class Workers:
    """A ``runjobs``, from the start of its work on.

    What a process uses before it registers, the import of Django and of the site, is not counted.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path, meter: Meter, processes: int) -> None:
        self.process = process
        self.log = log
        self.meter = meter
        self.processes = processes
        self.started: dict[int, float] = {}  # by process id: when it registered, by the database's clock
        self._cpu: dict[int, float] = {}
        self._written: dict[int, int | None] = {}
        self.connections = 0
        self.deadline = time.monotonic() + START_SECONDS

    def wait_until_started(self) -> None:
        """Wait until all processes have registered."""
        while len(self.started) < self.processes:
            self.look()
            time.sleep(0.002)

    def look(self) -> None:
        """See who has registered by now. Raises WorkerError when the worker has ended."""
        if len(self.started) < self.processes:
            for pid, at in self.meter.workers().items():
                if pid not in self.started:
                    self.started[pid] = at
                    self._begin(pid)
            if self.processes > 1 and self.started and self.process.pid not in self._cpu:
                self._begin(self.process.pid)  # the supervisor
            if time.monotonic() > self.deadline:
                raise WorkerError(f"the worker did not start:\n{self.output()}")
        if self.process.poll() is not None:
            raise WorkerError(f"the worker ended:\n{self.output()}")

    def _begin(self, pid: int) -> None:
        self._cpu[pid] = cpu_of(pid)
        self._written[pid] = bytes_written(pid)

    def begin_again(self) -> None:
        """Count CPU time from now on."""
        for pid in self._cpu:
            self._begin(pid)

    def count_connections(self) -> None:
        """See how many connections there are now."""
        self.connections = max(self.connections, self.meter.connections() or 0)

    def cpu(self) -> float:
        """CPU seconds of all processes since they registered."""
        return sum(cpu_of(pid) - before for pid, before in self._cpu.items())

    def written(self) -> int | None:
        """Bytes written to files since then; None where that is not told."""
        total = 0
        for pid, before in self._written.items():
            after = bytes_written(pid)
            if before is None or after is None:
                return None
            total += after - before
        return total

    def memory(self) -> float:
        """The most that all processes together have held, in MB (each counted with what they share)."""
        return sum(peak_memory(pid) for pid in self._cpu)

    def output(self) -> str:
        """What the worker has printed."""
        return self.log.read_text(errors="replace")[-3000:]

    def stop(self) -> None:
        """Stop in order, as SIGTERM does."""
        self.process.send_signal(signal.SIGTERM)
        if code := self.process.wait(STOP_SECONDS):
            raise WorkerError(f"the worker ended with {code}:\n{self.output()}")


@contextlib.contextmanager
def run_workers(
    url: str,
    meter: Meter,
    folder: Path,
    *,
    processes: int = 1,
    concurrency: int | None = None,
    environment: Mapping[str, str] | None = None,
    arguments: tuple[str, ...] = (),
) -> Iterator[Workers]:
    """Start ``manage.py runjobs`` on a database; it is dead afterwards, if it was not stopped."""
    command = [sys.executable, str(ROOT / "manage.py"), "runjobs", *arguments]
    if processes > 1:
        command += ["--processes", str(processes)]
    if concurrency:
        command += ["--concurrency", str(concurrency)]
    log = folder / "worker.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            env=site_environment(url, environment),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield Workers(process, log, meter, processes)
    finally:
        with contextlib.suppress(ProcessLookupError):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def site_environment(url: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a process of the site."""
    return {
        **os.environ,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "DEBUG": "0",
        **(more or {}),
    }
