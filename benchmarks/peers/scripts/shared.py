"""What the scripts of all peers have in common. Each is run in the peer's own environment, which has nothing of ours:

DATABASE_URL=... python procrastinate_peer.py setup | one COUNT | many COUNT | latency COUNT SECONDS | worker
"""

import json
import os
import random
import socket
import sys
import tempfile
import time
from pathlib import Path

URL = os.environ["DATABASE_URL"].replace("postgres://", "postgresql://", 1)
CHUNK = 1000
START_SECONDS = 60


def tell(address: str) -> None:
    """Tell a socket of this host that the job starts now."""
    now = time.time()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(repr(now).encode(), address)


class Peer:
    """One queue. The methods do what its documentation advises."""

    def setup(self) -> None:
        """Make the tables."""

    def open(self) -> None:
        """Get ready to enqueue."""

    def one(self, n: int) -> None:
        """Enqueue a job that does nothing."""
        raise NotImplementedError

    def many(self, numbers: list[int]) -> None:
        """Enqueue many of them, in the fastest way that there is."""
        raise NotImplementedError

    def tell(self, address: str) -> None:
        """Enqueue a job that tells when it starts."""
        raise NotImplementedError

    def worker(self) -> list[str]:
        """The command of the worker."""
        raise NotImplementedError

    def run(self) -> None:
        """The command line."""
        command, arguments = sys.argv[1], sys.argv[2:]
        if command == "setup":
            self.setup()
        elif command == "worker":
            argv = self.worker()
            os.execv(argv[0], argv)
        else:
            self.open()
            print(json.dumps(getattr(self, f"measure_{command}")(*map(float, arguments))))

    def measure_one(self, count: float) -> float:
        """Seconds for so many jobs, one by one."""
        began = time.perf_counter()
        for n in range(int(count)):
            self.one(n)
        return time.perf_counter() - began

    def measure_many(self, count: float) -> float:
        """Seconds for so many jobs at once."""
        numbers = list(range(int(count)))
        began = time.perf_counter()
        self.many(numbers)
        return time.perf_counter() - began

    def measure_latency(self, count: float, pause: float) -> list[float]:
        """Milliseconds from the call that enqueues to the start of the job."""
        waits = []
        with (
            tempfile.TemporaryDirectory() as folder,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener,
        ):
            address = f"{folder}/starts"
            listener.bind(address)
            listener.settimeout(START_SECONDS)
            for _ in range(int(count)):
                time.sleep(random.uniform(0.2, 1.8) * pause)
                called = time.time()
                self.tell(address)
                waits.append(1000 * (float(listener.recv(100)) - called))
        return waits


def beside(program: str) -> str:
    """A program of the environment that this runs in."""
    return str(Path(sys.executable).with_name(program))


def chunks(numbers: list[int]) -> list[list[int]]:
    """By thousands."""
    return [numbers[first : first + CHUNK] for first in range(0, len(numbers), CHUNK)]
