"""The database of a run: a server of its own that is ill-treated, or a file."""

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.chaos.proxy import Proxy


class FileDatabase:
    """SQLite: a file. Nothing stands between it and the processes."""

    name = "sqlite"
    has_server = False
    proxies: tuple[Proxy, ...] = ()

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="chaos-")
        self.url = f"sqlite:///{self._folder.name}/db.sqlite3"

    def url_through(self, number: int) -> str:
        return self.url

    def errors(self) -> list[str]:
        """What the server's log says of deadlocks."""
        return []

    def close(self) -> None:
        self._folder.cleanup()


class ServerDatabase:
    """PostgreSQL, with proxies before it.

    :param lines: how many: one for each worker, and one for an enqueuer.
    """

    name = "postgresql"
    has_server = True
    START_SECONDS = 30

    def __init__(self, lines: int) -> None:
        from tests.servers import PostgresServer

        # A session whose client is gone, and was never heard of again, must not hold its rows for ever: any site that
        # has such a network sets this, or the system's keepalives do it.
        settings = {"idle_in_transaction_session_timeout": "8s", "shared_preload_libraries": ""}
        self.server = PostgresServer(settings=settings)
        # It ends with the thread that has started it.
        self._starter = ThreadPoolExecutor(max_workers=1)
        self.start()
        self.server.run(
            "psql", "--quiet", "--no-psqlrc", "-h", str(self.server.home), "-p", str(self.server.port),
            "-U", "postgres", "-c", "CREATE DATABASE chaos",
        )  # fmt: skip
        self.url = self.server.url("chaos")
        self.proxies = tuple(Proxy("127.0.0.1", self.server.port) for _ in range(lines))
        self.guard = threading.Lock()  # one fault of the server at a time

    def url_through(self, number: int) -> str:
        """The URL by which the server is reached on a line."""
        return self.url.replace(f":{self.server.port}/", f":{self.proxies[number].port}/")

    # -- faults ----------------------------------------------------------------------------------------------------

    def stop(self, how: signal.Signals) -> None:
        """SIGINT: fast; SIGQUIT: immediate; SIGKILL: the main process alone, the sessions notice it."""
        if how != signal.SIGKILL:
            self.server.stop(how)
        elif self.server.process is not None:
            self.server.process.kill()
            self.server.process.wait()
            self.server.process = None

    def start(self) -> None:
        """Start it; of one that was killed the last processes must have ended first."""
        self._starter.submit(self._start).result()

    def _start(self) -> None:
        from tests.servers import ServerError

        end = time.monotonic() + self.START_SECONDS
        while self.server.process is None or self.server.process.poll() is not None:
            try:
                self.server.start()
            except ServerError:
                if time.monotonic() > end:
                    raise
                threading.Event().wait(0.05)

    def kill_session(self, whom: float) -> None:
        """Kill one session's process: the server takes that for a crash, and recovers."""
        pids = sorted(self._sessions())
        if pids:
            self._end(pids[int(whom * len(pids))], signal.SIGKILL)

    def terminate_sessions(self) -> None:
        """End all sessions, in order; whoever wants can come again at once."""
        for pid in self._sessions():
            self._end(pid, signal.SIGTERM)

    @staticmethod
    def _end(pid: int, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # its client has ended it since: other faults go on
            os.kill(pid, number)

    def freeze(self) -> Callable[[], None]:
        """Stop all its processes, as a host does that is moved; what is returned lets them go on."""
        import psutil

        assert self.server.process is not None
        main = psutil.Process(self.server.process.pid)
        main.send_signal(signal.SIGSTOP)  # first, so that there are no new ones
        processes = [*main.children(), main]
        self._send(processes, signal.SIGSTOP)
        return lambda: self._send(processes, signal.SIGCONT)

    @staticmethod
    def _send(processes: list[Any], number: signal.Signals) -> None:
        import psutil

        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)

    def _sessions(self) -> list[int]:
        import psutil

        assert self.server.process is not None
        found = []
        for process in psutil.Process(self.server.process.pid).children():
            try:
                title = " ".join(process.cmdline())
            except psutil.Error:
                continue
            if " chaos " in title:
                found.append(process.pid)
        return found

    def errors(self) -> list[str]:
        """What the server's log says of deadlocks."""
        return [
            line for line in self.server.log.read_text(errors="replace").splitlines() if "deadlock" in line
        ]

    def close(self) -> None:
        for proxy in self.proxies:
            proxy.close()
        self.server.remove()
        self._starter.shutdown()


Database = FileDatabase | ServerDatabase


def open_database(name: str, lines: int) -> Database:
    return ServerDatabase(lines) if name == "postgresql" else FileDatabase()


def folder_of_run(path: Path | None) -> Path:
    """Where the journals and logs of a run go."""
    if path is None:
        return Path(tempfile.mkdtemp(prefix="chaos-"))
    path.mkdir(parents=True)
    return path
