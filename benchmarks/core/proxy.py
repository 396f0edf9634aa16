"""A loopback TCP proxy that makes the database seem further away: each answer comes so many milliseconds later.

    python -m benchmarks.core.proxy HOST PORT MILLISECONDS

prints its own port. A process of its own, so that it shares no interpreter with what is measured.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

CHUNK = 1 << 18


def serve(host: str, port: int, seconds: float) -> None:
    """Pass on what comes, for ever."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            client, _ = listener.accept()
            server = socket.create_connection((host, port))
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _start(_pass_on, client, server)
            late: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            _start(_read, server, late, seconds)
            _start(_deliver, late, client)


def _start(function: object, *arguments: object) -> None:
    threading.Thread(target=function, args=arguments, daemon=True).start()  # type: ignore[arg-type]


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    _end(target)


def _read(source: socket.socket, late: queue.SimpleQueue[tuple[float, bytes]], seconds: float) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            late.put((time.monotonic() + seconds, data))
    late.put((0.0, b""))


def _deliver(late: queue.SimpleQueue[tuple[float, bytes]], target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            due, data = late.get()
            if not data:
                break
            if (wait := due - time.monotonic()) > 0:
                time.sleep(wait)
            target.sendall(data)
    _end(target)


def _end(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxy(url: str, milliseconds: float) -> Iterator[str]:
    """The URL of the same database, that much further away."""
    from benchmarks.core.databases import with_address

    parts = urlsplit(url)
    command = [
        sys.executable, "-m", "benchmarks.core.proxy",
        parts.hostname or "127.0.0.1", str(parts.port or 5432), str(milliseconds),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield with_address(url, int(process.stdout.readline()))
        finally:
            process.kill()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) / 1000)
