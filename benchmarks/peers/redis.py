"""A Redis server with its defaults."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator

START_SECONDS = 10


class Redis:
    """A server that runs."""

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.url = f"redis://127.0.0.1:{port}/0"
        self.pid = process.pid
        self.port = port

    def ask(self, *words: str) -> str:
        """The answer to a command, if it is one line."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall((" ".join(words) + "\r\n").encode())
            return connection.recv(1000).decode().strip()[1:]


@contextlib.contextmanager
def run_redis() -> Iterator[Redis | None]:
    """A server of our own; None where there is no Redis."""
    if not shutil.which("redis-server"):
        yield None
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", folder],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        redis = Redis(port, process)
        try:
            deadline = time.monotonic() + START_SECONDS
            while True:
                with contextlib.suppress(OSError):
                    if redis.ask("PING") == "PONG":
                        break
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("redis-server did not start")
                time.sleep(0.02)
            yield redis
        finally:
            process.terminate()
            process.wait()
