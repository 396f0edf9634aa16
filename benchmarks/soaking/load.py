"""A process that enqueues at a steady rate: ``python -m benchmarks.soaking.load SECONDS RATE FILE``.

It notes in the file, line by line, each job whose transaction is committed (``job KIND ID``), and for each probe how
many milliseconds after its commit it started (``ms probe MILLISECONDS``). And, to compare with, how many
another process took to answer that does nothing else (``ms echo MILLISECONDS``): what the machine itself takes.
"""

from __future__ import annotations

import datetime as dt
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

from benchmarks.soaking.mix import KINDS, PROBE, PROBES_PER_SECOND

SLOT_SECONDS = 0.1
# So few that an enqueue often finds the job of the last one.
UNIQUE_KEYS = 3
UNIQUE_DELAY = dt.timedelta(seconds=1)
LATER = dt.timedelta(seconds=2)
MUCH_LATER = dt.timedelta(seconds=30)
# After so long a job is cancelled: by then one that is due runs.
CANCEL_SECONDS = 1.0
# Starts of probes that are heard after the end.
LAST_SECONDS = 5.0
ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


class Load:
    """Enqueues jobs of each kind, as many of it as its share has added up to."""

    def __init__(self, rate: float, notes: TextIO, folder: str) -> None:
        self.rate = rate
        self.notes = notes
        self.number = 0
        self.owed = dict.fromkeys([*KINDS, PROBE], 0.0)
        self.to_cancel: deque[tuple[float, int]] = deque()
        self.committed: dict[int, float] = {}  # of probes that have not started
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.address = f"{folder}/starts"
        self.listener.bind(self.address)
        # It ends with this process, which holds the other end of its standard input.
        self.echo = subprocess.Popen(
            [sys.executable, "-S", "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self.hear, daemon=True).start()

    def run(self, seconds: float) -> None:
        """Enqueue for so long; what a slow moment left undone is made up for."""
        begin = time.monotonic()
        slots = 0
        while slots * SLOT_SECONDS < seconds:
            slots += 1
            self.owe(SLOT_SECONDS)
            for kind in KINDS:
                if kind != "bulk" or slots % round(1 / SLOT_SECONDS) == 0:
                    self.enqueue(kind, self.take(kind))
            for _ in range(self.take(PROBE)):
                self.probe()
            self.cancel(time.monotonic() - CANCEL_SECONDS)
            self.ask_echo()
            self.notes.flush()
            time.sleep(max(0.0, begin + slots * SLOT_SECONDS - time.monotonic()))
        time.sleep(CANCEL_SECONDS)
        self.cancel(time.monotonic())
        deadline = time.monotonic() + LAST_SECONDS
        while self.committed and time.monotonic() < deadline:
            time.sleep(0.02)

    def owe(self, seconds: float) -> None:
        """Add up what is to be enqueued for so long a time."""
        for kind, (share, *_) in KINDS.items():
            self.owed[kind] += self.rate * seconds * share / 100
        self.owed[PROBE] += PROBES_PER_SECOND * seconds

    def take(self, kind: str) -> int:
        """The whole jobs of that kind that are to be enqueued now."""
        number = int(self.owed[kind])
        self.owed[kind] -= number
        return number

    def enqueue(self, kind: str, number: int) -> None:
        """Enqueue so many jobs of a kind, and note them."""
        if not number:
            return
        if kind == "bulk":
            from benchmarks.soaking.jobs import plain

            self.note(kind, plain.enqueue_many([(self.next(),) for _ in range(number)]))
            return
        make = WAYS.get(kind)
        for _ in range(number):
            job = make(self) if make else self.plainly(kind)
            if job is not None:
                self.note(kind, [job])

    def next(self) -> int:
        """A number that was not there before."""
        self.number += 1
        return self.number

    def note(self, kind: str, jobs: Iterable[Any]) -> None:
        """Note jobs that are committed."""
        with self.lock:
            self.notes.writelines(f"job {kind} {job.id}\n" for job in jobs)

    def plainly(self, kind: str) -> Any:
        """One of those that are simply enqueued; those with a context take nothing else."""
        from benchmarks.soaking import jobs

        function = getattr(jobs, kind)
        return function.enqueue() if function.takes_context else function.enqueue(self.next())

    def scheduled(self) -> Any:
        from benchmarks.soaking.jobs import plain

        return plain.using(run_after=LATER).enqueue(self.next())

    def unique(self) -> Any:
        from benchmarks.soaking.jobs import unique

        return unique.using(run_after=UNIQUE_DELAY).enqueue(self.next() % UNIQUE_KEYS)

    def cancelled(self) -> Any:
        from benchmarks.soaking.jobs import plain

        job = plain.using(run_after=MUCH_LATER).enqueue(self.next())
        self.to_cancel.append((time.monotonic(), job.id))
        return job

    def told(self) -> Any:
        from benchmarks.soaking.jobs import told

        job = told.enqueue()
        self.to_cancel.append((time.monotonic(), job.id))
        return job

    def rolled_back(self) -> Any:
        """In a transaction that is rolled back: it must leave nothing. The sequence may give its id to no other."""
        from django.db import connection, transaction

        from benchmarks.soaking.jobs import unkept

        with transaction.atomic():
            job = unkept.enqueue()
            transaction.set_rollback(True)
        # SQLite gives the id of a row that was rolled back to the next one.
        return job if connection.vendor == "postgresql" else None

    def cancel(self, before: float) -> None:
        """Cancel those that are to be, and were enqueued before that moment."""
        from django_jobs import operations

        ids = []
        while self.to_cancel and self.to_cancel[0][0] <= before:
            ids.append(self.to_cancel.popleft()[1])
        if ids:
            operations.cancel(ids)

    def probe(self) -> None:
        """Enqueue a job that tells when it starts."""
        from django.db import transaction

        from benchmarks.soaking.jobs import probe

        number = self.next()
        with transaction.atomic():
            job = probe.enqueue(self.address, number)
            with self.lock:
                self.committed[number] = time.time()
        self.note(PROBE, [job])

    def ask_echo(self) -> None:
        """Note how long another process takes to answer."""
        assert self.echo.stdin is not None
        assert self.echo.stdout is not None
        asked = time.perf_counter()
        self.echo.stdin.write("\n")
        self.echo.stdin.flush()
        self.echo.stdout.readline()
        answered = time.perf_counter()
        with self.lock:
            self.notes.write(f"ms echo {1000 * (answered - asked):.3f}\n")

    def hear(self) -> None:
        """Note when probes start."""
        while True:
            number, _, started = self.listener.recv(100).decode().partition(" ")
            with self.lock:
                committed = self.committed.pop(int(number), None)
                if (
                    committed is not None
                ):  # else it ran once more; were nobody here, the next ones would wait for ever
                    self.notes.write(f"ms probe {1000 * (float(started) - committed):.3f}\n")


WAYS: dict[str, Callable[[Load], Any]] = {
    "scheduled": Load.scheduled,
    "unique": Load.unique,
    "cancelled": Load.cancelled,
    "told": Load.told,
    "rolled back": Load.rolled_back,
}


def main(seconds: float, rate: float, file: Path) -> None:
    """Enqueue, and end."""
    import django

    django.setup()
    with tempfile.TemporaryDirectory() as folder, file.open("w") as notes:
        Load(rate, notes, folder).run(seconds)
        notes.flush()


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]))
