"""The processes of a soak: who enqueues, and the workers; and the looks at them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil

from benchmarks.core.commands import say
from benchmarks.core.databases import Database
from benchmarks.core.meters import Meter, PostgreSQLMeter
from benchmarks.core.workers import ROOT, WorkerError, Workers, run_workers, site_environment
from benchmarks.soaking.ledger import Ledger
from benchmarks.soaking.watching import Sample, Use, sizes_of, use_of

SETTINGS = "benchmarks.soaking.settings"
CHILDREN = 2
START_SECONDS = 60
# After the load has ended: what is retried, snoozed or scheduled is over by then, if the workers are not behind.
END_SECONDS = 60
# How often it says how far it is.
SAY_MINUTES = 1.0


class Run:
    """A soak under way."""

    def __init__(
        self, database: Database, meter: Meter, minutes: float, rate: float, workers: dict[str, Workers]
    ) -> None:
        self.database = database
        self.meter = meter
        self.minutes = minutes
        self.workers = workers
        self.sizes = sizes_of(meter, database)
        self.processes = self.wait_until_started()
        notes = database.folder / "notes"
        notes.touch()
        self.ledger = Ledger(meter, notes, isinstance(meter, PostgreSQLMeter))
        self.began = time.monotonic()
        self.load = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.soaking.load", str(60 * minutes), str(rate), str(notes)],
            env=site_environment(database.url, {"DJANGO_SETTINGS_MODULE": SETTINGS}),
            cwd=ROOT,
        )
        self.processes["enqueuer"] = psutil.Process(self.load.pid)

    def wait_until_started(self) -> dict[str, psutil.Process]:
        """The processes of the workers, once all have registered."""
        deadline = time.monotonic() + START_SECONDS
        while len(self.meter.workers()) < 1 + CHILDREN:
            self.check()
            if time.monotonic() > deadline:
                raise WorkerError("the workers did not start:\n" + self.logged())
            time.sleep(0.05)
        supervisor = psutil.Process(self.workers["processes"].process.pid)
        children = sorted(supervisor.children(), key=lambda child: child.pid)
        return {
            "threads": psutil.Process(self.workers["threads"].process.pid),
            **{f"child {number}": child for number, child in enumerate(children, 1)},
            "supervisor": supervisor,
        }

    def check(self) -> None:
        """Raise WorkerError when a worker has ended."""
        for name, each in self.workers.items():
            if each.process.poll() is not None:
                raise WorkerError(f"the worker with {name} has ended:\n{each.output()}")

    def logged(self) -> str:
        """What the workers have printed last."""
        return "\n".join(each.output() for each in self.workers.values())

    def watch(self, every: float) -> list[Sample]:
        """Look every so many seconds, until the load has ended."""
        samples: list[Sample] = []
        said = 0.0
        while self.load.poll() is None:
            sample = self.look()
            samples.append(sample)
            if sample.minute >= said:
                said += SAY_MINUTES
                say(f"{self.database.vendor}, minute {sample.minute:.1f}: {self.describe(sample)}")
            due = self.began + len(samples) * every
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.load.wait(max(0.0, due - time.monotonic()))
        if self.load.returncode:
            raise SystemExit(f"the load ended with {self.load.returncode}")
        return samples

    def look(self) -> Sample:
        """One look at everything."""
        self.check()
        minute = (time.monotonic() - self.began) / 60
        uses: dict[str, Use] = {}
        for name, process in self.processes.items():
            try:
                uses[name] = use_of(process)
            except psutil.NoSuchProcess as gone:
                if name != "enqueuer":
                    raise WorkerError(f"the process {name} has ended:\n{self.logged()}") from gone
        if server := self.sizes.processes():
            uses["server"] = use_of(*server)
        took = self.ledger.look()
        calls = self.ledger.calls.total()
        return Sample(
            minute, uses, self.sizes.now(), took["probe"], took["echo"], calls, len(self.ledger.ended)
        )

    def describe(self, sample: Sample) -> str:
        memory = ", ".join(f"{name} {use.memory:.1f}" for name, use in sample.uses.items())
        sizes = ", ".join(f"{name} {value:.1f}" for name, value in sample.sizes.items())
        return f"{sample.enqueued} enqueued, {sample.ended} ended; {sizes}; MB: {memory}"

    def end(self) -> list[dict[str, Any]]:
        """Wait until all has ended, stop the workers, and tell of each kind of job how many ended as they must."""
        self.ledger.wait(END_SECONDS)
        for each in self.workers.values():
            each.stop()
        self.ledger.look()
        return self.ledger.tally()


@contextlib.contextmanager
def start(database: Database, meter: Meter, minutes: float, rate: float) -> Iterator[Run]:
    """Start the workers and the load; all have ended afterwards."""
    with contextlib.ExitStack() as resources:
        workers = {}
        for name, processes, concurrency in (("threads", 1, 10), ("processes", CHILDREN, 5)):
            folder = database.folder / name
            folder.mkdir()
            workers[name] = resources.enter_context(
                run_workers(
                    database.url,
                    meter,
                    folder,
                    processes=processes,
                    concurrency=concurrency,
                    environment={"DJANGO_SETTINGS_MODULE": SETTINGS},
                )
            )
        run = Run(database, meter, minutes, rate, workers)
        resources.callback(run.ledger.close)
        resources.callback(run.load.wait)
        resources.callback(run.load.terminate)
        yield run
